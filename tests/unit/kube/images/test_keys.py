"""A recipe's key changes with what could change the image, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.kube.images.keys import program_key, recipe_key, requirements_key
from testbed.kube.images.recipes import RECIPES, Recipe, ScratchBuild, files_of

MPI = Recipe(name="mpi", suite="bookworm", packages=("openmpi-bin",))
FILES = {"finish.sh": b"true\n", "slim.sh": b"rm -rf var\n"}
SCRATCH = ScratchBuild(source="horovod", version="0.28.1", suite="bookworm", packages=("g++",))


def test_equal_recipes_have_equal_keys() -> None:
    same = Recipe(name="mpi", suite="bookworm", packages=("openmpi-bin",))
    reordered = {"slim.sh": b"rm -rf var\n", "finish.sh": b"true\n"}

    assert recipe_key(MPI, FILES, "x86_64") == recipe_key(same, reordered, "x86_64")


def test_a_key_fits_into_a_file_name_and_a_tag() -> None:
    key = recipe_key(MPI, FILES, "x86_64")

    assert len(key) == 12
    assert set(key) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(replace(MPI, name="other"), id="name"),
        pytest.param(replace(MPI, suite="trixie"), id="suite"),
        pytest.param(replace(MPI, packages=("openmpi-bin", "python3")), id="packages"),
        pytest.param(replace(MPI, base="extract"), id="base"),
        pytest.param(replace(MPI, unwanted=("openssh-client",)), id="unwanted packages"),
        pytest.param(replace(MPI, scratch=SCRATCH), id="scratch build"),
    ],
)
def test_the_key_changes_with_the_recipe(changed: Recipe) -> None:
    assert recipe_key(changed, FILES, "x86_64") != recipe_key(MPI, FILES, "x86_64")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({**FILES, "finish.sh": b"false\n"}, id="another content"),
        pytest.param({**FILES, "more.txt": b""}, id="one more file"),
        pytest.param({"finish.sh": b"true\n"}, id="one file less"),
        pytest.param({"finish.sh": b"rm -rf var\n", "slim.sh": b"true\n"}, id="contents swapped"),
    ],
)
def test_the_key_changes_with_the_files(changed: dict[str, bytes]) -> None:
    assert recipe_key(MPI, changed, "x86_64") != recipe_key(MPI, FILES, "x86_64")


def test_the_key_changes_with_the_machine() -> None:
    assert recipe_key(MPI, FILES, "aarch64") != recipe_key(MPI, FILES, "x86_64")


def test_the_key_of_a_scratch_build_changes_with_its_version() -> None:
    later = replace(SCRATCH, version="0.28.2")

    assert recipe_key(later, FILES, "x86_64") != recipe_key(SCRATCH, FILES, "x86_64")


def test_the_key_of_installed_packages_changes_with_the_requirements() -> None:
    assert requirements_key(b"idna==3.20", "x86_64") != requirements_key(b"idna==3.21", "x86_64")


def test_the_key_of_a_program_is_its_content() -> None:
    assert program_key(b"\x7fELF") == program_key(b"\x7fELF")
    assert program_key(b"\x7fELF") != program_key(b"\x7fELG")


def test_no_two_images_share_a_key() -> None:
    found = [recipe_key(recipe, files_of(recipe), "x86_64") for recipe in RECIPES]

    assert len(set(found)) == len(RECIPES)
