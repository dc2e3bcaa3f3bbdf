"""
Many sessions: the switchboard and its agents beside as many `kubectl exec`, and alone on a loopback server.

Owns: what is run on either side, and what is measured of it.

What both run on a cluster is compared. A cluster's nodes take no thousands of execs on one machine, so larger
numbers are measured against tests.apiserver.fleet, which does not say how long a cluster would take: it says what
this side costs.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import boards, rsh
from benchmarks.access import Access, environment, plain, versions
from benchmarks.crowd import crowd
from benchmarks.measure import Cost, Unmeasured, run
from benchmarks.pairs import alternate, in_turn
from testbed.ground import Namespace
from testbed.kube.progress import step
from tests.apiserver.fleet import process
from tests.apiserver.fleet.process import FleetProcess
from tests.e2e.rsh import jobworkers
from tests.e2e.rsh.agent import RSH

OURS, THEIRS = "mpirt-rsh", "kubectl exec"

_MB = 1e6
_UP = "up"
_HOLD = f"echo {_UP}; exec sleep 600"
_SETTLED_AFTER = 5.0
_SETTLED_WITHIN = 180.0
# The switchboard has an agent, an exec and at most a watch for each session; the rest is its own.
_DESCRIPTORS, _MORE_DESCRIPTORS = 3, 100


@dataclass(frozen=True, slots=True)
class Held:
    """So many sessions, held at once by one side."""

    up_seconds: float
    cpu_seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Alone:
    """So many sessions on the loopback server. The server's own CPU time is no part of the others."""

    held: Held
    server_cpu_seconds: float
    idle_percent: float
    watches: int
    errors: Sequence[str]


@dataclass(frozen=True, slots=True)
class Beside:
    """What was measured on the cluster, ours first: by number of sessions, and of one short command at a time."""

    held: Mapping[int, tuple[Sequence[Held], Sequence[Held]]]
    short: tuple[Sequence[Cost], Sequence[Cost]]


@contextmanager
def contest(namespace: Namespace, *, access: Access, kubectl: Path | None) -> Iterator[Contest]:
    """Both agents beside one worker. Without a `kubectl`, the cluster's own competes."""
    with step("one worker"):
        [pod] = jobworkers.start(namespace, 1, "busybox")
    with environment(access, namespace, pod) as env:
        yield Contest(kubectl or namespace.kubectl.program, namespace, pod, env)


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

    def measure(self, sizes: Sequence[int], rounds: int, runs: int) -> Beside:
        """Sessions held by each in turn, and short commands."""
        held = {size: self._held(size, rounds) for size in sizes}
        with step(f"{runs} pairs of `true`"):
            return Beside(held, self._short(runs))

    def _held(self, size: int, rounds: int) -> tuple[Sequence[Held], Sequence[Held]]:
        with step(f"{rounds} times {size} held sessions of each"):
            return in_turn(rounds, lambda: self._ours(size), lambda: self._theirs(size))

    def _ours(self, count: int) -> Held:
        """With a switchboard that nobody has started yet."""
        with boards.board() as board:
            argvs = [boards.argv(self.pod, _HOLD)] * count
            with crowd(argvs, env=board.env(self.env), sign=_UP) as agents:
                cpu = agents.cpu_seconds + board.cpu_seconds()
                time.sleep(_SETTLED_AFTER)
                return Held(agents.up_seconds, cpu, agents.pss_bytes() + board.pss_bytes())

    def _theirs(self, count: int) -> Held:
        argvs = [rsh.kubectl_argv(self.kubectl, self.pod, _HOLD)] * count
        with crowd(argvs, env=self.env, sign=_UP) as programs:
            time.sleep(_SETTLED_AFTER)
            return Held(programs.up_seconds, programs.cpu_seconds, programs.pss_bytes())

    def _short(self, runs: int) -> tuple[Sequence[Cost], Sequence[Cost]]:
        """One after the other, with a switchboard that runs."""
        argv, theirs = boards.argv(self.pod, "true"), rsh.kubectl_argv(self.kubectl, self.pod, "true")
        with boards.board() as board:
            env = board.env(self.env)

            def ours() -> Cost:
                return run(argv, env=env)

            ours()
            before = board.cpu_seconds()
            first, second = alternate(runs, ours, lambda: run(theirs, env=self.env))
            # One more than the pairs: the one that warms up.
            share = (board.cpu_seconds() - before) / (runs + 1)
        return [Cost(each.wall_seconds, each.cpu_seconds + share, each.peak_bytes) for each in first], second


def alone(count: int, idle_seconds: float) -> Alone | str:
    """So many sessions on the loopback server; or why there can't be so many."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < count * _DESCRIPTORS + _MORE_DESCRIPTORS:
        return f"{count} sessions take {count * _DESCRIPTORS + _MORE_DESCRIPTORS} descriptors; the limit is {most}"
    with step(f"{count} sessions on the loopback server"), boards.board() as board:
        folder = board.folder / "fleet"
        with process.running(folder, count) as server:
            env = {**plain(os.environ), "KUBECONFIG": str(server.kubeconfig)}
            argvs = [boards.argv(f"fleet-worker-{number}", "hold") for number in range(count)]
            with crowd(argvs, env=board.env(env), sign=_UP) as agents:
                cpu = agents.cpu_seconds + board.cpu_seconds()
                server_cpu = server.stats()["cpu_seconds"]
                _settle(server)
                held = Held(agents.up_seconds, cpu, agents.pss_bytes() + board.pss_bytes())
                idle = _idle_percent(board, idle_seconds)
                watches, said = server.stats()["watches"], agents.said()
            errors = [*server.stats()["complaints"], *board.said().splitlines(), *said]
            return Alone(held, server_cpu, idle, watches, errors)


def _settle(server: FleetProcess) -> None:
    """Wait until nobody asks for anything new."""
    until, before = time.monotonic() + _SETTLED_WITHIN, -1
    while (now := _requests(server)) != before:
        if time.monotonic() >= until:
            raise Unmeasured(f"sessions that are held still ask for something after {_SETTLED_WITHIN:g} s")
        before = now
        time.sleep(_SETTLED_AFTER)


def _requests(server: FleetProcess) -> int:
    stats = server.stats()
    return sum(stats.get(f"requests_{kind}", 0) for kind in ("get", "list", "watch", "exec"))


def _idle_percent(board: boards.Board, seconds: float) -> float:
    """Of one core."""
    before, began = board.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return 100 * (board.cpu_seconds() - before) / (time.monotonic() - began)
