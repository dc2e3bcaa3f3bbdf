"""The console script becomes the agent, or runs its substitute where that can't be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from images import build
from mpirt import agent
from tests.unit.layers import PROJECT

ARCHITECTURE = build.architecture()
SCRIPT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from mpirt.rsh.entry import main; sys.exit(main())"
# Tells with which words it was started.
AGENT = '#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done\n'
SUBSTITUTE = """
import os, sys
def run(called, words):
    sys.stdout.buffer.write(b"substitute " + os.fsencode(words[-1]))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An installation: entry.py as it is, and both of what it starts as programs that tell."""
    for name in ("__init__.py", "rsh/__init__.py", "rsh/entry.py", "agent/__init__.py"):
        (tmp_path / "mpirt" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / "mpirt" / name, tmp_path / "mpirt" / name)
    (tmp_path / "mpirt/rsh/substitute.py").write_text(SUBSTITUTE)
    made = tmp_path / "mpirt/agent" / agent.file_name(ARCHITECTURE)
    made.write_text(AGENT)
    made.chmod(0o755)
    return tmp_path


def run(root: Path, *words: str | bytes, **environment: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, root, *words], check=True, capture_output=True, timeout=60,
        env={name: value for name, value in os.environ.items() if name != "MPIRT_SWITCHBOARD"} | environment,
    )  # fmt: skip
    assert done.stderr == b""
    return done.stdout


def test_the_agent_gets_the_interpreter_the_package_and_the_words_as_they_came(root: Path) -> None:
    told = run(root, "w-0", b"\xff a", "")

    assert told.split(b"\n") == [
        b"--python", os.fsencode(sys.executable), os.fsencode(root), b"-c", b"w-0", b"\xff a", b"", b"",
    ]  # fmt: skip


@pytest.mark.parametrize("harm", ["no file", "no mode", "no program"])
def test_the_substitute_runs_where_the_agent_can_not(root: Path, harm: str) -> None:
    program = root / "mpirt/agent" / agent.file_name(ARCHITECTURE)
    match harm:
        case "no file":
            program.unlink()
        case "no mode":
            program.chmod(0o644)
        case _:
            program.write_bytes(b"\x7fELF")

    assert run(root, b"\xff") == b"substitute \xff"
