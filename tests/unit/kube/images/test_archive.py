"""Images as archives: written, kept in a store, and loaded by nodes."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed.kube.images import archive, store
from testbed.kube.images.archive import Archive, Start, references
from testbed.kube.images.loading import former_references, images_in, is_loaded, load, normalised
from testbed.kube.images.recipes import RECIPES

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


def test_an_image_is_its_manifest_a_configuration_by_its_digest_and_the_layer_as_it_was(
    tmp_path: Path, layer: Path
) -> None:
    members = written(tmp_path, layer, start=Start(command=("/pause",)))

    [manifest] = json.loads(members["manifest.json"])
    content = members[manifest["Config"]]
    assert manifest["RepoTags"] == ["mpirt-test/busybox:dev", "mpirt-test/busybox:0123456789ab"]
    assert (manifest["Config"], manifest["Layers"]) == (f"{digest(content)}.json", ["layer.tar"])
    assert set(members) == {"manifest.json", manifest["Config"], "layer.tar"}
    assert members["layer.tar"] == layer.read_bytes()
    config = json.loads(content)
    assert config["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{digest(layer.read_bytes())}"]}
    assert (config["os"], config["architecture"]) == ("linux", "amd64")
    # A container finds programs without a profile.
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert config["config"] == {"Cmd": ["/pause"], "Env": [path]}


def test_a_container_starts_as_the_image_says(tmp_path: Path, layer: Path) -> None:
    start = Start(command=(), entrypoint=("/bin/install",), user="65532:65532", path="/bin")

    members = written(tmp_path, layer, start=start)

    [config] = [
        json.loads(content) for name, content in members.items() if name not in ("manifest.json", "layer.tar")
    ]
    assert config["config"] == {"Entrypoint": ["/bin/install"], "Env": ["PATH=/bin"], "User": "65532:65532"}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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


NEW = "0123456789ab"
OLD = "ba9876543210"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "mpirt-kube" / "images"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(f"mpich-{NEW}.tar", id="the archive itself"),
        pytest.param(f"openmpi4-{OLD}.tar", id="another image"),
        pytest.param(f"mpich-debug-{OLD}.tar", id="an image whose name begins alike"),
        pytest.param(f"mpich-built-{OLD}", id="a scratch build"),
        pytest.param("mpich.lock", id="a lock"),
        pytest.param("work-mpich", id="a build at work"),
    ],
)
def test_nothing_else_is_outdated(entry: str) -> None:
    assert store.former("mpich", NEW, [entry]) == []


def test_an_image_is_found_by_its_key_and_former_ones_are_removed(cache: Path) -> None:
    (cache / f"mpich-{OLD}.tar").write_bytes(b"old")
    assert store.find("mpich", NEW) is None
    (cache / f"mpich-{NEW}.tar").write_bytes(b"tar")

    found = store.find("mpich", NEW)
    store.remove_former("mpich", NEW)

    assert found is not None
    assert (found.name, found.key, found.size) == ("mpich", NEW, 3)
    assert found.references == ("mpirt-test/mpich:dev", f"mpirt-test/mpich:{NEW}")
    assert [path.name for path in cache.iterdir()] == [f"mpich-{NEW}.tar"]


def test_the_listing_has_every_image_and_says_which_is_built(cache: Path) -> None:
    rows = store.listing()

    images = ["busybox", "controller", "deepspeed", "horovod", "mpich", "openmpi4", "openmpi5", "runtime"]
    assert [row.name for row in rows] == images
    assert {(row.is_cached, row.size) for row in rows} == {(False, 0)}

    recipe = RECIPES[-1]
    store.path_of(recipe.name, store.key_of(recipe)).write_bytes(b"tar")

    assert [(row.name, row.size) for row in store.listing() if row.is_cached] == [("busybox", 3)]


HEADING = "REF TYPE DIGEST SIZE PLATFORMS LABELS"
DEV = "docker.io/mpirt-test/mpich:dev"
NEW_NAME = "docker.io/mpirt-test/mpich:0123456789ab"
OLD_NAME = "docker.io/mpirt-test/mpich:ba9876543210"
MPICH = Archive("mpich", "0123456789ab", Path("/cache/mpich.tar"), 1, references("mpich", "0123456789ab"))


class Node:
    """A node's containerd, as far as `ctr` shows it: it lists, imports MPICH and removes."""

    def __init__(self, **present: str) -> None:
        self.present = dict(present)
        self.changes: list[tuple[str, ...]] = []

    def ctr(self, *words: str) -> subprocess.CompletedProcess[str]:
        if words != ("images", "ls"):
            self.changes.append(words[1:])
        if words[1] == "import":
            self.present |= {DEV: "sha256:aa", NEW_NAME: "sha256:aa", "sha256:a0": "sha256:aa"}
        elif words[1] == "rm":
            for reference in words[2:]:
                del self.present[reference]
        rows = [f"{reference} type {digest} 2.0 MiB linux/amd64 -" for reference, digest in self.present.items()]
        return subprocess.CompletedProcess(words, 0, stdout="\n".join([HEADING, *rows]) + "\n", stderr="")


class TestLoad:
    def test_an_empty_node_gets_the_image_and_gets_it_once(self) -> None:
        node = Node()

        for archives in ([], [MPICH], [MPICH]):
            load(archives, node.ctr)

        assert node.changes == [("import", "/cache/mpich.tar")]

    def test_a_new_recipe_replaces_the_former_image(self) -> None:
        node = Node(**{DEV: "sha256:bb", OLD_NAME: "sha256:bb", "sha256:b0": "sha256:bb"})

        load([MPICH], node.ctr)

        assert node.present == {DEV: "sha256:aa", NEW_NAME: "sha256:aa", "sha256:a0": "sha256:aa"}


class TestIsLoaded:
    @pytest.mark.parametrize(
        "present",
        [
            pytest.param({}, id="no name is there"),
            pytest.param({DEV: "sha256:aa"}, id="only the stable name is there"),
            pytest.param({NEW_NAME: "sha256:aa"}, id="only the name with the key is there"),
            pytest.param({DEV: "sha256:bb", NEW_NAME: "sha256:aa"}, id="the names are of two images"),
        ],
    )
    def test_no(self, present: dict[str, str]) -> None:
        assert not is_loaded(MPICH, present)

    def test_yes_when_both_names_are_of_one_image(self) -> None:
        assert is_loaded(MPICH, {DEV: "sha256:aa", NEW_NAME: "sha256:aa"})


class TestFormerReferences:
    def test_other_keys_of_the_same_image_are_former(self) -> None:
        assert former_references([MPICH], {DEV: "sha256:aa", NEW_NAME: "sha256:aa", OLD_NAME: "sha256:bb"}) == [
            OLD_NAME
        ]

    def test_other_images_are_not(self) -> None:
        others = {"docker.io/mpirt-test/mpich-debug:1": "sha256:cc", "docker.io/library/mpich:1": "sha256:dd"}

        assert former_references([MPICH], others) == []

    def test_an_image_of_two_recipes_keeps_its_digest(self) -> None:
        present = {DEV: "sha256:aa", NEW_NAME: "sha256:aa", OLD_NAME: "sha256:aa", "sha256:a0": "sha256:aa"}

        assert former_references([MPICH], present) == [OLD_NAME]


@pytest.mark.parametrize(
    ("reference", "kept_as"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.35", "docker.io/library/busybox:1.35"),
        ("mpirt-test/mpich:dev", "docker.io/mpirt-test/mpich:dev"),
        ("docker.io/mpirt-test/mpich:dev", "docker.io/mpirt-test/mpich:dev"),
        ("registry.test:5000/mpich", "registry.test:5000/mpich:latest"),
        ("localhost/mpich:dev", "localhost/mpich:dev"),
    ],
)
def test_a_reference_is_compared_in_the_form_that_containerd_keeps(reference: str, kept_as: str) -> None:
    assert normalised(reference) == kept_as


def test_the_listing_is_read_without_its_heading() -> None:
    listing = (
        "REF                            TYPE             DIGEST    SIZE    PLATFORMS   LABELS\n"
        "docker.io/mpirt-test/mpich:dev application/json sha256:aa 2.0 MiB linux/amd64 io.cri-containerd=managed\n"
    )

    assert images_in(listing) == {"docker.io/mpirt-test/mpich:dev": "sha256:aa"}
