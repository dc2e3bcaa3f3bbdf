"""The docker-archive that is written: its members, what they say, and that they agree with each other."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed.kube.images import archive
from testbed.kube.images.archive import Start

TAGS = ("mpirt-test/busybox:dev", "mpirt-test/busybox:0123456789ab")


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    path = tmp_path / "rootfs.tar"
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo("bin/sh")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"shell"))
    return path


def written(tmp_path: Path, layer: Path, **options: Any) -> dict[str, bytes]:
    target = tmp_path / "image.tar"
    archive.write(target, layer, tags=TAGS, architecture="amd64", **options)
    with tarfile.open(target) as tar:
        return {member.name: content.read() for member in tar if (content := tar.extractfile(member))}


def config_of(members: dict[str, bytes]) -> Any:
    [manifest] = json.loads(members["manifest.json"])
    return json.loads(members[manifest["Config"]])


def test_the_manifest_names_configuration_tags_and_layer(tmp_path: Path, layer: Path) -> None:
    members = written(tmp_path, layer)

    [manifest] = json.loads(members["manifest.json"])
    assert manifest["RepoTags"] == ["mpirt-test/busybox:dev", "mpirt-test/busybox:0123456789ab"]
    assert manifest["Layers"] == ["layer.tar"]
    assert set(members) == {"manifest.json", manifest["Config"], "layer.tar"}


def test_the_layer_is_the_root_file_system_as_it_was(tmp_path: Path, layer: Path) -> None:
    assert written(tmp_path, layer)["layer.tar"] == layer.read_bytes()


def test_the_configuration_is_named_after_its_digest(tmp_path: Path, layer: Path) -> None:
    members = written(tmp_path, layer)

    [manifest] = json.loads(members["manifest.json"])
    digest = hashlib.sha256(members[manifest["Config"]]).hexdigest()
    assert manifest["Config"] == f"{digest}.json"


def test_the_configuration_holds_the_digest_of_the_layer(tmp_path: Path, layer: Path) -> None:
    config = config_of(written(tmp_path, layer))

    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    assert config["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{digest}"]}


def test_the_configuration_says_what_it_runs_on_and_what_it_runs(tmp_path: Path, layer: Path) -> None:
    config = config_of(written(tmp_path, layer, start=Start(command=("/pause",))))

    assert (config["os"], config["architecture"]) == ("linux", "amd64")
    assert config["config"]["Cmd"] == ["/pause"]


def test_a_container_finds_programs_without_a_profile(tmp_path: Path, layer: Path) -> None:
    config = config_of(written(tmp_path, layer))

    assert config["config"]["Env"] == ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]


def test_a_container_starts_as_the_image_says(tmp_path: Path, layer: Path) -> None:
    start = Start(command=(), entrypoint=("/bin/install",), user="65532:65532", path="/bin")

    assert config_of(written(tmp_path, layer, start=start))["config"] == {
        "Entrypoint": ["/bin/install"],
        "Env": ["PATH=/bin"],
        "User": "65532:65532",
    }


def test_the_same_image_is_the_same_file(tmp_path: Path, layer: Path) -> None:
    first = written(tmp_path, layer)
    content = (tmp_path / "image.tar").read_bytes()
    second = written(tmp_path, layer)

    assert first == second
    assert (tmp_path / "image.tar").read_bytes() == content


def test_an_image_has_a_stable_name_and_one_with_its_key() -> None:
    assert archive.references("openmpi4", "0123456789ab") == (
        "mpirt-test/openmpi4:dev",
        "mpirt-test/openmpi4:0123456789ab",
    )
