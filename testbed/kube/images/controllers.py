"""
The controller's image: Debian's Python, the packages that pip finds for it, and mpirt, in this order.

Owns: how images/controller/Dockerfile is followed here without Docker. The first two are kept in the cache, so
that a changed source costs seconds; how the image starts must be as the Dockerfile has it.
"""

from __future__ import annotations

import platform
import shutil
import tarfile
import tomllib
from pathlib import Path

from testbed.kube.images import folders, keys, pip, recipes, rootfs, store
from testbed.kube.images.archive import Start
from testbed.kube.images.recipes import ControllerRecipe
from testbed.kube.images.rootfs import Mirror
from testbed.kube.paths import PROJECT
from testbed.kube.progress import step

_ROOT = "rootfs.tar"
_PACKAGES = "usr/local/lib/python3.11/dist-packages"
_PROGRAM = "usr/local/bin/mpirt-controller"
_SCRIPT = """\
#!/usr/bin/python3
import sys
from {module} import {function}
sys.exit({function}())
"""

START = Start(command=(), entrypoint=("mpirt-controller",), user="65532:65532")


def prepare(recipe: ControllerRecipe, mirror: Mirror) -> None:
    """Make what is kept, as far as it is missing."""
    _base(recipe, mirror)
    _packages(recipe)


def write_layer(recipe: ControllerRecipe, mirror: Mirror, work: Path, target: Path) -> None:
    """The whole root file system, as a tar."""
    shutil.copyfile(_base(recipe, mirror), target)
    own = _with_mpirt(work / "mpirt")
    with tarfile.open(target, "a") as tar:
        for source in (_packages(recipe), own / "packages"):
            for entry in sorted(source.iterdir()):
                tar.add(entry, f"{_PACKAGES}/{entry.name}", filter=folders.neutral)
        tar.add(own / "program", _PROGRAM, filter=folders.neutral)


def _base(recipe: ControllerRecipe, mirror: Mirror) -> Path:
    """Debian with Python, made when it is missing."""
    base = recipe.base
    final = store.folder() / f"{base.name}-{keys.recipe_key(base, recipes.files_of(base), platform.machine())}"
    if not final.is_dir():
        with step(f"Debian with Python for {recipe.name}"):
            work = store.work_folder(base.name)
            rootfs.build(rootfs.image_argv(base, mirror, work / _ROOT), work)
            store.publish(work, final, former=f"{base.name}-*")
    return final / _ROOT


def _packages(recipe: ControllerRecipe) -> Path:
    """What pip installs, made when it is missing."""
    key = keys.requirements_key(recipe.requirements.read_bytes(), platform.machine())
    final = store.folder() / f"{recipe.name}-packages-{key}"
    if not final.is_dir():
        with step(f"Python packages of {recipe.name}"):
            work = store.work_folder(f"{recipe.name}-packages")
            pip.install(recipe.requirements, into=work)
            store.publish(work, final, former=f"{recipe.name}-packages-*")
    return final


def _with_mpirt(work: Path) -> Path:
    """mpirt as it is in this checkout, as much of its metadata as tells its version, and its program."""
    about = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = work / "packages"
    shutil.copytree(PROJECT / "mpirt", packages / "mpirt", ignore=shutil.ignore_patterns("__pycache__"))
    info = packages / f"{about['name']}-{about['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    module, _, function = about["scripts"]["mpirt-controller"].partition(":")
    program = work / "program"
    program.write_text(_SCRIPT.format(module=module, function=function), encoding="utf-8")
    program.chmod(0o755)
    return work
