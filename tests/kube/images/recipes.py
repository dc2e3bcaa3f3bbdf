"""
What each test image is made of, as values.

A recipe's files lie in a folder that is named after it: `finish.sh` runs on the host when the packages are
installed, with the root file system's path as its first argument. Nothing here builds anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tests.kube.errors import ClusterError
from tests.kube.paths import PROJECT

FOLDER = Path(__file__).parent

# What the runtime's Dockerfile uses too, and what of it makes the image's Python.
RUNTIME_SOURCE = PROJECT / "images/runtime"
_PYTHON_FILES = ("assemble.py", "launcher.c")

# Runs on every image, last.
SLIM = FOLDER / "slim.sh"

# `essential` is the least that Debian calls a system; `extract` holds nothing but the packages' own files.
Base = Literal["essential", "extract"]

# UCX has modules for AMD's graphics cards, which bring a compiler's back end of 240 MB with them.
_ROCM = (
    "libamd-comgr2",
    "libamdhip64-5",
    "libdrm-amdgpu1",
    "libhsa-runtime64-1",
    "libhsakmt1",
    "libllvm17t64",
    "libz3-4",
)

# Open MPI's package depends on it; with it in place a test could pass by ssh instead of by what it tests.
_SSH = ("openssh-client",)


@dataclass(frozen=True, slots=True)
class WheelRecipe:
    """A Python wheel that is built in a root file system of its own, which is thrown away after it."""

    name: str
    version: str
    suite: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One image. `unwanted` are packages that others depend on and that no test may find."""

    name: str
    suite: str
    packages: tuple[str, ...]
    base: Base = "essential"
    unwanted: tuple[str, ...] = ()
    wheel: WheelRecipe | None = None

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def finish(self) -> Path:
        return self.folder / "finish.sh"

    @property
    def requirements(self) -> Path:
        """What pip installs, each with its version; only recipes with a wheel have it."""
        return self.folder / "requirements.txt"


@dataclass(frozen=True, slots=True)
class RuntimeRecipe:
    """
    The image that images/runtime describes: no root file system, but a folder.

    Its Python is made in a root file system with these packages, which is thrown away after it, and kept. mpirt is
    added to that in a second step, so that a changed source costs seconds.
    """

    name: str
    suite: str
    packages: tuple[str, ...]

    @property
    def build(self) -> Path:
        return FOLDER / self.name / "build-python.sh"


@dataclass(frozen=True, slots=True)
class ControllerRecipe:
    """
    The image that images/controller describes: a root file system with Python, what pip finds, and mpirt.

    The first two are made once and kept, so that a changed source costs seconds.
    """

    name: str
    base: Recipe

    @property
    def requirements(self) -> Path:
        """What pip installs, each with its version."""
        return FOLDER / self.name / "requirements.txt"


_HOROVOD_WHEEL = WheelRecipe(
    name="horovod",
    version="0.28.1",
    suite="bookworm",
    packages=("cmake", "g++", "make", "python3-dev"),
)

# For launchers that have mpirt by pip; workers need none of it.
_PYTHON = ("python3",)

RECIPES = (
    Recipe(
        name="horovod",
        suite="bookworm",
        packages=("libstdc++6", "python3", "python3-distutils"),
        wheel=_HOROVOD_WHEEL,
    ),
    Recipe(name="openmpi4", suite="bookworm", packages=("openmpi-bin", *_PYTHON), unwanted=_SSH),
    Recipe(
        name="openmpi5",
        suite="trixie",
        packages=("openmpi-bin", *_PYTHON),
        unwanted=(*_SSH, *_ROCM),
    ),
    Recipe(
        name="mpich",
        suite="trixie",
        packages=("mpich", *_PYTHON),
        unwanted=(*_ROCM, "libperl5.40", "perl", "perl-modules-5.40"),
    ),
    Recipe(name="busybox", suite="bookworm", packages=("busybox-static",), base="extract"),
)

RUNTIME = RuntimeRecipe(
    name="runtime",
    suite="bookworm",
    packages=("gcc", "musl-tools", "python3", "python3-click", "python3-yaml"),
)

CONTROLLER = ControllerRecipe(
    name="controller", base=Recipe(name="controller-base", suite="bookworm", packages=_PYTHON)
)

AnyRecipe: TypeAlias = Recipe | RuntimeRecipe | ControllerRecipe

ALL: tuple[AnyRecipe, ...] = (*RECIPES, RUNTIME, CONTROLLER)


def named(name: str) -> AnyRecipe:
    """The recipe of an image; raises for a name that has none."""
    for recipe in ALL:
        if recipe.name == name:
            return recipe
    known = ", ".join(recipe.name for recipe in ALL)
    raise ClusterError(f"there is no test image named {name!r}", remedy=f"there are {known}")


def files_of(recipe: AnyRecipe) -> Mapping[str, bytes]:
    """The content of a recipe's own files and of those that it shares with others, by name."""
    if isinstance(recipe, RuntimeRecipe):
        return {**python_files(recipe), **_contents(PROJECT, _runtime_sources())}
    if isinstance(recipe, ControllerRecipe):
        sources = (path.relative_to(PROJECT) for path in _mpirt_sources())
        return {
            recipe.requirements.name: recipe.requirements.read_bytes(),
            SLIM.name: SLIM.read_bytes(),
            **_contents(PROJECT, sources),
        }
    own = {path.name: path.read_bytes() for path in recipe.folder.glob("*") if path.is_file()}
    return {**own, SLIM.name: SLIM.read_bytes()}


def python_files(recipe: RuntimeRecipe) -> Mapping[str, bytes]:
    """The files that take part in making the runtime's Python, by name."""
    return {recipe.build.name: recipe.build.read_bytes(), **_contents(RUNTIME_SOURCE, map(Path, _PYTHON_FILES))}


def _runtime_sources() -> Iterator[Path]:
    yield from _mpirt_sources()
    yield from RUNTIME_SOURCE.glob("*.py")


def _mpirt_sources() -> Iterator[Path]:
    yield from (PROJECT / "mpirt").rglob("*.py")
    yield PROJECT / "pyproject.toml"


def _contents(root: Path, files: Iterable[Path]) -> Mapping[str, bytes]:
    return {str((root / file).relative_to(root)): (root / file).read_bytes() for file in files}
