"""Where each program is in the cache."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from tests.kube import aptprograms, binaries, kubebuild
from tests.kube.binaries import Folders

FOLDERS = Folders(programs=Path("/cache/bookworm-1"), kubernetes=Path("/cache/kubernetes-2"))
VERSIONS = {"kubernetes": "1.20.2-1", "etcd-server": "3.4.23-4"}


def test_the_folders_are_named_after_their_recipes() -> None:
    folders = binaries.folders_in(Path("/cache"), "x86_64")

    assert folders.programs == Path("/cache") / f"bookworm-{aptprograms.key('x86_64')}"
    assert folders.kubernetes == Path("/cache") / f"kubernetes-1.20.2-{kubebuild.key('x86_64')}"


def test_the_folders_are_made_when_both_are_there(tmp_path: Path) -> None:
    folders = Folders(programs=tmp_path / "programs", kubernetes=tmp_path / "kubernetes")
    folders.programs.mkdir()
    assert not folders.are_made

    folders.kubernetes.mkdir()
    assert folders.are_made


def test_every_program_that_is_built_has_its_place() -> None:
    found = binaries.locate(FOLDERS, VERSIONS)

    named = [getattr(found, field.name) for field in fields(found)]
    for program in (*kubebuild.PROGRAMS, "pause"):
        assert Path("/cache/kubernetes-2/bin") / program in named


def test_every_file_that_is_kept_of_debians_packages_has_its_place() -> None:
    found = binaries.locate(FOLDERS, VERSIONS)

    kept = {Path(file).name for files in aptprograms.KEPT.values() for file in files}
    named = {found.etcd.name, found.containerd.name, found.ctr.name, found.runc.name}
    assert kept - named == {"containerd-shim-runc-v2", "bridge", "host-local", "loopback", "portmap", "ptp"}
    assert found.shim_folder == Path("/cache/bookworm-1/bin")
    assert found.cni_plugins == Path("/cache/bookworm-1/cni")


def test_the_key_changes_with_either_folder() -> None:
    other = Folders(programs=FOLDERS.programs, kubernetes=Path("/cache/kubernetes-3"))

    assert binaries.locate(FOLDERS, VERSIONS).key == binaries.locate(FOLDERS, {}).key
    assert binaries.locate(FOLDERS, VERSIONS).key != binaries.locate(other, VERSIONS).key
