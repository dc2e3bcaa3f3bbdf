"""What images are made of, and the keys under which they are kept."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from testbed.kube.errors import ClusterError
from testbed.kube.images import controllers, folders, scratch
from testbed.kube.images.keys import program_key, recipe_key, requirements_key
from testbed.kube.images.recipes import (
    ALL,
    BY_NAME,
    CONTROLLER,
    RECIPES,
    RUNTIME,
    RUNTIME_SOURCE,
    AnyRecipe,
    ControllerRecipe,
    PyPiRecipe,
    Recipe,
    ScratchBuild,
    SshRecipe,
    files_of,
    named,
    python_files,
)
from testbed.kube.paths import PROJECT

IMAGES = {recipe.name: recipe for recipe in RECIPES}
EACH = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)


def test_there_is_an_image_for_each_launcher_and_one_without_a_libc() -> None:
    assert IMAGES.keys() == {"busybox", "deepspeed", "horovod", "mpich", "openmpi4", "openmpi5"}


def test_a_recipe_is_found_by_its_name_and_the_one_with_ssh_is_built_only_by_it() -> None:
    assert named("openmpi5") == IMAGES["openmpi5"]
    assert named("openmpi4-sshd") in BY_NAME
    assert [recipe.name for recipe in ALL if isinstance(recipe, SshRecipe)] == []


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ClusterError) as caught:
        named("openmpi6")

    assert caught.value.what == "there is no test image named 'openmpi6'"
    assert "openmpi5" in caught.value.remedy


@EACH
def test_every_recipe_has_the_script_that_ends_all(recipe: Recipe) -> None:
    assert "slim.sh" in files_of(recipe)


@EACH
def test_no_file_of_a_recipe_names_a_host(recipe: Recipe) -> None:
    hosts = re.compile(rb"https?://|deb\.debian\.org|pypi|index-url")

    assert [name for name, content in files_of(recipe).items() if hosts.search(content)] == []


def test_the_build_of_horovod_does_not_depend_on_its_image() -> None:
    assert scratch.sources(IMAGES["horovod"]).keys() == {"build.sh"}
    assert files_of(IMAGES["horovod"]).keys() == {"build.sh", "finish.sh", "prove.sh", "slim.sh"}


def test_horovods_compilers_stay_out_of_its_image() -> None:
    horovod = IMAGES["horovod"]

    assert horovod.scratch is not None
    assert {"cmake", "g++", "patchelf", "python3-torch"} <= set(horovod.scratch.packages) - set(horovod.packages)


def test_deepspeeds_image_changes_with_the_build_that_it_shares() -> None:
    files = files_of(IMAGES["deepspeed"])

    assert {"requirements.txt", "finish.sh", "horovod/build.sh", "horovod/finish.sh"} <= files.keys()


class TestTheController:
    def test_its_dockerfile_has_the_same_debian_and_starts_the_same(self) -> None:
        text = (PROJECT / "images/controller/Dockerfile").read_text()

        assert f"ARG BASE=python:3.11-slim-{CONTROLLER.base.suite}\n" in text
        assert f"USER {controllers.START.user}\n" in text
        assert f"ENTRYPOINT {json.dumps(list(controllers.START.entrypoint))}\n" in text

    @pytest.mark.parametrize("recipe", [CONTROLLER, IMAGES["deepspeed"]], ids=lambda recipe: recipe.name)
    def test_every_python_package_has_one_version(self, recipe: ControllerRecipe | PyPiRecipe) -> None:
        lines = recipe.requirements.read_text().splitlines()
        pinned = re.compile(r"[A-Za-z0-9_-]+==[0-9.]+")

        assert [line for line in lines if not line.startswith("#") and not pinned.fullmatch(line)] == []


class TestAgentAndKeeper:
    @pytest.mark.parametrize("recipe", [CONTROLLER, RUNTIME], ids=lambda recipe: recipe.name)
    @pytest.mark.parametrize("program", ["agent", "common", "keeper"])
    def test_both_images_change_with_them(self, recipe: AnyRecipe, program: str) -> None:
        sources = {f"images/{program}/{path.name}" for path in (PROJECT / "images" / program).glob("*.[ch]")}

        assert {*sources, "images/build.py"} <= files_of(recipe).keys()

    @pytest.mark.parametrize("image", ["controller", "runtime"])
    def test_a_dockerfile_builds_them_with_the_compiler_that_make_takes(self, image: str) -> None:
        text = (PROJECT / "images" / image / "Dockerfile").read_text()
        [pinned] = re.findall(r'"(ziglang==.+?)"', (PROJECT / "pyproject.toml").read_text())

        assert f" install --no-cache-dir {pinned}\n" in text
        assert (
            "\nCOPY images/build.py /build/\nCOPY images/common /build/common\n"
            "COPY images/agent /build/agent\nCOPY images/keeper /build/keeper\n"
            "RUN python3 /build/build.py agent /agent && python3 /build/build.py keeper /keeper\n"
        ) in text
        # Over mpirt, and before anything is made of that.
        assert (
            "\nCOPY mpirt /source/mpirt\nCOPY --from=programs /agent /source/mpirt/agent\n"
            "COPY --from=programs /keeper /source/mpirt/keeper\n"
        ) in text

    def test_no_image_takes_one_from_the_checkout(self) -> None:
        ignored = (PROJECT / ".dockerignore").read_text().splitlines()

        assert {"mpirt/agent/agent-*", "mpirt/keeper/keeper-*"} <= set(ignored)


class TestTheRuntime:
    def test_its_dockerfile_installs_the_same_packages_on_the_same_debian(self) -> None:
        text = (RUNTIME_SOURCE / "Dockerfile").read_text()

        stage = text.partition(" AS folder\n")[2]
        installed = re.search(r"apt-get install --yes --no-install-recommends (.+?) \\", stage)
        assert installed is not None
        assert tuple(installed[1].split()) == RUNTIME.packages
        assert f"ARG BASE=debian:{RUNTIME.suite}-slim\n" in text

    def test_its_dockerfile_starts_a_container_as_ours_does(self) -> None:
        text = (RUNTIME_SOURCE / "Dockerfile").read_text()

        assert text.endswith(
            f"ENV PATH={folders.START.path}\n"
            f"USER {folders.START.user}\n"
            f"ENTRYPOINT {json.dumps(folders.START.entrypoint)}\n"
        )

    def test_every_file_of_mpirt_takes_part_in_it(self) -> None:
        files = files_of(RUNTIME)

        assert {"mpirt/rsh/entry.py", "images/runtime/install.py", "pyproject.toml", "assemble.py"} < files.keys()

    def test_its_python_changes_with_little(self) -> None:
        assert python_files(RUNTIME).keys() == {"assemble.py", "build-python.sh"}


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
    ("recipe", "files", "machine"),
    [
        pytest.param(replace(MPI, name="other"), FILES, "x86_64", id="name"),
        pytest.param(replace(MPI, suite="trixie"), FILES, "x86_64", id="suite"),
        pytest.param(replace(MPI, packages=("openmpi-bin", "python3")), FILES, "x86_64", id="packages"),
        pytest.param(replace(MPI, base="extract"), FILES, "x86_64", id="base"),
        pytest.param(replace(MPI, unwanted=("openssh-client",)), FILES, "x86_64", id="unwanted packages"),
        pytest.param(replace(MPI, scratch=SCRATCH), FILES, "x86_64", id="scratch build"),
        pytest.param(MPI, {**FILES, "finish.sh": b"false\n"}, "x86_64", id="another content"),
        pytest.param(MPI, {**FILES, "more.txt": b""}, "x86_64", id="one more file"),
        pytest.param(MPI, {"finish.sh": b"true\n"}, "x86_64", id="one file less"),
        pytest.param(MPI, dict(zip(FILES, [*FILES.values()][::-1], strict=True)), "x86_64", id="contents swapped"),
        pytest.param(MPI, FILES, "aarch64", id="machine"),
    ],
)
def test_the_key_changes_with(recipe: Recipe, files: dict[str, bytes], machine: str) -> None:
    assert recipe_key(recipe, files, machine) != recipe_key(MPI, FILES, "x86_64")


def test_the_key_of_a_scratch_build_changes_with_its_version() -> None:
    later = replace(SCRATCH, version="0.28.2")

    assert recipe_key(later, FILES, "x86_64") != recipe_key(SCRATCH, FILES, "x86_64")


def test_the_key_of_a_program_is_its_content_and_that_of_packages_their_requirements() -> None:
    assert requirements_key(b"idna==3.20", "x86_64") != requirements_key(b"idna==3.21", "x86_64")
    assert program_key(b"\x7fELF") == program_key(b"\x7fELF")
    assert program_key(b"\x7fELF") != program_key(b"\x7fELG")


def test_no_two_images_share_a_key() -> None:
    found = [recipe_key(recipe, files_of(recipe), "x86_64") for recipe in RECIPES]

    assert len(set(found)) == len(RECIPES)
