"""
The key of a recipe: it changes with anything that could change the image, and with nothing else.

Not in it: the mirror, and the versions that Debian has today. An image is as good as its recipe says; to have
newer packages, remove it from the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict

from testbed.kube.buildcache import key_of
from testbed.kube.images.recipes import AnyRecipe, ScratchBuild

# Raise it when the building code makes something else of the same recipe.
BUILDER = 1


def recipe_key(recipe: AnyRecipe | ScratchBuild, files: Mapping[str, bytes], machine: str) -> str:
    """The key of an image or a scratch build; `files` are all files that take part, `machine` is uname's word."""
    return key_of(BUILDER, machine, asdict(recipe), _digests(files))


def program_key(program: bytes) -> str:
    """The key of an image that holds one program and nothing else."""
    return key_of(BUILDER, _digest(program))


def requirements_key(requirements: bytes, machine: str) -> str:
    """The key of a folder of installed Python packages."""
    return key_of(BUILDER, machine, _digest(requirements))


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: _digest(content) for name, content in files.items()}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
