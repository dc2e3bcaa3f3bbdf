"""The lease: how long the command outlives its connection."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import pytest

from tests.unit.keeper.client import Agent, By, Kind, folders

LEASES = pytest.mark.parametrize(
    ("lease", "least"), [pytest.param(0, 0.0, id="none"), pytest.param(700, 0.7, id="some")]
)


def wait_for_the_end(agent: Agent) -> float:
    """How long the keeper lives from now on, in seconds."""
    began = time.monotonic()
    try:
        watched = os.pidfd_open(agent.keeper_pid)
    except ProcessLookupError:
        return 0.0
    with open(watched, closefd=True) as handle:  # noqa: PTH123 - a descriptor has no path
        assert select.select([handle], [], [], 20)[0], "the keeper lives"
    return time.monotonic() - began


@LEASES
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


@LEASES
def test_a_failed_start_that_nobody_acknowledges_ends_the_keeper_after_the_lease(
    agent: Agent, lease: int, least: float
) -> None:
    assert agent.start("/nowhere", lease=lease).kind is Kind.FAILED

    agent.link.cut()
    lived = wait_for_the_end(agent)

    assert lived >= least - 0.1
    assert folders(agent.nonce) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_the_keeper_of_a_failed_start(agent: Agent, number: signal.Signals) -> None:
    agent.start("/nowhere")

    os.kill(agent.keeper_pid, number)

    agent.until_broken()
    wait_for_the_end(agent)


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


# At TERM it says so, and ends with 0 when somebody writes to the FIFO.
COPES = 'trap "echo term; read -r x <{0}; exit 0" TERM; echo ready; while :; do sleep 0.05; done'


class TestWhoEndedIt:
    """A command that ends with 0 when it is told to end has not come to its own end."""

    def test_is_the_command_itself(self, agent: Agent) -> None:
        agent.start("/bin/true")

        assert agent.until_exit().by is By.ITSELF

    def test_is_the_lease_though_somebody_is_connected_again(self, agent: Agent, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        agent.start("/bin/sh", "-c", COPES.format(tmp_path / "fifo"), lease=100, grace=60_000)
        agent.until(Kind.OUT)
        agent.link.cut()
        # It is open for writing once the command reads it, at the lease's end.
        with (tmp_path / "fifo").open("w") as fifo:
            agent.attach(again=True)
            fifo.write("\n")
        ended = agent.until_exit()

        assert (ended.code, ended.by) == (0, By.LEASE)

    @pytest.mark.parametrize("by", [By.END, By.SIGNAL], ids=["an end of the agent's", "a signal to the keeper"])
    def test_is_what_told_it_to_end(self, agent: Agent, tmp_path: Path, by: By) -> None:
        agent.start("/bin/sh", "-c", COPES.format(tmp_path / "none"))
        agent.until(Kind.OUT)
        if by is By.END:
            agent.end()
        else:
            os.kill(agent.keeper_pid, signal.SIGTERM)

        assert agent.until_exit().by is by

    def test_is_the_command_itself_if_only_what_it_left_had_to_be_ended(self, agent: Agent) -> None:
        agent.start("/bin/sh", "-c", "sleep 1000 & echo ready; kill -KILL $$")
        agent.until(Kind.OUT)
        # The keeper reports no end of a command while its output is open.
        while Path(f"/proc/{agent.seen_pid()}").exists():
            agent.send(agent.frame(Kind.BEAT))
            agent.until(Kind.BEAT_BACK)
        agent.end()

        assert agent.until_exit().by is By.ITSELF


class TestAnEndWithoutANumber:
    """The agent's own reasons have none: after a takeover nobody knows how many there were."""

    def test_is_given_to_the_command_once_however_often_it_comes(self, agent: Agent, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        agent.start("/bin/sh", "-c", COPES.format(tmp_path / "fifo"), lease=20_000)
        agent.until(Kind.OUT)
        end = b"E\x0f" + (60_000).to_bytes(4, "little")
        agent.send(agent.frame(Kind.CONTROL, 0, end))
        agent.until_true(lambda: agent.out == b"ready\nterm\n")
        agent.link.cut()
        agent.attach(again=True)
        agent.send(agent.frame(Kind.CONTROL, 0, end))
        (tmp_path / "fifo").write_text("\n")
        ended = agent.until_exit()

        assert (ended.code, ended.by) == (0, By.END)
        assert agent.out == b"ready\nterm\n"

    def test_leaves_its_number_to_the_next_control(self, agent: Agent) -> None:
        agent.start(
            "/bin/sh", "-c", 'trap "" TERM; trap "echo usr; exit 3" USR1; echo; while :; do sleep 0.05; done'
        )
        agent.until(Kind.OUT)
        agent.send(agent.frame(Kind.CONTROL, 0, b"E\x0f" + (60_000).to_bytes(4, "little")))
        agent.kill(signal.SIGUSR1)

        assert agent.until_exit().code == 3
