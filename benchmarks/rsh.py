"""
mpirt-rsh beside `kubectl exec`: one short command at a time, its first byte, many sessions held at once, and bytes
that flow either way.

Owns: what is run on either side, what is measured of it, and the bounds. The worker is one of a job: it has the
keeper where the controller mounts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from benchmarks import flow, memory, pairs
from benchmarks.access import Access, environment, versions
from benchmarks.comparison import By, Comparison, Quantity
from benchmarks.costs import MB, compared
from benchmarks.held import held
from benchmarks.measure import Unmeasured, run
from testbed.ground import Namespace
from testbed.kube.progress import step
from testbed.kube.wait import until
from tests.e2e.rsh import jobworkers
from tests.e2e.rsh.agent import RSH
from tests.support.switchboards import SWITCHBOARD

OURS, THEIRS = "mpirt-rsh", "kubectl exec"

WALL = Quantity("wall_ratio", "`true`: wall time", "ms", 0.85, By.PAIRS)
CPU = Quantity("cpu_ratio", "`true`: CPU time", "ms", 0.75, By.PAIRS)
PEAK = Quantity("memory_ratio", "`true`: peak memory", "MB", 0.42, By.MEDIANS)
START = Quantity("start_ratio", "first byte: wall time", "ms", 0.85, By.PAIRS)
HELD = Quantity("held_memory_ratio", "held: memory of each", "MB", 0.60, By.MEDIANS)
# The keeper and its bridge.
PROCESSES = Quantity("more_processes", "held: in the worker for each", "processes", 2, By.DIFFERENCE)
# Runs of kubectl alone differ by so much.
STDOUT = Quantity("stdout_ratio", "stdout: wall time of 1 GiB", "s", 1.10, By.PAIRS)
STDIN = Quantity("stdin_ratio", "stdin: wall time of 1 GiB", "s", 1.10, By.PAIRS)

# Written by the remote command, so that the session is known to be through to the pod.
_UP = "held"
_HOLD = f"echo {_UP}; exec sleep 600"

# What an agent does once, after a while, is done by then: mpirt-rsh starts to watch its pod after a second.
_SETTLED_AFTER = 5.0
_ENDED_WITHIN = 60.0

_BYTE = "echo x"

_MIB_PER_GIB = 1024
# dd counts whole mebibytes that it has put together, and what was left at the end. The shell waits for it, for
# containerd ends an exec's stdin as soon as the exec's first process has no stdout any more.
_SINK = "dd ibs=65536 obs=1048576 of=/dev/null 2>&1; exit $?"
_RECEIPT = "{}+0 records out"
_SOURCE = "exec dd if=/dev/zero bs=1048576 count={} 2>/dev/null"


class Part(StrEnum):
    """What can be measured by itself."""

    TRUE = "true"
    START = "start"
    HELD = "held"
    STREAMS = "streams"


@contextmanager
def contest(namespace: Namespace, *, access: Access, kubectl: Path | None) -> Iterator[Contest]:
    """Both agents beside one worker. Without a `kubectl`, the cluster's own competes."""
    if not RSH.exists():
        raise Unmeasured(f"{RSH} is not installed; run: make venv")
    with step("one worker"):
        [pod] = jobworkers.start(namespace, 1, "busybox")
    with environment(access, namespace, pod) as env:
        board = namespace.folder / "board"
        board.mkdir(mode=0o700)
        ours = {**env, SWITCHBOARD: str(board)}
        yield Contest(kubectl or namespace.kubectl.program, namespace, pod, ours)


@dataclass(frozen=True, slots=True)
class Contest:
    """Both agents, ready to run commands in the same pod with the same access."""

    kubectl: Path
    namespace: Namespace
    pod: str
    env: dict[str, str]

    def versions(self) -> str:
        """Who competes, and where: one line."""
        return versions(RSH, self.kubectl, self.namespace)

    def short_command(self, runs: int) -> list[Comparison]:
        """`true`, by each in turn."""
        ours, theirs = rsh_argv(self.pod, "true"), kubectl_argv(self.kubectl, self.pod, "true")
        with step(f"{runs} pairs of `true`"):
            return compared(
                *pairs.alternate(runs, lambda: run(ours, env=self.env), lambda: run(theirs, env=self.env)),
                (WALL, CPU, PEAK),
            )

    def start(self, runs: int) -> list[Comparison]:
        """From an agent's start to its command's first byte."""
        ours, theirs = rsh_argv(self.pod, _BYTE), kubectl_argv(self.kubectl, self.pod, _BYTE)

        def milliseconds(argv: Sequence[str]) -> float:
            return flow.first_byte_seconds(argv, env=self.env) * 1000

        with step(f"{runs} pairs of first bytes"):
            found = pairs.alternate(runs, lambda: milliseconds(ours), lambda: milliseconds(theirs))
        return [Comparison(START, *found)]

    def held_sessions(self, count: int) -> list[Comparison]:
        """So many sessions of one, then as many of the other. What kubectl leaves in the worker goes with it."""
        with step(f"{count} held sessions of each"):
            before = self._processes()
            ours = self._held(rsh_argv(self.pod, _HOLD), count)
            until(lambda: self._processes() == before, within=_ENDED_WITHIN, what="the end of all that was held")
            theirs = self._held(kubectl_argv(self.kubectl, self.pod, _HOLD), count)
        return [
            Comparison(HELD, ours.megabytes, theirs.megabytes),
            Comparison(PROCESSES, [ours.processes], [theirs.processes]),
        ]

    def streams(self, runs: int, mebibytes: int) -> list[Comparison]:
        """So many bytes out of the worker, and into it."""
        source, receipt = _SOURCE.format(mebibytes), _RECEIPT.format(mebibytes)
        out = rsh_argv(self.pod, source), kubectl_argv(self.kubectl, self.pod, source)
        into = rsh_argv(self.pod, _SINK), kubectl_argv(self.kubectl, self.pod, _SINK, "--stdin")
        per_gib = _MIB_PER_GIB / mebibytes

        def received(argv: Sequence[str]) -> float:
            return flow.received_seconds(argv, mebibytes, env=self.env) * per_gib

        def sent(argv: Sequence[str]) -> float:
            return flow.sent_seconds(argv, mebibytes, env=self.env, receipt=receipt) * per_gib

        with step(f"{runs} pairs of {mebibytes} MiB each way"):
            return [
                Comparison(STDOUT, *pairs.in_turn(runs, lambda: received(out[0]), lambda: received(out[1]))),
                Comparison(STDIN, *pairs.in_turn(runs, lambda: sent(into[0]), lambda: sent(into[1]))),
            ]

    def _held(self, argv: Sequence[str], count: int) -> _Held:
        before = self._processes()
        with held(argv, count, env=self.env, sign=_UP, settled_after=_SETTLED_AFTER) as programs:
            sizes = [memory.tree_bytes(program.pid) / MB for program in programs]
            return _Held(sizes, (self._processes() - before) / count)

    def _processes(self) -> int:
        """How many there are in the worker, with the one that counts them."""
        return int(self.namespace.kubectl.execute(self.pod, "/bin/sh", "-c", "set -- /proc/[0-9]*; echo $#"))


@dataclass(frozen=True, slots=True)
class _Held:
    """What sessions of one agent are while they are held: megabytes here, and processes of each in the worker."""

    megabytes: list[float]
    processes: float


def rsh_argv(pod: str, command: str) -> list[str]:
    return [str(RSH), pod, command]


def kubectl_argv(kubectl: Path, pod: str, command: str, *options: str) -> list[str]:
    """As the kubexec.sh of kubectl-delivery has it."""
    return [str(kubectl), "exec", *options, pod, "--", "/bin/sh", "-c", command]
