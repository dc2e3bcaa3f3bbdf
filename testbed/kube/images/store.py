"""
Which images are in the cache.

An archive is named NAME-KEY.tar and appears by a rename, so its existence means that it is complete.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.kube import buildcache, paths
from testbed.kube.images import archive, keys, recipes
from testbed.kube.images.archive import Archive
from testbed.kube.images.recipes import AnyRecipe


@dataclass(frozen=True, slots=True)
class Listed:
    """One line for a status screen; without an archive its size is 0."""

    name: str
    key: str
    is_cached: bool
    size: int


def folder() -> Path:
    return paths.cache() / "images"


def key_of(recipe: AnyRecipe) -> str:
    return keys.recipe_key(recipe, recipes.files_of(recipe), platform.machine())


def work_folder(name: str) -> Path:
    """An empty folder to build in; what an interrupted run left in it is gone."""
    work = folder() / f"work-{name}"
    buildcache.empty(work)
    return work


def publish(made: Path, final: Path, *, former: str) -> None:
    """Give a complete folder its final name, and remove those of its kind that are no longer wanted."""
    # A machine that loses its power right after the rename must not keep the name without the content.
    os.sync()
    made.rename(final)
    for other in final.parent.glob(former):
        if other != final:
            shutil.rmtree(other)


def path_of(name: str, key: str) -> Path:
    return folder() / f"{name}-{key}.tar"


def find(name: str, key: str) -> Archive | None:
    """The archive of an image, when it is in the cache."""
    path = path_of(name, key)
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return None
    return Archive(name, key, path, size, archive.references(name, key))


def listing() -> list[Listed]:
    """Every image that has a recipe, by name."""
    rows = []
    for recipe in sorted(recipes.ALL, key=lambda recipe: recipe.name):
        key = key_of(recipe)
        found = find(recipe.name, key)
        rows.append(Listed(recipe.name, key, is_cached=found is not None, size=found.size if found else 0))
    return rows


def remove_former(name: str, key: str) -> None:
    """Remove the archives of the same image that were made by former recipes."""
    for entry in former(name, key, (path.name for path in folder().iterdir())):
        (folder() / entry).unlink()


def former(name: str, key: str, entries: Iterable[str]) -> list[str]:
    """Which of the cache's entries are archives of this image with another key."""
    of_image = re.compile(rf"{re.escape(name)}-[0-9a-f]{{{len(key)}}}\.tar")
    return [entry for entry in entries if of_image.fullmatch(entry) and entry != f"{name}-{key}.tar"]
