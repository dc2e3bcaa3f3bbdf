"""
The operators and schedulers that run beside mpirt in tests, each built from its Go module, when a test needs it.

Owns: which there are, and where their programs and manifests are. Not part of the cluster: none of them is built
or started with it. Their manifests are kept beside their programs, from the same version of the same module.
"""

from __future__ import annotations

import json
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.kube import buildcache, paths, preflight
from testbed.kube.programs import gobuild, golang, modules
from testbed.kube.programs.modules import Module
from testbed.kube.shell import run

_FOLDER = modules.FOLDER / modules.NEIGHBOURS
_MANIFESTS = "manifests"


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What is taken from a module."""

    program: str
    manifests: str
    """The folder of the module that holds its manifests."""


_RECIPES = {
    "jobset": _Recipe("jobset", "config/components"),
    "kueue": _Recipe("kueue", "config/components"),
    "mpi-operator": _Recipe("mpi-operator", "manifests/base"),
    "scheduler-plugins": _Recipe("scheduler", "config/crd/bases"),
    "trainer": _Recipe("trainer-controller-manager", "manifests/base"),
}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One of them, built."""

    name: str
    version: str
    program: Path
    manifests: Path


def ensure(name: str) -> Neighbour:
    """Return the neighbour of that name, built first where it is missing; a run that builds is waited for."""
    module, final = _module(name)
    if not final.is_dir():
        # All builds share the folder that Go itself keeps.
        with buildcache.exclusive(paths.cache() / "binaries.lock"):
            if not final.is_dir():
                _make(module, _RECIPES[name], final)
    return Neighbour(name, module.version, final / "bin" / _RECIPES[name].program, final / _MANIFESTS)


def ensure_all() -> list[Neighbour]:
    """Return all of them, and drop what Go has kept from building them."""
    found = [ensure(name) for name in _RECIPES]
    with buildcache.exclusive(paths.cache() / "binaries.lock"):
        buildcache.sweep(paths.cache())
    return found


def _module(name: str) -> tuple[Module, Path]:
    module = modules.read(_FOLDER / name)
    return module, gobuild.final_folder(module, paths.cache(), platform.machine())


def _make(module: Module, recipe: _Recipe, final: Path) -> None:
    preflight.check_cache()
    go = golang.find(module.go, final.parent)

    def keep_manifests(made: Path) -> None:
        shutil.copytree(_source(module, go, final.parent) / recipe.manifests, made / _MANIFESTS)

    gobuild.make(module, go, final, also=keep_manifests)


def _source(module: Module, go: Path, cache: Path) -> Path:
    """Return the folder that holds the module's source, which Go has fetched for the build."""
    words = (go, "list", "-m", "-json", module.path)
    said = run(*words, cwd=module.folder, env=gobuild.environment(cache)).stdout
    return Path(json.loads(said)["Dir"])
