"""What an installation brings: four programs that start, answer for themselves and leave no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from mpirt import agent, keeper

PROJECT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PYPROJECT["project"]["version"]

PROGRAMS = ["mpirt", "mpirt-rsh", "mpirt-discover", "mpirt-controller"]


def start(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    script = Path(sys.executable).with_name(program)
    return subprocess.run(
        [script, *words], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30
    )


def test_the_installed_version_is_the_one_in_the_project_file() -> None:
    assert distribution("mpirt").version == VERSION, "run: make venv"


def test_the_installed_programs_are_the_ones_in_the_project_file() -> None:
    scripts = distribution("mpirt").entry_points.select(group="console_scripts")

    assert {script.name: script.value for script in scripts} == PYPROJECT["project"]["scripts"], "run: make venv"


class TestAgentAndKeeper:
    FILES = {  # noqa: RUF012  a literal
        *(f"mpirt/agent/{agent.file_name(one)}" for one in agent.ARCHITECTURES),
        *(f"mpirt/keeper/{keeper.file_name(one)}" for one in keeper.ARCHITECTURES),
    }

    def test_the_keeper_is_installed_for_every_architecture(self) -> None:
        found = {one: (keeper.read(one) or b"")[:4] for one in keeper.ARCHITECTURES}

        assert set(found.values()) == {b"\x7fELF"}, "run: make programs"

    def test_the_agent_can_be_executed(self) -> None:
        assert [os.access(agent.path(one) or "", os.X_OK) for one in agent.ARCHITECTURES] == [True, True]

    @pytest.mark.parametrize("architecture", ["mips64", "", "../keeper/amd64"])
    def test_there_is_none_for_any_other(self, architecture: str) -> None:
        assert (agent.path(architecture), keeper.read(architecture)) == (None, None)

    def test_programs_are_in_the_wheel_that_is_built_of_the_source_distribution(self, tmp_path: Path) -> None:
        """As `python -m build` does it: what a source distribution lacks no wheel of it has."""
        build("sdist", PROJECT, tmp_path)
        subprocess.run(["tar", "-x", "-f", next(tmp_path.glob("*.tar.gz"))], cwd=tmp_path, check=True, timeout=60)
        build("wheel", next(tmp_path.glob("*/pyproject.toml")).parent, tmp_path)

        with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
            names = set(wheel.namelist())
            assert names >= self.FILES, "run: make programs"
            assert all(wheel.read(name) == (PROJECT / name).read_bytes() for name in self.FILES)


def build(target: str, project: Path, into: Path) -> None:
    """Without the network: with the hatchling of this environment."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", into],
        cwd=project, check=True, capture_output=True, timeout=60,
    )  # fmt: skip


def test_there_are_four_programs() -> None:
    assert sorted(PYPROJECT["project"]["scripts"]) == sorted(PROGRAMS)


def test_the_licence_travels_with_the_package() -> None:
    assert PYPROJECT["project"]["license"] == "Apache-2.0"
    assert "Apache License" in (PROJECT / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_says_its_name_and_version(program: str) -> None:
    done = start(program, "--version")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{program} {VERSION}")


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_explains_itself(program: str) -> None:
    done = start(program, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {program} ")


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program != "mpirt-controller"])
def test_a_program_without_words_says_what_is_missing_in_one_line(program: str) -> None:
    done = start(program)

    assert done.returncode == 240
    assert done.stdout == ""
    assert done.stderr.startswith(program)
    assert done.stderr.count("\n") == 1


def test_the_controller_without_a_cluster_says_so_in_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "no-kubeconfig"

    done = start("mpirt-controller", f"--kubeconfig={missing}")

    assert done.returncode == 241
    assert done.stderr.startswith("mpirt-controller: no API server configured: ")
    assert done.stderr.count("\n") == 1
