"""The agent's files as they are built: static programs, for the processors that they are named after."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mpirt import agent
from tests.unit.agent.board import Ground, Kind, ended, make_ground
from tests.unit.images.programs import assert_is_static, runner
from tests.unit.layers import PROJECT

EACH = pytest.mark.parametrize("architecture", agent.ARCHITECTURES)


def path_of(architecture: str) -> Path:
    return PROJECT / "mpirt/agent" / agent.file_name(architecture)


@EACH
def test_a_file_is_a_small_static_program_for_its_processor(architecture: str) -> None:
    assert_is_static(path_of(architecture).read_bytes(), architecture)


@EACH
def test_a_program_hands_its_command_over_and_ends_as_it_is_told(architecture: str, tmp_path: Path) -> None:
    """Of the other architecture as well, and that one really: by QEMU."""
    ground = make_ground(tmp_path, path_of(architecture))
    ground.listen()
    words = [*runner(architecture), *map(str, ground.words("w-0", "a b"))]
    process = subprocess.Popen(
        words, env=ground.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    ground.processes.append(process)
    try:
        assert told(ground) == [b"w-0", b"a b"]
        assert ended(process) == (7, b"said", b"")
    finally:
        ground.close()


def told(ground: Ground) -> list[bytes]:
    """The words that came; the command ends with 7."""
    connection = ground.accept()
    words = connection.begin().words
    connection.send(Kind.OUT, b"said")
    connection.written_up_to(4, 0, 0)
    connection.send(Kind.FINISH, b"\x07")
    return words
