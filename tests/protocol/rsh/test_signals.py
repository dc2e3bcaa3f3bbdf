"""A signal to the agent ends the command in the pod; so does whatever else ends the agent."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.apiserver.faults import Silence
from tests.apiserver.peer import Peer
from tests.apiserver.shell import End
from tests.protocol.rsh.agent import PATIENCE, Ground
from tests.protocol.rsh.peers import ends_with

ASKING = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]


# Two of the four.
@pytest.mark.sample(2)
@pytest.mark.parametrize("number", ASKING, ids=lambda number: number.name)
class TestASignal:
    def test_a_signal_ends_the_dialling(self, ground: Ground, number: signal.Signals) -> None:
        ground.server.always("exec", Silence())
        agent = ground.start("w-0", "true")
        ground.server.wait_for("exec")

        agent.process.send_signal(number)

        ended = agent.wait()
        assert (ended.code, ended.output, ended.errors) == (128 + number, b"", "")
        assert len(ground.server.asked("exec")) == 1

    def test_a_signal_ends_the_wait_for_a_shell(self, ground: Ground, number: signal.Signals) -> None:
        ground.server.always("exec", Peer(ends_with(End.HANG)))
        agent = ground.start("w-0", "true", env={"MPIRT_LOG": "debug"})
        assert agent.process.stderr is not None
        while b"state: hello" not in agent.process.stderr.readline():
            pass

        agent.process.send_signal(number)

        assert agent.wait().code == 128 + number

    def test_a_signal_ends_the_command(self, ground: Ground, number: signal.Signals) -> None:
        agent = ground.start("w-0", "(sleep 600 &); echo runs; exec sleep 600")
        running = ground.server.wait_for_session()
        agent.line()

        agent.process.send_signal(number)

        ended = agent.wait()
        assert running.finished.wait(PATIENCE)
        assert (ended.code, running.processes()) == (128 + number, [])
        assert ended.lines == []


def test_a_second_signal_gives_the_command_no_grace(ground: Ground) -> None:
    agent = ground.start("w-0", "trap 'echo no' TERM; echo runs; while :; do sleep 600; done")
    running = ground.server.wait_for_session()
    agent.line()

    agent.process.terminate()
    said = agent.line()
    agent.process.terminate()

    assert (said, agent.wait().code) == (b"no\n", 128 + 9)
    assert running.finished.wait(PATIENCE)
    assert running.processes() == []


# Two of the four.
@pytest.mark.sample(2)
@pytest.mark.parametrize("number", ASKING, ids=lambda number: number.name)
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(ground: Ground, number: signal.Signals) -> None:
    ignoring = ["sh", "-c", f'trap "" {number.name.removeprefix("SIG")}; exec "$@"', "sh"]
    agent = ground.start("w-0", "echo runs; read -r line; echo $line", stdin=subprocess.PIPE, before=ignoring)
    agent.line()

    agent.process.send_signal(number)

    ended = agent.wait(b"still here\n")
    assert (ended.code, ended.output) == (0, b"still here\n")


def test_an_agent_that_is_killed_leaves_no_command_behind(ground: Ground) -> None:
    agent = ground.start("w-0", "echo runs; sleep 600 & sleep 600", env={"MPIRT_LEASE": "1"})
    running = ground.server.wait_for_session()
    agent.line()

    agent.process.kill()

    assert running.finished.wait(PATIENCE)
    assert running.processes() == []


def test_a_daemon_does_not_outlive_the_launcher_that_started_it(ground: Ground) -> None:
    orted = ground.folder / "orted"
    orted.write_text("#!/bin/sh\necho runs\nsleep 600\n", encoding="utf-8")
    orted.chmod(0o755)
    launcher = ["sh", "-c", '"$@" & read -r line', "sh"]
    agent = ground.start("w-0", str(orted), stdin=subprocess.PIPE, before=launcher)
    running = ground.server.wait_for_session()
    agent.line()

    agent.process.kill()

    assert running.finished.wait(PATIENCE)
    assert running.processes() == []
