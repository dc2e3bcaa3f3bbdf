"""
Folders that are expensive to make: made once, by one process at a time, and whole or not there at all.

A made folder is named after the key of its recipe and appears under that name by a rename, so that its
existence means that it is complete. What an interrupted run left behind never carries such a name.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_KEY_LENGTH = 12
_VERSIONS = "versions.json"


def key_of(*recipe: object) -> str:
    """The key of a recipe, which is anything JSON can tell; equal recipes have equal keys."""
    text = json.dumps(recipe, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Hold `lock`. It ends with the process that holds it, however that process ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another run that holds {lock}", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def empty(folder: Path, *, but: str = "") -> None:
    """Make the folder, with nothing in it but the entry named `but`, if it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.name != but:
            _remove(entry)


def publish(made: Path, final: Path, versions: Mapping[str, str]) -> None:
    """Give a complete folder its final name; both must be on one file system."""
    (made / _VERSIONS).write_text(json.dumps(versions, indent=2, sort_keys=True) + "\n")
    # A machine that loses its power right after the rename must not keep the name without the content.
    os.sync()
    made.rename(final)


def sweep(cache: Path) -> None:
    """Remove what this run or a killed one left unfinished; only the holder of the cache's lock may."""
    for left in cache.glob("work-*"):
        shutil.rmtree(left)


def versions_in(folder: Path) -> dict[str, str]:
    """What `publish` was told about a made folder."""
    versions: dict[str, str] = json.loads((folder / _VERSIONS).read_text())
    return versions


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()
