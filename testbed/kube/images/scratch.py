"""
Files of an image that are built in a scratch root file system, which is thrown away afterwards.

Compilers, headers and CMake have no place in the image itself. The files are kept in the cache, so that a change
of the image's packages does not compile anything.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from testbed.kube.images import keys, pip, rootfs, store
from testbed.kube.images.recipes import Recipe, ScratchBuild
from testbed.kube.images.rootfs import Mirror
from testbed.kube.progress import step


def files(recipe: Recipe, build: ScratchBuild, mirror: Mirror) -> Path:
    """A tar of the files, made when it is missing."""
    final = store.folder() / f"{recipe.name}-built-{keys.recipe_key(build, sources(recipe), platform.machine())}"
    if not final.is_dir():
        with step(f"building {build.source} {build.version}"):
            work = store.work_folder(f"{recipe.name}-built")
            source, out, scratch = (work / name for name in ("source", "out", "scratch"))
            for folder in (source, out, scratch):
                folder.mkdir()
            pip.download_source(build.source, build.version, into=source)
            hook = rootfs.script_hook(recipe.build, source, out)
            rootfs.build(rootfs.scratch_argv(build.suite, build.packages, mirror, hook), scratch)
            store.publish(out, final, former=f"{recipe.name}-built-*")
            shutil.rmtree(work)
    return final / "files.tar"


def sources(recipe: Recipe) -> Mapping[str, bytes]:
    """The recipe's own files that take part in the build, by name."""
    return {recipe.build.name: recipe.build.read_bytes()}
