"""
mpirt-rsh beside `kubectl exec`: one short command at a time, and many sessions held at once.

Owns: what is run on either side, what is measured of it, and the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import pairs
from benchmarks.access import Access, environment, versions
from benchmarks.comparison import Comparison, Quantity
from benchmarks.costs import MB, compared
from benchmarks.held import held_bytes
from benchmarks.measure import Unmeasured, run
from tests.e2e.ground import Namespace
from tests.e2e.rsh.agent import RSH
from tests.kube.progress import step

OURS, THEIRS = "mpirt-rsh", "kubectl exec"

WALL = Quantity("wall_ratio", "`true`: wall time", "ms", 0.85, paired=True)
CPU = Quantity("cpu_ratio", "`true`: CPU time", "ms", 0.75, paired=True)
PEAK = Quantity("memory_ratio", "`true`: peak memory", "MB", 0.42, paired=False)
HELD = Quantity("held_memory_ratio", "held: memory of each", "MB", 0.60, paired=False)

# Written by the remote command, so that the session is known to be through to the pod.
_UP = "held"
_HOLD = f"echo {_UP}; exec sleep 600"

# What an agent does once, after a while, is done by then: mpirt-rsh starts to watch its pod after a second.
_SETTLED_AFTER = 5.0


@contextmanager
def contest(namespace: Namespace, *, access: Access, kubectl: Path | None) -> Iterator[Contest]:
    """Both agents beside one worker. Without a `kubectl`, the cluster's own competes."""
    if not RSH.exists():
        raise Unmeasured(f"{RSH} is not installed; run: make venv")
    with step("one worker"):
        [pod] = namespace.workers(1, "busybox")
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

    def short_command(self, runs: int) -> list[Comparison]:
        """`true`, by each in turn."""
        ours, theirs = rsh_argv(self.pod, "true"), kubectl_argv(self.kubectl, self.pod, "true")
        with step(f"{runs} pairs of `true`"):
            return compared(
                *pairs.alternate(runs, lambda: run(ours, env=self.env), lambda: run(theirs, env=self.env)),
                (WALL, CPU, PEAK),
            )

    def held_sessions(self, count: int) -> list[Comparison]:
        """So many sessions of one, then as many of the other. What kubectl leaves in the worker goes with it."""
        ours, theirs = rsh_argv(self.pod, _HOLD), kubectl_argv(self.kubectl, self.pod, _HOLD)
        with step(f"{count} held sessions of each"):
            return [Comparison(HELD, self._held(ours, count), self._held(theirs, count))]

    def _held(self, argv: Sequence[str], count: int) -> list[float]:
        sizes = held_bytes(argv, count, env=self.env, sign=_UP, settled_after=_SETTLED_AFTER)
        return [size / MB for size in sizes]


def rsh_argv(pod: str, command: str) -> list[str]:
    return [str(RSH), pod, command]


def kubectl_argv(kubectl: Path, pod: str, command: str) -> list[str]:
    """As the kubexec.sh of kubectl-delivery has it."""
    return [str(kubectl), "exec", pod, "--", "/bin/sh", "-c", command]
