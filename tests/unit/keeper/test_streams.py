"""Output and stdin: each byte once and in order, whatever happens to the connection."""

from __future__ import annotations

import hashlib
import os
import random
import select
import signal
import struct
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from testbed.kube.wait import until
from tests.unit.keeper.client import DEADLINE, Agent, Broken, Frame, Kind

MIB = 1 << 20
# Counts to the last byte, so that a byte that is lost, doubled or moved changes what comes.
COUNTER = """
import os, random, sys
data = random.Random(7).randbytes(11 << 20)
for stream, part in ((1, data), (2, data[: 1 << 20])):
    part = memoryview(part)
    while part:
        part = part[os.write(stream, part[:70001]):]
"""
# Writes for longer than a second after its end, and never waits as long between two lines.
AFTER_THE_END = """
import os, time
if not os.fork():
    for number in range(15):
        time.sleep(0.1)
        os.write(1, b"%d\\n" % number)
"""
COUNTED = random.Random(7).randbytes(11 << 20)


def cut_at_random(agent: Agent, chance: random.Random) -> None:
    """The bridge dies in the middle of whatever it does, and another one attaches."""
    agent.link.cut()
    agent.attach(again=True)
    agent.until_true(lambda: chance.random() < 0.3)


def test_output_comes_once_and_in_order_over_many_connections(agent: Agent) -> None:
    chance = random.Random(1)
    agent.start(sys.executable, "-c", COUNTER)

    cuts = 0
    while len(agent.out) < len(COUNTED):
        size = len(agent.out) + chance.randrange(MIB)
        agent.until_true(lambda size=size: len(agent.out) >= min(size, len(COUNTED)))  # type: ignore[misc]
        cut_at_random(agent, chance)
        cuts += 1
    ended = agent.until_exit()

    assert cuts > 10
    assert (ended.code, ended.was_held) == (0, False)
    assert agent.out == COUNTED
    assert agent.err == COUNTED[:MIB]


# Starts a program whose stdout is a socket, and passes on what comes of it.
BEHIND_A_SOCKET = """
import os, socket, subprocess, sys
ours, its = socket.socketpair()
program = subprocess.Popen(sys.argv[1:], stdout=its)
its.close()
while data := ours.recv(1 << 20):
    while data:
        data = data[os.write(1, data):]
"""


def test_output_arrives_where_the_execs_stdout_can_not_be_opened_a_second_time(keeper: Path) -> None:
    with Agent(keeper, prefix=[sys.executable, "-c", BEHIND_A_SOCKET]) as agent:
        agent.start(sys.executable, "-c", COUNTER)
        ended = agent.until_exit()

    assert (ended.code, agent.out == COUNTED, agent.err == COUNTED[:MIB]) == (0, True, True)


def send_stdin(agent: Agent, data: bytes, sent: int) -> int:
    """One frame more, if the window has room for it; how much is sent now."""
    end = min(sent + 30_001, len(data), agent.taken + MIB)
    if end > sent:
        agent.send(agent.frame(Kind.STDIN, sent, data[sent:end]))
    else:
        agent.until(Kind.TAKEN, Kind.OUT)
    return end


def test_stdin_arrives_once_and_in_order_over_many_connections(agent: Agent) -> None:
    chance = random.Random(2)
    agent.start("/usr/bin/sha256sum", has_stdin=True)

    sent = 0
    while sent < len(COUNTED):
        sent = send_stdin(agent, COUNTED, sent)
        if chance.random() < 0.05:
            agent.link.cut()
            agent.attach(again=True)
            sent = agent.taken
    agent.send(agent.frame(Kind.STDIN_END, len(COUNTED)))
    agent.until_exit()

    assert agent.out.split()[0] == hashlib.sha256(COUNTED).hexdigest().encode()


def test_stdin_that_came_already_is_ignored(agent: Agent) -> None:
    agent.start("/bin/cat", has_stdin=True)

    agent.send(agent.frame(Kind.STDIN, 0, b"abcd"), agent.frame(Kind.STDIN, 0, b"abcd"))
    agent.send(agent.frame(Kind.STDIN, 2, b"cdef"), agent.frame(Kind.STDIN, 1, b"b"))
    agent.send(agent.frame(Kind.STDIN_END, 6), agent.frame(Kind.STDIN_END, 6))
    agent.until_exit()

    assert agent.out == b"abcdef"


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(Frame(Kind.STDIN, 1, 1, b"b"), id="a gap"),
        pytest.param(Frame(Kind.STDIN, 1, 1 << 64 - 1, b"b"), id="a huge gap"),
        pytest.param(Frame(Kind.STDIN_END, 1, 1), id="an end beyond what came"),
    ],
)
def test_stdin_that_skips_something_ends_the_connection_and_not_the_command(agent: Agent, wrong: Frame) -> None:
    agent.start("/bin/cat", has_stdin=True)

    agent.send(wrong)
    agent.until_broken()
    agent.attach(again=True)
    agent.send(agent.frame(Kind.STDIN, 0, b"all"), agent.frame(Kind.STDIN_END, 3))
    agent.until_exit()

    assert agent.out == b"all"


def test_more_stdin_than_may_be_under_way_ends_the_connection(agent: Agent) -> None:
    agent.start("/bin/sleep", "1000", has_stdin=True)
    piece = bytes(32 * 1024)

    with pytest.raises(Broken):
        # The pipe takes some of it, too.
        for number in range(64):
            agent.send(agent.frame(Kind.STDIN, number * len(piece), piece))
        agent.until(Kind.EXIT)
    agent.attach(again=True)

    assert agent.taken == 64 * 1024


def test_stdin_may_come_before_start(agent: Agent) -> None:
    agent.attach()
    agent.send(agent.frame(Kind.STDIN, 0, b"early"), agent.frame(Kind.STDIN_END, 5))
    agent.start("/bin/cat", has_stdin=True)

    agent.until_exit()

    assert agent.out == b"early"


def test_a_command_that_closes_its_stdin_is_reported_and_the_rest_counts_as_taken(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "exec <&-; echo closed; read -r x <&2; sleep 1000", has_stdin=True)

    agent.until_true(lambda: any(frame.kind is Kind.TAKEN and frame.payload == b"\1" for frame in agent.seen))
    for number in range(64):
        agent.send(agent.frame(Kind.STDIN, number * 32768, bytes(32768)))
    agent.until_true(lambda: agent.taken > MIB)
    # The shell closes its stdin before it writes.
    agent.until_true(lambda: agent.out == b"closed\n")
    # Frames are read in order: whatever came before the answer to this one has been read.
    agent.kill(signal.SIGCONT)
    agent.until(Kind.CONTROLLED)
    agent.attach(again=True)

    assert agent.taken == 2 * MIB


def test_taken_stdin_is_told_by_the_quarter_of_what_may_be_under_way(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "head -c 300000 | tail -c 5; sleep 1000", has_stdin=True)
    piece = bytes(30_000)

    for number in range(10):
        agent.send(agent.frame(Kind.STDIN, number * len(piece), piece))
    agent.until_true(lambda: agent.out == bytes(5))
    told = [frame.number for frame in agent.seen if frame.kind is Kind.TAKEN]

    assert len(told) == 1
    assert MIB // 4 <= told[0] <= 300_000


def test_stdin_is_dev_null_where_there_is_none(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "readlink /proc/self/fd/0; cat")

    agent.until_exit()

    assert agent.out == b"/dev/null\n"


def memory_of(agent: Agent) -> int:
    """The keeper's resident memory, in KiB."""
    status = Path(f"/proc/{agent.keeper_pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def is_blocked(agent: Agent) -> bool:
    """Whether the command's stdout has no room."""
    stdout = os.open(f"/proc/{agent.seen_pid()}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [stdout], [], 0)[1]
    finally:
        os.close(stdout)


def test_output_that_nobody_acknowledges_blocks_the_command_and_takes_no_more_memory(agent: Agent) -> None:
    agent.acknowledges = False
    agent.start("/bin/sh", "-c", "head -c 5000000 /dev/zero; echo end >&2")
    agent.until_true(lambda: len(agent.out) >= 2 * MIB)
    until(lambda: is_blocked(agent), within=DEADLINE, what="the command to fill its pipe")
    # Whatever the keeper would still read it has sent before the second answer.
    for number in (1, 2):
        agent.send(agent.frame(Kind.BEAT, number))
        agent.until(Kind.BEAT_BACK)

    assert len(agent.out) == 2 * MIB
    assert agent.err == b""
    assert memory_of(agent) < 4096

    agent.acknowledges = True
    agent.send(agent.frame(Kind.ACK, payload=struct.pack("<QQ", 2 * MIB, 0)))
    ended = agent.until_exit()
    assert (ended.out, agent.err) == (5000000, b"end\n")


def test_an_acknowledgement_of_what_never_was_ends_the_connection(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "echo out; sleep 1000")
    agent.until(Kind.OUT)

    agent.send(agent.frame(Kind.ACK, payload=struct.pack("<QQ", 5, 0)))
    agent.until_broken()
    agent.attach(again=True)

    assert agent.out == b"out\n"


def test_a_command_may_make_its_stdout_nonblocking(agent: Agent) -> None:
    script = (
        "import os, select\nos.set_blocking(1, False)\nleft = 3 << 20\n"
        "while left:\n select.select([], [1], [])\n try: left -= os.write(1, bytes(min(left, 100_000)))\n"
        " except BlockingIOError: pass\n"
    )
    agent.start(sys.executable, "-c", script)

    ended = agent.until_exit()

    assert (ended.code, ended.out) == (0, 3 << 20)


def test_a_beat_is_answered_with_its_number_while_output_flows(agent: Agent) -> None:
    agent.start("/bin/cat", "/dev/zero")
    agent.until(Kind.OUT)

    agent.send(agent.frame(Kind.BEAT, 0xFEDCBA9876543210))
    answer = agent.until(Kind.BEAT_BACK)

    assert answer.number == 0xFEDCBA9876543210


def test_output_written_by_a_process_substitution_after_the_end_arrives(agent: Agent) -> None:
    agent.start("/bin/bash", "-c", "exec > >(sleep 0.3; cat); echo late")

    ended = agent.until_exit()

    assert (ended.was_held, agent.out) == (False, b"late\n")


def test_a_silent_background_process_that_holds_stdout_delays_the_exit_by_a_second(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "sleep 1000 & echo $!; exit 4")

    ended = agent.until_exit()
    background = Path("/proc", agent.out.decode().strip())

    assert (ended.code, ended.was_held) == (4, True)
    assert background.exists()
    assert (background / "comm").read_text() == "sleep\n"
    agent.done()
    os.kill(int(background.name), signal.SIGKILL)


def test_exit_comes_after_all_output_and_is_repeated_to_a_later_connection(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "head -c 300000 /dev/zero; kill -9 $$")
    first = agent.until_exit()

    agent.link.cut()
    agent.attach(again=True)
    second = agent.until_exit()

    assert first == second
    assert (first.was_killed, first.code, first.out) == (True, 9, 300000)
    assert [*takewhile(lambda frame: frame.kind is not Kind.EXIT, agent.seen)][-1].kind is Kind.OUT


def test_output_after_the_end_has_a_second_from_its_last_byte_on(agent: Agent) -> None:
    agent.start(sys.executable, "-c", AFTER_THE_END)

    ended = agent.until_exit()

    lines = b"".join(b"%d\n" % number for number in range(15))
    assert (ended.code, ended.was_held, agent.out) == (0, False, lines)
