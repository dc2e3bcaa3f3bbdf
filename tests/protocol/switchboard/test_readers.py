"""Agents whose readers stand still: nobody else waits, and memory is bounded."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path

import pytest

from tests.apiserver.shell import End
from tests.protocol.switchboard.agents import Agent, Board
from tests.protocol.switchboard.yard import Yard
from tests.support import sizes

MIB = 1024 * 1024
WINDOW = 256 * 1024


def resident(board: Board) -> int:
    """The memory of a switchboard, in bytes."""
    text = Path(f"/proc/{board.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS"))


def settled(board: Board) -> int:
    """Its memory once it does not grow any more."""
    waiting, calm, most = threading.Event(), 0, 0
    while calm < 20:
        waiting.wait(0.05)
        now = resident(board)
        calm = calm + 1 if now <= most else 0
        most = max(most, now)
    return most


def stuck(agent: Agent) -> None:
    """
    Hear all that is sent to one who writes nothing.

    Of a command that writes to both streams one may be full, and the room of all used up, before the other begins:
    then the command is not read any more.
    """
    agent.writes = False
    agent.until(lambda command: WINDOW in (len(command.output), len(command.errors)))


def go_on(agent: Agent) -> None:
    agent.writes = True
    agent.tell_written()


def median_echo(agent: Agent, times: int = 50) -> float:
    """How long a line takes to a command and back."""
    took = []
    for _ in range(times):
        length = len(agent.command.output)
        begin = time.monotonic()
        agent.send_stdin(b"line\n")
        agent.until(lambda command, length=length: len(command.output) == length + 5)  # type: ignore[misc]
        took.append(time.monotonic() - begin)
    return statistics.median(took)


def test_others_go_on_while_one_is_stuck(yard: Yard) -> None:
    yard.begin()
    echo = yard.agent("cat", has_stdin=True)
    echo.until(lambda command: command.room > 0)
    before = median_echo(echo)
    agents = [yard.agent("yes") for _ in range(4)]
    for agent in agents:
        stuck(agent)
    settled(yard.board)
    after = median_echo(echo)

    print(f"a line took {before * 1000:.1f} ms, and {after * 1000:.1f} ms beside those that are stuck")
    assert yard.agent("exit 7").end().code == 7
    assert len(agents[0].command.output) == WINDOW


def test_memory_is_bounded_for_each(yard: Yard) -> None:
    yard.begin()
    yard.agent("true").end()
    before = settled(yard.board)
    agents = [yard.agent("yes >&2 & yes") for _ in range(10)]
    for agent in agents:
        stuck(agent)

    assert settled(yard.board) - before < 10 * 4.5 * MIB + 16 * MIB


# More than may be kept for each, of so many that all of that would be too much.
COUNT, SIZE = sizes.of(merge=30, full=40), sizes.of(merge=2_500_000, full=4_000_000)


def all_stuck(yard: Yard) -> list[Agent]:
    script = f"head -c {SIZE} /dev/zero >&2 & head -c {SIZE} /dev/zero; wait; exit 6"
    agents = [yard.agent(script) for _ in range(COUNT)]
    for agent in agents:
        stuck(agent)
    return agents


def assert_every_byte_arrives(agents: list[Agent]) -> None:
    for agent in agents:
        go_on(agent)
    for agent in agents:
        command = agent.end()
        assert (command.code, len(command.output), len(command.errors)) == (6, SIZE, SIZE)
        assert command.said == []


def test_memory_is_bounded_in_all_and_every_byte_arrives_in_the_end(yard: Yard) -> None:
    yard.begin()
    yard.agent("true").end()
    before = settled(yard.board)
    agents = all_stuck(yard)
    grown = settled(yard.board) - before

    print(f"{COUNT} that are stuck took {grown / MIB:.0f} MiB")
    assert grown < 112 * MIB
    assert_every_byte_arrives(agents)


@pytest.mark.full("half a minute until the silence is noticed; a lost connection costs no byte in test_kills")
def test_a_connection_that_ends_while_it_is_not_read_is_noticed_and_costs_no_byte(yard: Yard) -> None:
    yard.begin()
    agents = all_stuck(yard)
    settled(yard.board)

    execs = len(yard.server.asked("exec"))
    for session in yard.server.sessions[:10]:
        session.end(End.EOF)
    yard.server.wait_for("exec", execs + 10)

    assert_every_byte_arrives(agents)
