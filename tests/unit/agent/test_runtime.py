"""The agent as the programs of a runtime folder: which folder, which program, which environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

# In the place of the folder's loader: tells the words and the variables with which it was started.
LOADER = '#!/bin/sh\nfor word; do echo "$word"; done\necho --\nenv | grep -v "^PWD=\\|^_="\n'


@pytest.fixture
def folder(tmp_path: Path, program: Path) -> Path:
    """A runtime folder, as far as the agent looks at it."""
    made = tmp_path / ".runtime-1"
    (made / "lib/programs").mkdir(parents=True)
    (made / "bin").mkdir()
    (made / "lib/ld.so").write_text(LOADER)
    (made / "lib/ld.so").chmod(0o755)
    for name in ("mpirt", "mpirt-runtime-install", "mpirt-switchboard"):
        (made / f"lib/programs/{name}.pyc").touch()
    for name in ("mpirt", "mpirt-runtime-install", "mpirt-rsh", "ssh"):
        shutil.copy(program, made / "bin" / name)
    (tmp_path / "bin").symlink_to(".runtime-1/bin")
    return made


def started(
    program: Path, *words: str, called: str = "", environment: Mapping[str, str] | None = None
) -> tuple[list[str], list[str]]:
    """Words and variables that the folder's Python gets."""
    done = subprocess.run(
        [called or program, *words], executable=program, check=True, capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], "MPIRT_SWITCHBOARD": "off", **(environment or {})},
    )  # fmt: skip
    assert done.stderr == ""
    before, _, after = done.stdout.partition("--\n")
    return before.splitlines(), after.splitlines()


def expected(folder: Path, name: str, called: str, *words: str) -> list[str]:
    return [
        "--inhibit-cache", "--library-path", f"{folder}/lib", "--argv0", f"{folder}/bin/{name}",
        f"{folder}/lib/python", "-I", "-S", f"{folder}/lib/programs/{name}.pyc", called, *words,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["mpirt", "mpirt-runtime-install"])
def test_its_name_says_which_program_is_started(folder: Path, tmp_path: Path, name: str) -> None:
    words, _ = started(tmp_path / "bin" / name, "a b", "")

    assert words == expected(folder, name, str(tmp_path / "bin" / name), "a b", "")


def test_the_name_of_a_link_to_it_is_passed_on(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(folder / "bin/mpirt")

    words, _ = started(tmp_path / "elsewhere", "ps", called="other")

    assert words == expected(folder, "mpirt", "other", "ps")


@pytest.mark.parametrize("name", ["mpirt-rsh", "ssh"])
def test_an_agent_starts_the_switchboard_of_its_folder(folder: Path, name: str) -> None:
    (folder / "lib/ld.so").write_text(LOADER.replace("done\n", "done >&2\n"))

    done = subprocess.run([folder / "bin" / name, "--direct", "w-0"], capture_output=True, text=True, check=False)

    *words, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (255, "")
    board = f"{folder}/lib/programs/mpirt-switchboard.pyc"
    assert words == [*expected(folder, name, "")[:-2], board, "mpirt-switchboard"]
    assert last == "mpirt-rsh: no switchboard: it ended before it said a word"


def test_a_first_process_starts_the_switchboard_beside_its_command(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "place"
    (folder / "lib/ld.so").write_text(LOADER.replace("--\n", f"--\ntouch {there}/started\n"))
    shutil.copy(folder / "bin/mpirt", folder / "bin/mpirt-init")
    waits = f"until [ -e {there}/started ]; do sleep 0.01; done; exit 7"

    done = subprocess.run(
        [folder / "bin/mpirt-init", "sh", "-c", waits],
        env={"PATH": os.environ["PATH"], "MPIRT_SWITCHBOARD": str(there)},
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (7, b"", b"")


def test_words_of_the_console_script_mean_nothing_in_a_folder(folder: Path) -> None:
    words, _ = started(folder / "bin/mpirt", "--python", "a", "b", "c")

    assert words == expected(folder, "mpirt", str(folder / "bin/mpirt"), "--python", "a", "b", "c")


def test_one_that_stands_alone_finds_the_folder_by_a_variable(folder: Path, tmp_path: Path, program: Path) -> None:
    alone = tmp_path / "alone/place/mpirt"
    alone.parent.mkdir(parents=True)
    shutil.copy(program, alone)

    words, _ = started(alone, environment={"MPIRT_RUNTIME": str(tmp_path)})

    assert words == expected(folder, "mpirt", str(alone))


def test_what_would_mislead_the_folders_python_is_held(folder: Path) -> None:
    given = {"LD_PRELOAD": "/x.so", "LC_ALL": "de_DE", "GLIBC_TUNABLES": "y", "LANG": "C"}

    _, variables = started(folder / "bin/mpirt", environment=given)

    held = {f"MPIRT_HELD_{name}={given[name]}" for name in ("LD_PRELOAD", "LC_ALL", "GLIBC_TUNABLES")}
    assert held | {"LC_ALL=C", "LANG=C"} <= set(variables)
    assert not [one for one in variables if one.startswith(("LD_", "GLIBC"))]


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        ("lib/programs/mpirt-switchboard.pyc", "ssh: mpirt-switchboard is missing in "),
        ("lib/ld.so", "ssh: its folder is neither around it nor in $MPIRT_RUNTIME nor in /opt/mpirt\n"),
    ],
)
def test_what_is_missing_is_said(folder: Path, harm: str, message: str) -> None:
    (folder / harm).unlink()

    done = subprocess.run([folder / "bin/ssh"], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 255
    assert done.stderr.startswith(message)


def test_a_path_that_the_loader_would_misread_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "a:b")

    done = subprocess.run([tmp_path / "a:b/bin/ssh"], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 255
    assert done.stderr == f"ssh: can't run in a folder with ':', ';' or '$' in its path: {tmp_path}/a:b\n"
