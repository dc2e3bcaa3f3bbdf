"""
The runtime image's folder: its Python, kept in the cache, and mpirt added to it in a second.

Owns: how images/runtime/assemble.py is run here. What is in the folder is that script's matter, and how the image
starts must be as images/runtime/Dockerfile has it.
"""

from __future__ import annotations

import platform
import shutil
import tarfile
from pathlib import Path

from testbed.kube.images import keys, recipes, rootfs, store
from testbed.kube.images.archive import Start
from testbed.kube.images.recipes import RuntimeRecipe
from testbed.kube.images.rootfs import Mirror
from testbed.kube.paths import PROJECT
from testbed.kube.progress import step
from testbed.kube.shell import run

START = Start(command=(), entrypoint=("/bin/mpirt-runtime-install",), user="65532:65532", path="/bin")


def python(recipe: RuntimeRecipe, mirror: Mirror) -> Path:
    """The folder without mpirt, made when it is missing."""
    files = recipes.python_files(recipe)
    final = store.folder() / f"{recipe.name}-python-{keys.recipe_key(recipe, files, platform.machine())}"
    if not final.is_dir():
        with step(f"Python of {recipe.name}"):
            work = store.work_folder(f"{recipe.name}-python")
            source, scratch = work / "source", work / "scratch"
            source.mkdir()
            scratch.mkdir()
            for name, content in files.items():
                (source / name).write_bytes(content)
            hook = rootfs.script_hook(recipe.build, source, work / "folder")
            rootfs.build(rootfs.scratch_argv(recipe.suite, recipe.packages, mirror, hook), scratch)
            store.publish(work / "folder", final, former=f"{recipe.name}-python-*")
            shutil.rmtree(work)
    return final


def with_mpirt(made: Path, work: Path) -> Path:
    """A copy of the folder with mpirt as it is in this checkout. Its own Python compiles it."""
    folder = work / "folder"
    shutil.copytree(made, folder)
    lib = made / "lib"
    interpreter = (lib / "ld.so", "--library-path", lib, lib / "python", "-I", "-S")
    run(*interpreter, recipes.RUNTIME_SOURCE / "assemble.py", "mpirt", folder, PROJECT)
    return folder


def write_layer(folder: Path, target: Path) -> None:
    """A root file system of what is in the folder and nothing else, every file root's and without its time."""
    with tarfile.open(target, "w") as tar:
        for entry in sorted(folder.iterdir()):
            tar.add(entry, entry.name, filter=neutral)


def neutral(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Root's, and without a time."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member
