"""What is built without Debian's help: the pause image, and nothing when all is there."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from testbed.kube.errors import ClusterError
from testbed.kube.images import build, store
from testbed.kube.images.recipes import ALL


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mpirt-kube" / "images"


@pytest.fixture
def program(tmp_path: Path, cache: Path) -> Path:
    path = tmp_path / "pause"
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    return path


class TestPause:
    def test_the_image_holds_the_program_and_nothing_else(self, program: Path) -> None:
        made = build.pause(program)

        with tarfile.open(made.path) as whole, tarfile.open(fileobj=_content(whole, "layer.tar")) as layer:
            assert [(member.name, member.mode) for member in layer] == [("pause", 0o755)]
            assert _content(layer, "pause").read() == b"\x7fELF"

    def test_the_image_runs_the_program(self, program: Path) -> None:
        made = build.pause(program)

        with tarfile.open(made.path) as whole:
            [manifest] = json.load(_content(whole, "manifest.json"))
            config = json.load(_content(whole, manifest["Config"]))
        assert config["config"]["Cmd"] == ["/pause"]

    def test_the_image_has_the_name_that_nodes_ask_for(self, program: Path) -> None:
        assert build.pause(program).references[0] == "mpirt-test/pause:dev"

    def test_a_second_call_finds_what_the_first_one_made(self, program: Path) -> None:
        first = build.pause(program)
        made_at = first.path.stat().st_mtime_ns

        second = build.pause(program)

        assert second == first
        assert second.path.stat().st_mtime_ns == made_at

    def test_a_changed_program_replaces_the_image(self, cache: Path, program: Path) -> None:
        build.pause(program)
        program.write_bytes(b"\x7fELG")

        made = build.pause(program)

        assert list(cache.glob("*.tar")) == [made.path]

    def test_files_of_an_interrupted_run_are_gone_afterwards(self, cache: Path, program: Path) -> None:
        (cache / "work-pause" / "half").mkdir(parents=True)

        build.pause(program)

        assert not (cache / "work-pause").exists()


class TestEnsure:
    def test_cached_images_are_returned_in_the_order_asked_for(self, cache: Path) -> None:
        cache.mkdir(parents=True)
        for recipe in ALL:
            store.path_of(recipe.name, store.key_of(recipe)).write_bytes(b"tar")

        found = build.ensure(["openmpi5", "busybox"])

        assert [(made.name, made.size) for made in found] == [("openmpi5", 3), ("busybox", 3)]

    def test_cached_images_are_returned_without_a_word(
        self, cache: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        cache.mkdir(parents=True)
        for recipe in ALL:
            store.path_of(recipe.name, store.key_of(recipe)).write_bytes(b"tar")

        found = build.ensure()

        assert len(found) == len(ALL)
        assert capfd.readouterr() == ("", "")

    def test_an_unknown_name_is_an_error_before_anything_is_built(self, cache: Path) -> None:
        with pytest.raises(ClusterError, match="there is no test image named 'openmpi6'"):
            build.ensure(["busybox", "openmpi6"])

        assert not cache.exists()


def _content(tar: tarfile.TarFile, name: str) -> io.BufferedReader:
    content = tar.extractfile(name)
    assert isinstance(content, io.BufferedReader)
    return content
