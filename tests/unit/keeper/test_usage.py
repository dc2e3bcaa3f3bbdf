"""What the command's processes use, as the keeper tells it: CPU time, memory, and how many they are."""

from __future__ import annotations

import signal
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from testbed.kube.wait import until
from tests.support import sizes
from tests.unit.keeper.client import Agent, Kind, read_exit

MIB = 1 << 20

# What the scripts below have in common.
COMMON = """
import ctypes, mmap, os, signal, sys, time
def burn(seconds):
    while time.process_time() < seconds: pass
def say(text):
    os.write(1, text.encode() + b"\\n")
def share(size, count):
    # Every process has every page in its own table.
    memory = mmap.mmap(-1, size)
    for _ in range(count):
        if os.fork() == 0: break
    for place in range(0, size, 4096): memory[place] = 1
    say("shared")
    return memory
"""


@dataclass(frozen=True, slots=True)
class Used:
    """What USAGE says: seconds, bytes, and a number of processes."""

    cpu: float
    memory: int
    processes: int


NOT_KNOWN = Used(0.0, 0, 0)


def ask(agent: Agent) -> Used:
    """What the command's processes use now."""
    agent.send(agent.frame(Kind.USAGE, 5))
    answer = agent.until(Kind.USAGE_BACK)
    assert answer.number == 5
    microseconds, memory, processes = struct.unpack("<QQI", answer.payload)
    return Used(microseconds / 1e6, memory, processes)


def start(agent: Agent, script: str, *, has_stdin: bool = False) -> None:
    agent.start(sys.executable, "-c", COMMON + script, has_stdin=has_stdin)


def test_a_command_that_burns_cpu_and_holds_memory_is_told_so(agent: Agent) -> None:
    start(agent, "data = bytearray(b'x') * (50 << 20); burn(0.5); say('ready'); time.sleep(1000)")
    agent.until_true(lambda: agent.out == b"ready\n")

    used = ask(agent)

    assert 0.48 <= used.cpu < 3
    assert 50 * MIB <= used.memory < 90 * MIB
    assert used.processes == 1


def test_children_that_were_reaped_by_the_command_or_by_the_keeper_are_counted(agent: Agent) -> None:
    script = """
if os.fork() == 0:
    burn(0.3); os._exit(0)
os.wait()
if os.fork() == 0:
    if os.fork():
        os._exit(0)
    burn(0.3); say("orphan"); os._exit(0)
os.wait(); say("reaped"); time.sleep(1000)
"""
    start(agent, script)
    agent.until_true(lambda: sorted(agent.out.split()) == [b"orphan", b"reaped"])

    until(lambda: ask(agent).processes == 1, within=20, what="the end of the orphan")
    used = ask(agent)

    assert 0.58 <= used.cpu < 5


def test_cpu_time_never_gets_less_when_a_process_ends_that_nobody_reaps(agent: Agent) -> None:
    script = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    burn(0.5); say("burnt"); sys.stdin.read(); os._exit(0)
try:
    os.wait()
except ChildProcessError:
    say("gone")
time.sleep(1000)
"""
    start(agent, script, has_stdin=True)
    agent.until_true(lambda: agent.out == b"burnt\n")

    before = ask(agent)
    agent.send(agent.frame(Kind.STDIN_END, 0))
    agent.until_true(lambda: agent.out.endswith(b"gone\n"))
    after = ask(agent)

    assert (before.processes, after.processes) == (2, 1)
    assert after.cpu >= before.cpu >= 0.48


def test_memory_that_processes_share_counts_once(agent: Agent) -> None:
    start(agent, "memory = share(64 << 20, 3); time.sleep(1000)")
    agent.until_true(lambda: agent.out == b"shared\n" * 4)

    # Where the processors are busy, the time for it may be over before all of it is read.
    until(
        lambda: ask(agent).memory < 128 * MIB,
        within=20,
        what="less than what each has",
        instead=lambda: ask(agent),
    )
    used = ask(agent)

    assert used.processes == 4
    assert used.memory >= 64 * MIB


def test_of_many_processes_the_last_ones_are_counted_by_what_each_has_mapped(agent: Agent) -> None:
    start(agent, "memory = share(16 << 20, 80); time.sleep(1000)")
    agent.until_true(lambda: agent.out == b"shared\n" * 81)

    until(lambda: ask(agent).memory < 30 * 16 * MIB, within=20, what="64 shares", instead=lambda: ask(agent))
    used = ask(agent)

    assert used.processes == 81
    assert used.memory >= 17 * 16 * MIB


def test_a_process_that_no_signal_interrupts_is_counted_by_what_it_has_mapped(agent: Agent) -> None:
    # vfork's parent waits so for its child, which has the same memory.
    script = """
memory = share(64 << 20, 1)
if ctypes.PyDLL(None).vfork() == 0:
    say("stuck")
time.sleep(1000)
"""
    start(agent, script)
    agent.until_true(lambda: agent.out.count(b"stuck\n") == 2)

    used = ask(agent)

    assert used.processes == 4
    assert used.memory >= (2 * 64 + 2 * 32) * MIB


def test_asking_adds_nothing_to_the_commands_cpu_time(agent: Agent) -> None:
    agent.start("/bin/sleep", "1000")
    first = ask(agent)
    before = keeper_children(agent)

    asked = 0
    while asked < sizes.of(merge=100, full=500) or keeper_children(agent) - before <= 0.02:
        asked, last = asked + 1, ask(agent)

    assert last.cpu - first.cpu < 0.01
    until(lambda: has_no_helper(agent), within=20, what="the end of the last helper")


def has_no_helper(agent: Agent) -> bool:
    """One that had to be killed is reaped by the next question."""
    ask(agent)
    return len(psutil.Process(agent.keeper_pid).children()) == 1


def keeper_children(agent: Agent) -> float:
    """The CPU time of those that the keeper has reaped."""
    times = psutil.Process(agent.keeper_pid).cpu_times()
    return float(times.children_user + times.children_system)


def test_before_the_command_runs_nothing_is_known(agent: Agent) -> None:
    agent.attach()

    assert ask(agent) == NOT_KNOWN


def test_after_its_end_its_cpu_time_is_still_known(agent: Agent) -> None:
    start(agent, "burn(0.3)")
    agent.until_exit()

    used = ask(agent)

    assert used.cpu >= 0.28
    assert (used.memory, used.processes) == (0, 0)


@pytest.mark.usefixtures("root")
def test_nothing_is_known_where_proc_is_missing(keeper: Path) -> None:
    hidden = ("unshare", "--mount", "/bin/sh", "-c", 'mount -t tmpfs none /proc; exec "$0" "$@"')
    with Agent(keeper, prefix=hidden) as agent:
        start(agent, "burn(0.2); say('ready'); time.sleep(1000)")
        agent.until_true(lambda: agent.out == b"ready\n")

        assert ask(agent) == NOT_KNOWN


def test_of_several_questions_while_nobody_reads_the_last_one_is_answered(agent: Agent) -> None:
    agent.acknowledges = False
    agent.start("/bin/cat", "/dev/zero")
    written = Path(f"/proc/{agent.seen_pid()}/io")
    until(
        lambda: int(written.read_text().split()[3]) >= 2 * MIB,
        within=20, what="more output than a socket takes", instead=written.read_text,
    )  # fmt: skip

    agent.link.say(*(agent.frame(Kind.USAGE, number) for number in (1, 2, 3)))
    answer = agent.until(Kind.USAGE_BACK)
    agent.send(agent.frame(Kind.BEAT, 9))
    agent.until(Kind.BEAT_BACK)

    assert answer.number == 3
    assert [frame.kind for frame in agent.seen].count(Kind.USAGE_BACK) == 1


def test_a_question_is_answered_while_output_flows(agent: Agent) -> None:
    agent.start("/bin/cat", "/dev/zero")
    agent.until(Kind.OUT)

    assert ask(agent).processes == 1


def test_questions_during_the_grace_hide_nothing_that_is_started_then(agent: Agent) -> None:
    agent.start("/bin/sh", "-c", "for i in 1 2 3; do echo $i; sleep 1000; done")
    agent.until_true(lambda: agent.out == b"1\n")
    until(lambda: ask(agent).processes == 2, within=20, what="the first of them")

    agent.end(grace=15_000)
    agent.send(agent.frame(Kind.USAGE))
    while (answer := agent.until(Kind.USAGE_BACK, Kind.EXIT)).kind is not Kind.EXIT:
        agent.send(agent.frame(Kind.USAGE))
    ended = read_exit(answer)

    assert (ended.was_killed, ended.code) == (True, signal.SIGTERM)
