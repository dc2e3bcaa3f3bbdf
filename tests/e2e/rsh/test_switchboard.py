"""
Many commands by one switchboard.

No command ends if the switchboard is killed. An agent that is killed, or that nobody reads, holds up no other one.
`mpirt ps` shows what each command uses in its pod.
"""

from __future__ import annotations

import json
import os
import select
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from testbed.ground import Namespace
from testbed.kube.wait import by_the_clock, until
from tests.e2e.rsh import agent, hard, jobworkers
from tests.e2e.rsh.remains import REAPS, same_as, seen
from tests.promises import promise
from tests.support import sizes, switchboards

Workers = Callable[[int, str], list[str]]

# They use all processors.
pytestmark = pytest.mark.alone

_AGENTS = sizes.of(merge=24, full=64)
_LINES, _BLOCK = 20_000, 500
_PADDING = "0123456789abcdef" * 4
_GO = "/tmp/go"
# A block of lines, then a pause. Near the end it waits, so that none is through before both deaths.
_NUMBERED = f"""
n=0
while [ $n -lt {_LINES} ]; do
    n=$((n + 1))
    echo "$n {_PADDING}"
    [ $((n % {_BLOCK})) -ne 0 ] || sleep 0.25
    [ $n -ne {_LINES - _BLOCK} ] || until [ -e {_GO} ]; do sleep 1; done
done
"""
_EXPECTED = b"".join(b"%d %s\n" % (number, _PADDING.encode()) for number in range(1, _LINES + 1))

_ECHOES, _ROUNDS = 8, 50
_TICKS = "n=0; while [ $n -lt 6 ]; do n=$((n + 1)); echo $n; sleep 1; done; exit 7"
_BUSY = "echo running; while :; do :; done"
# A shell's variable of 30 MB.
_LARGE = r"x=$(head -c 30000000 /dev/zero | tr '\0' x); echo running; sleep 1000; echo $x"


@pytest.fixture(autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the switchboard listens, which each test has for itself."""
    for folder in switchboards.place(tmp_path_factory.mktemp("board")):
        with switchboards.used(folder):
            yield folder


@promise("Commands go on when their switchboard is killed, and every byte arrives once.", of="mpirt-rsh")
def test_commands_go_on_when_their_switchboard_is_killed_twice_and_every_byte_arrives_once(
    namespace: Namespace, folder: Path
) -> None:
    # With a keeper that is no file of the commands'.
    pods = jobworkers.start(namespace, 4, "busybox", container={"command": REAPS})
    before = {pod: seen(namespace, pod) for pod in pods}
    began = time.monotonic()
    with started(namespace, pods, _AGENTS, _NUMBERED) as members:
        killed = [killed_when_all_are_at(share, members, folder) for share in (0.25, 0.5)]
        for pod in pods:
            namespace.kubectl.execute(pod, "touch", _GO)
        ends = [member.end(within=120) for member in members]
    for pod in pods:
        namespace.kubectl.execute(pod, "rm", _GO)

    print(f"{_AGENTS} agents, {_AGENTS * len(_EXPECTED) / 1e6:.0f} MB: {time.monotonic() - began:.1f} s")
    assert len(set(killed)) == 2
    assert set(ends) == {(0, "")}
    assert [number for number, member in enumerate(members) if member.output != _EXPECTED] == []
    for pod in pods:
        same_as(before[pod], namespace, pod)


@promise("A command goes on when its private switchboard is killed, and every byte arrives once.", of="mpirt-rsh")
def test_a_command_goes_on_when_its_private_switchboard_is_killed(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, _TICKS, env={switchboards.SWITCHBOARD: switchboards.PRIVATE}) as running:
        assert running.line() == "1"
        [first] = private_switchboards()
        os.kill(first, signal.SIGKILL)
        assert running.line() == "2"
        [second] = private_switchboards()
        ended = running.end(within=60)

    assert second != first
    assert (ended.code, ended.output, ended.errors) == (7, b"3\n4\n5\n6\n", "")
    until(lambda: private_switchboards() == [], within=20, what="the switchboard's end")


@promise(
    "The command of a killed agent is gone within 5 s, and other commands of the launcher go on.", of="mpirt-rsh"
)
def test_the_command_of_an_agent_that_is_killed_is_gone_within_five_seconds_and_the_others_go_on(
    namespace: Namespace, workers: Workers, folder: Path
) -> None:
    pods = workers(2, "busybox")
    with (
        started(namespace, pods[:1], 1, hard.COMMAND) as [doomed],
        started(namespace, pods, _ECHOES, "cat") as others,
    ):
        doomed.until(len(b"running\n"), within=20)
        rounds(others, 1)
        doomed.process.kill()
        killed = time.monotonic()
        until(lambda: not hard.is_running(namespace, pods[0]), within=5, what="the command's end")
        seconds = time.monotonic() - killed
        rounds(others, 5)

    print(f"gone {seconds:.1f} s after its agent")


@promise("A command whose output is not read does not delay other commands.", of="mpirt-rsh")
def test_round_trips_go_on_beside_an_agent_that_nobody_reads(
    namespace: Namespace, workers: Workers, folder: Path
) -> None:
    pods = workers(2, "busybox")
    with started(namespace, pods, _ECHOES, "cat") as others:
        rounds(others, 1)
        without = rounds(others, _ROUNDS)
        with agents(namespace, pods, 1, "yes") as [unread]:
            until(lambda: is_full(unread), within=60, what="a full pipe")
            beside = rounds(others, _ROUNDS)
            assert is_full(unread)
            assert unread.poll() is None
            memory = resident(unread.pid)

    medians = [statistics.median(times) * 1000 for times in (without, beside)]
    print(f"round trips: {medians[0]:.2f} ms, {medians[1]:.2f} ms beside it, which has {memory} KiB")


@promise("mpirt ps shows each command with the CPU time, memory and processes that it has in its pod.", of="mpirt")
def test_ps_shows_what_each_command_uses_in_its_pod(namespace: Namespace, workers: Workers, folder: Path) -> None:
    pods = workers(2, "busybox")
    with (
        started(namespace, pods[:1], 1, _BUSY) as [busy],
        started(namespace, pods[1:], 1, _LARGE) as [large],
    ):
        for member in (busy, large):
            member.until(len(b"running\n"), within=60)
        until(lambda: (listed()[pods[0]]["cpu"] or 0) >= 2, within=60, what="2 s of CPU time", instead=listed)
        found = listed()

    assert found[pods[0]]["processes"] == 1
    assert 30_000_000 <= found[pods[1]]["memory"] < 300_000_000
    assert found[pods[0]]["memory"] < 10_000_000
    print({pod: (one["cpu"], one["memory"]) for pod, one in found.items()})


def private_switchboards() -> list[int]:
    """The process ids of those that run here. Tests of this file have the machine for themselves."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            is_one = process.environ().get(switchboards.SWITCHBOARD) == switchboards.PRIVATE
            if is_one and any("mpirt.cli.switchboard" in word for word in process.cmdline()):
                found.append(process.pid)
    return found


def listed() -> dict[str, Any]:
    """The commands as `mpirt ps` lists them, by their pods."""
    done = subprocess.run([agent.MPIRT, "ps", "--json"], check=True, capture_output=True, timeout=60)
    return {one["pod"]: one for board in json.loads(done.stdout)["switchboards"] for one in board["commands"]}


def killed_when_all_are_at(share: float, members: list[Member], folder: Path) -> int:
    """Kill the switchboard in the middle of the output of all, and return its process id."""
    for member in members:
        member.until(int(share * len(_EXPECTED)), within=120)
    assert [member for member in members if len(member.output) == len(_EXPECTED)] == []
    pid = switchboards.pid_of(folder)
    os.kill(pid, signal.SIGKILL)
    return pid


def rounds(members: list[Member], count: int) -> list[float]:
    """Have each say something and hear it again, so often; the seconds of each time."""
    return [round_trip(member) for _ in range(count) for member in members]


def round_trip(member: Member) -> float:
    said, heard = b"%d\n" % len(member.output), len(member.output)
    began = time.monotonic()
    member.say(said)
    member.until(heard + len(said), within=20)
    seconds = time.monotonic() - began
    assert member.output[heard:] == said
    return seconds


def is_full(process: subprocess.Popen[bytes]) -> bool:
    """Whether its output stands still: nothing more fits into the pipe, however many bytes that are."""
    assert process.stdout is not None
    writer = os.open(f"/proc/self/fd/{process.stdout.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [writer], [], 0)[1]
    finally:
        os.close(writer)


def resident(pid: int) -> int:
    """A process' memory in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1])


_CHUNK = 1 << 16


class Member:
    """An agent whose output is read as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.output = bytearray()
        self._has_come = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def until(self, size: int, *, within: float) -> None:
        """Wait until it has printed so many bytes."""
        with self._has_come:
            has_come = self._has_come.wait_for(lambda: len(self.output) >= size, by_the_clock(within))
        assert has_come, bytes(self.output[-80:])

    def say(self, data: bytes) -> None:
        """Write to its command's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def end(self, *, within: float) -> tuple[int, str]:
        """Wait for its end: the code, and what it said on stderr."""
        code = self.process.wait(by_the_clock(within))
        self._reader.join(by_the_clock(within))
        assert self.process.stderr is not None
        return code, self.process.stderr.read().decode()

    def stop(self) -> None:
        """Kill it, and wait for both."""
        self.process.kill()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while data := self.process.stdout.read(_CHUNK):
            with self._has_come:
                self.output += data
                self._has_come.notify_all()


@contextmanager
def agents(
    namespace: Namespace, pods: Sequence[str], count: int, command: str
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start so many, in turn in these pods; who is left at the end is killed."""
    env = agent.environment(namespace)
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        started = []
        for number in range(count):
            argv = [str(agent.RSH), pods[number % len(pods)], command]
            process = subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
            stack.enter_context(process)
            stack.callback(process.kill)
            started.append(process)
        yield started


@contextmanager
def started(namespace: Namespace, pods: Sequence[str], count: int, command: str) -> Iterator[list[Member]]:
    """The same, and all that they print is read."""
    with agents(namespace, pods, count, command) as started, ExitStack() as stack:
        found = [Member(process) for process in started]
        for member in found:
            stack.callback(member.stop)
        yield found
