"""The lease: how long the command outlives its connection."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import pytest

from tests.unit.keeper.client import Agent, Kind, folders


def wait_for_the_end(agent: Agent) -> float:
    """How long the keeper lives from now on, in seconds."""
    began = time.monotonic()
    try:
        watched = pidfd(agent.keeper_pid)
    except ProcessLookupError:
        return 0.0
    with open(watched, closefd=True) as handle:  # noqa: PTH123 - a descriptor has no path
        assert select.select([handle], [], [], 20)[0], "the keeper lives"
    return time.monotonic() - began


def pidfd(pid: int) -> int:
    """A descriptor that becomes readable when the process ends."""
    return os.pidfd_open(pid)


@pytest.mark.parametrize(("lease", "least"), [pytest.param(0, 0.0, id="none"), pytest.param(700, 0.7, id="some")])
def test_a_lost_connection_ends_the_command_after_the_lease_with_a_handler_and_then_for_good(
    agent: Agent, tmp_path: Path, lease: int, least: float
) -> None:
    log = tmp_path / "log"
    script = f'trap "echo term >>{log}" TERM; echo ready; while :; do sleep 0.05; done'
    agent.start("/bin/sh", "-c", script, lease=lease, grace=600)
    agent.until(Kind.OUT)

    agent.link.cut()
    lived = wait_for_the_end(agent)

    assert log.read_text() == "term\n"
    assert lived >= least + 0.5
    assert folders(agent.nonce) == []


def test_an_attach_within_the_lease_keeps_the_command(agent: Agent) -> None:
    agent.start("/bin/cat", has_stdin=True, lease=400)

    for _ in range(4):
        agent.link.cut()
        agent.attach(again=True)
        with pytest.raises(TimeoutError):
            agent.until(Kind.EXIT, within=0.2)
    agent.send(agent.frame(Kind.STDIN_END, 0))

    assert agent.until_exit().code == 0


def test_a_connected_agent_may_be_silent_for_longer_than_a_short_lease(agent: Agent) -> None:
    agent.start("/bin/cat", has_stdin=True, lease=100)

    with pytest.raises(TimeoutError):
        agent.until(Kind.EXIT, within=1)
    agent.send(agent.frame(Kind.STDIN_END, 0))

    assert agent.until_exit().code == 0


def test_an_exit_that_nobody_acknowledges_is_kept_for_the_lease(agent: Agent) -> None:
    agent.start("/bin/true", lease=700)
    agent.until_exit()

    agent.link.cut()
    lived = wait_for_the_end(agent)

    assert 0.6 <= lived < 10


def test_a_command_that_ended_while_nobody_was_connected_is_told_to_the_next_connection(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "read -r x; echo late; exit 5", has_stdin=True, lease=20_000)
    agent.send(agent.frame(Kind.STDIN, 0, b"\n"))
    agent.link.cut()

    agent.attach(again=True)
    if agent.taken == 0:
        agent.send(agent.frame(Kind.STDIN, 0, b"\n"))

    assert agent.until_exit().code == 5
    assert agent.out == b"late\n"


def test_an_ended_command_leaves_output_that_a_later_connection_gets(agent: Agent) -> None:
    agent.acknowledges = False
    agent.start("/bin/sh", "-c", "head -c 900000 /dev/zero", lease=1000)
    agent.until(Kind.OUT)
    agent.link.cut()

    agent.acknowledges = True
    agent.attach(again=True)

    assert agent.until_exit().out == 900000


def test_a_stopped_keeper_counts_no_silence_against_an_agent_that_spoke(agent: Agent) -> None:
    agent.start("/bin/cat", has_stdin=True, lease=0)
    os.kill(agent.keeper_pid, signal.SIGSTOP)
    agent.send(agent.frame(Kind.BEAT, 3))
    os.kill(agent.keeper_pid, signal.SIGCONT)

    assert agent.until(Kind.BEAT_BACK).number == 3
