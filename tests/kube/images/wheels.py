"""
Python packages for an image: downloaded on the host, with the host's own pip configuration, and installed offline.

What has no wheel is built in a root file system like the image's own, because a compiler, headers and CMake
have no place in the image itself.
"""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.kube.errors import ClusterError
from tests.kube.images import keys, rootfs, store
from tests.kube.images.recipes import Recipe, WheelRecipe
from tests.kube.images.rootfs import Mirror
from tests.kube.progress import step
from tests.kube.shell import run

# bookworm's, whatever Python runs this.
_PYTHON = "3.11"

_PIP_REMEDY = (
    "check the network and pip's configuration; for a CPU build of torch (+cpu), set PIP_EXTRA_INDEX_URL or "
    "PIP_FIND_LINKS to where PyTorch's CPU wheels are"
)


def provide(recipe: Recipe, wheel: WheelRecipe, cache: Path, mirror: Mirror) -> list[Path]:
    """All wheels that the image needs, made and downloaded as far as they are missing."""
    downloaded = _downloaded(recipe, cache)
    built = _built(recipe, wheel, downloaded, cache, mirror)
    return sorted([*downloaded.glob("*.whl"), *built.glob("*.whl")])


def install(requirements: Path, *, into: Path) -> None:
    """Packages for bookworm's Python in a folder, whatever Python runs this. The list is complete."""
    _pip(
        "install",
        "--no-deps",
        f"--python-version={_PYTHON}",
        "--only-binary=:all:",
        f"--requirement={requirements}",
        f"--target={into}",
    )


def wheel_files(recipe: Recipe) -> Mapping[str, bytes]:
    """The files that take part in building a recipe's wheel, by name."""
    return {path.name: path.read_bytes() for path in (_build_script(recipe), recipe.requirements)}


def _downloaded(recipe: Recipe, cache: Path) -> Path:
    key = keys.requirements_key(recipe.requirements.read_bytes(), platform.machine())
    final = cache / f"{recipe.name}-wheels-{key}"
    if not final.is_dir():
        with step(f"Python packages of {recipe.name}"):
            work = store.work_folder(f"{recipe.name}-wheels")
            # The list is complete; the installation fails if it isn't.
            _pip_download(
                "--no-deps",
                f"--python-version={_PYTHON}",
                "--only-binary=:all:",
                f"--requirement={recipe.requirements}",
                into=work,
            )
            store.publish(work, final, former=f"{recipe.name}-wheels-*")
    return final


def _built(recipe: Recipe, wheel: WheelRecipe, downloaded: Path, cache: Path, mirror: Mirror) -> Path:
    key = keys.recipe_key(wheel, wheel_files(recipe), platform.machine())
    final = cache / f"{wheel.name}-built-{key}"
    if not final.is_dir():
        with step(f"building {wheel.name} {wheel.version}"):
            work = store.work_folder(f"{wheel.name}-built")
            source, out, scratch = (work / name for name in ("source", "out", "scratch"))
            for folder in (source, out, scratch):
                folder.mkdir()
            _pip_download("--no-deps", "--no-binary=:all:", f"{wheel.name}=={wheel.version}", into=source)
            hook = rootfs.script_hook(_build_script(recipe), downloaded, source, out)
            rootfs.build(rootfs.scratch_argv(wheel.suite, wheel.packages, mirror, hook), scratch)
            store.publish(out, final, former=f"{wheel.name}-built-*")
            shutil.rmtree(work)
    return final


def _build_script(recipe: Recipe) -> Path:
    return recipe.folder / "build-wheel.sh"


def _pip_download(*words: str, into: Path) -> None:
    _pip("download", f"--dest={into}", *words)


def _pip(*words: str) -> None:
    try:
        run(sys.executable, "-m", "pip", "--quiet", *words)
    except ClusterError as error:
        raise ClusterError(error.what, remedy=_PIP_REMEDY) from error
