"""The console script becomes the agent, or runs the direct form where that can't be."""

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
DIRECT = "import os, sys\ndef main():\n    sys.stdout.buffer.write(b'direct ' + os.fsencode(sys.argv[-1]))\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An installation: entry.py as it is, and both of what it starts as programs that tell."""
    for name in ("__init__.py", "rsh/__init__.py", "rsh/entry.py", "agent/__init__.py"):
        (tmp_path / "mpirt" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / "mpirt" / name, tmp_path / "mpirt" / name)
    (tmp_path / "mpirt/rsh/direct.py").write_text(DIRECT)
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


def test_the_direct_form_can_be_asked_for(root: Path) -> None:
    assert run(root, "--direct", b"\xff") == b"direct \xff"
    assert run(root, "w-0", MPIRT_SWITCHBOARD="off") == b"direct w-0"


@pytest.mark.parametrize("harm", ["no file", "no mode", "no program"])
def test_the_direct_form_runs_where_the_agent_can_not(root: Path, harm: str) -> None:
    program = root / "mpirt/agent" / agent.file_name(ARCHITECTURE)
    match harm:
        case "no file":
            program.unlink()
        case "no mode":
            program.chmod(0o644)
        case _:
            program.write_bytes(b"\x7fELF")

    assert run(root, "w-0") == b"direct w-0"


def test_little_is_imported_before() -> None:
    code = (
        "import sys; before = set(sys.modules); import mpirt.rsh.entry, mpirt.agent;"
        "print(*sorted(set(sys.modules) - before))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, check=True, capture_output=True, text=True, timeout=60
    )

    assert set(told.stdout.split()) <= {"mpirt", "mpirt.agent", "mpirt.rsh", "mpirt.rsh.entry", "__future__"}
