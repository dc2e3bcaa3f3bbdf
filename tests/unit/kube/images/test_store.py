"""Which of the cache's entries belong to an image, and which of them are outdated."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kube.images import store
from testbed.kube.images.recipes import RECIPES

NEW = "0123456789ab"
OLD = "ba9876543210"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "mpirt-kube" / "images"
    folder.mkdir(parents=True)
    return folder


def test_former_archives_of_the_same_image_are_outdated() -> None:
    entries = [f"mpich-{NEW}.tar", f"mpich-{OLD}.tar"]

    assert store.former("mpich", NEW, entries) == [f"mpich-{OLD}.tar"]


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


def test_removing_former_archives_leaves_the_new_one(cache: Path) -> None:
    for key in (NEW, OLD):
        (cache / f"mpich-{key}.tar").write_bytes(b"tar")

    store.remove_former("mpich", NEW)

    assert [path.name for path in cache.iterdir()] == [f"mpich-{NEW}.tar"]


def test_an_image_is_found_by_its_key_only(cache: Path) -> None:
    (cache / f"mpich-{OLD}.tar").write_bytes(b"tar")

    assert store.find("mpich", NEW) is None


def test_a_found_image_says_how_large_it_is_and_what_it_is_called(cache: Path) -> None:
    (cache / f"mpich-{NEW}.tar").write_bytes(b"tar")

    found = store.find("mpich", NEW)

    assert found is not None
    assert (found.name, found.key, found.size) == ("mpich", NEW, 3)
    assert found.references == ("mpirt-test/mpich:dev", f"mpirt-test/mpich:{NEW}")


def test_the_listing_has_every_image_though_none_is_built(cache: Path) -> None:
    rows = store.listing()

    images = ["busybox", "controller", "deepspeed", "horovod", "mpich", "openmpi4", "openmpi5", "runtime"]
    assert [row.name for row in rows] == images
    assert {(row.is_cached, row.size) for row in rows} == {(False, 0)}


def test_the_listing_says_which_image_is_built(cache: Path) -> None:
    recipe = RECIPES[-1]
    store.path_of(recipe.name, store.key_of(recipe)).write_bytes(b"tar")

    built = [row for row in store.listing() if row.is_cached]

    assert [(row.name, row.size) for row in built] == [("busybox", 3)]
