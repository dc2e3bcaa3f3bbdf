"""Our stdin is the command's: byte for byte, to its end, and it keeps nobody waiting."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.apiserver.channel import V4, V5
from tests.protocol.rsh.agent import Ground, closing

MIB = 1 << 20


@pytest.mark.parametrize(("protocol", "size"), [(V4, 16 * MIB), (V5, MIB)])
def test_every_byte_passes_through_cat(ground: Ground, protocol: str, size: int) -> None:
    ground.server.protocols = (protocol,)
    noise = os.urandom(size)

    ended = ground.run("w-0", "cat", stdin=noise)

    assert (ended.code, ended.errors) == (0, "")
    assert ended.output == noise


def test_a_file_is_read_to_its_end(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(range(256)) * 1024)

    with (tmp_path / "in").open("rb") as file:
        ended = ground.start("w-0", "cat", stdin=file).wait()

    assert (ended.code, ended.output) == (0, bytes(range(256)) * 1024)


@pytest.mark.parametrize("how", ["</dev/null", "<&-"])
def test_a_stdin_without_bytes_is_its_end(ground: Ground, how: str) -> None:
    ended = ground.start("w-0", "cat; echo end", before=closing(how)).wait()

    assert (ended.code, ended.output) == (0, b"end\n")


def test_stdin_is_left_to_others_with_n(ground: Ground) -> None:
    agent = ground.start("-n", "w-0", "cat; echo end", stdin=subprocess.PIPE)

    assert agent.line() == b"end\n"
    assert agent.wait(b"for somebody else").code == 0


def test_a_stdin_that_never_ends_keeps_no_agent_waiting(ground: Ground) -> None:
    agent = ground.start("w-0", "echo out; exit 3", stdin=subprocess.PIPE)

    assert agent.process.wait(20) == 3


def test_stdin_that_the_command_does_not_read_keeps_no_agent_waiting(ground: Ground) -> None:
    ended = ground.run("w-0", "exit 3", stdin=bytes(4 * MIB))

    assert (ended.code, ended.errors) == (3, "")


def test_a_line_arrives_when_it_is_written(ground: Ground) -> None:
    agent = ground.start("w-0", "while read -r line; do echo got $line; done", stdin=subprocess.PIPE)

    agent.feed(b"one\n")
    first = agent.line()
    agent.feed(b"two\n")

    assert (first, agent.line()) == (b"got one\n", b"got two\n")
    assert agent.wait(b"").code == 0
