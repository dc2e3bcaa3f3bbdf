"""A command that a keeper holds: what comes of it while connections, servers and agents come and go."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.shell import End
from tests.protocol.rsh.agent import Agent, Ground

HELD = {"MPIRT_KEEPER": "on"}
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"


@pytest.fixture
def held(ground: Ground, tmp_path: Path) -> Iterator[Ground]:
    """The worker, with a folder of its own for what is uploaded."""
    yield ground


def begun(ground: Ground, command: str, **more: str) -> Agent:
    """An agent whose command has written its first line."""
    agent = ground.start("w-0", command, env={**HELD, **more})
    assert agent.line() == b"begun\n"
    return agent


class TestOneConnection:
    def test_the_commands_code_and_output_are_ours(self, held: Ground) -> None:
        ended = held.run("w-0", "echo out; echo err >&2; exit 7", env=HELD)

        assert (ended.code, ended.output, ended.errors) == (7, b"out\n", "err\n")

    def test_stdin_passes_through(self, held: Ground) -> None:
        data = os.urandom(1 << 20)
        ended = held.run("w-0", "cat", stdin=data, env=HELD)

        assert (ended.code, ended.output == data, ended.errors) == (0, True, "")


class TestALostConnection:
    @pytest.mark.parametrize("how", [End.EOF, End.RESET], ids=str)
    def test_costs_no_byte(self, held: Ground, how: End) -> None:
        go = held.folder / "go"
        agent = begun(held, f"echo begun; until [ -e {go} ]; do sleep 0.05; done; seq 100000; exit 3")
        held.server.wait_for_session().end(how)
        held.server.wait_for_session(2)
        go.touch()
        ended = agent.wait()

        assert ended.errors == ""
        assert ended.code == 3
        assert ended.output == b"".join(b"%d\n" % number for number in range(1, 100001))

    def test_a_signal_meanwhile_arrives(self, held: Ground) -> None:
        agent = begun(held, "trap 'echo told; exit 5' USR1; echo begun; while :; do sleep 0.05; done")
        held.server.wait_for_session().end(End.EOF)
        agent.process.send_signal(signal.SIGUSR1)
        ended = agent.wait()

        assert (ended.code, ended.output) == (5, b"told\n")


def test_term_lets_the_command_say_its_last_words(held: Ground) -> None:
    agent = begun(held, "trap 'echo bye; exit 9' TERM; echo begun; while :; do sleep 0.05; done")
    agent.process.terminate()
    ended = agent.wait()

    assert (ended.code, ended.output) == (9, b"bye\n")
