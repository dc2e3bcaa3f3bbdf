"""Folders that are made once, and are whole or not there."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.kube import buildcache


def test_equal_recipes_have_equal_keys() -> None:
    one = buildcache.key_of("x86_64", {"a": ["1"], "b": ["2"]})
    other = buildcache.key_of("x86_64", {"b": ["2"], "a": ["1"]})

    assert one == other
    assert len(one) == 12


def test_a_changed_word_changes_the_key() -> None:
    assert buildcache.key_of("x86_64", ["-s", "-w"]) != buildcache.key_of("x86_64", ["-s"])


def test_a_published_folder_has_its_final_name_and_its_versions(tmp_path: Path) -> None:
    made = tmp_path / "work" / "made"
    made.mkdir(parents=True)
    (made / "etcd").write_text("a program")

    buildcache.publish(made, tmp_path / "final", {"etcd-server": "3.4"})

    assert (tmp_path / "final" / "etcd").read_text() == "a program"
    assert buildcache.versions_in(tmp_path / "final") == {"etcd-server": "3.4"}
    assert not made.exists()


def test_emptying_keeps_the_one_entry_that_is_named(tmp_path: Path) -> None:
    for name in ("go-cache", "go-path"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "go-cache")

    buildcache.empty(tmp_path, but="go-cache")

    assert [entry.name for entry in tmp_path.iterdir()] == ["go-cache"]
    assert (tmp_path / "go-cache" / "file").exists()


def test_a_held_lock_shuts_others_out_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "lock"

    with buildcache.exclusive(path), path.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
