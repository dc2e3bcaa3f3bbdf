"""
mpirt-discover beside `kubectl get pods`: three workers' names by each, and by ours three pods beside two hundred.

Owns: what is run on either side, what is measured of it, and the bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import pairs
from benchmarks.access import Access, environment, versions
from benchmarks.comparison import By, Comparison, Quantity
from benchmarks.costs import compared, wall_compared
from benchmarks.measure import Unmeasured, run
from testbed import manifests
from testbed.ground import Namespace
from testbed.kube.progress import step
from testbed.kube.wait import until

DISCOVER = Path(sys.executable).with_name("mpirt-discover")
OURS, THEIRS = "mpirt-discover", "kubectl get"
MANY, FEW = "200 pods", "3 pods"

WALL = Quantity("wall_ratio", "3 hosts: wall time", "ms", 0.75, By.PAIRS)
CPU = Quantity("cpu_ratio", "3 hosts: CPU time", "ms", 0.60, By.PAIRS)
PEAK = Quantity("memory_ratio", "3 hosts: peak memory", "MB", 0.42, By.MEDIANS)
GROWTH = Quantity("growth_200_over_3", "wall time", "ms", 1.5, By.PAIRS)

_WORKERS = 3
_CROWD = 200
_LABEL = "crowd"
_CREATED_WITHIN = 120.0


@contextmanager
def contest(namespace: Namespace, *, access: Access, kubectl: Path | None) -> Iterator[Contest]:
    """Three workers that are Ready, and a crowd of as many and of pods that no node can take."""
    if not DISCOVER.exists():
        raise Unmeasured(f"{DISCOVER} is not installed; run: make venv")
    with step("three workers"):
        [pod, *_] = namespace.workers(_WORKERS, "busybox")
    with step(f"a crowd of {_CROWD} pods"):
        _make_crowd(namespace)
    with environment(access, namespace, pod) as env:
        yield Contest(kubectl or namespace.kubectl.program, namespace, env)


@dataclass(frozen=True, slots=True)
class Contest:
    """Both programs, ready to look at the same pods with the same access."""

    kubectl: Path
    namespace: Namespace
    env: dict[str, str]

    def versions(self) -> str:
        """Who competes, and where: one line."""
        return versions(DISCOVER, self.kubectl, self.namespace)

    def three_hosts(self, runs: int) -> list[Comparison]:
        """The same three workers, by each in turn."""
        ours, theirs = discover_argv("app=worker"), kubectl_argv(self.kubectl, "app=worker")
        with step(f"{runs} pairs of three hosts"):
            return compared(
                *pairs.alternate(runs, lambda: run(ours, env=self.env), lambda: run(theirs, env=self.env)),
                (WALL, CPU, PEAK),
            )

    def growth(self, runs: int) -> list[Comparison]:
        """The crowd and the three workers, in turn, both by ours."""
        many, few = discover_argv(_LABEL), discover_argv("app=worker")
        with step(f"{runs} pairs of {MANY} and {FEW}"):
            return [
                wall_compared(
                    *pairs.alternate(runs, lambda: run(many, env=self.env), lambda: run(few, env=self.env)), GROWTH
                )
            ]


def discover_argv(labels: str) -> list[str]:
    return [str(DISCOVER), "--selector", labels]


def kubectl_argv(kubectl: Path, labels: str) -> list[str]:
    """As a discovery script without mpirt has it."""
    names = 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'
    return [str(kubectl), "get", "pods", "--selector", labels, "--output", names]


def _make_crowd(namespace: Namespace) -> None:
    """Pods without an owner, and so of one job. The first few are hosts: without any, discovery would wait."""
    image = namespace.ground.image("busybox")
    crowd = []
    for number in range(_CROWD):
        pod = manifests.pod(f"crowd-{number}", image=image)
        pod["metadata"]["labels"] = {_LABEL: "yes"}
        if number >= _WORKERS:
            pod["spec"]["nodeSelector"] = {"mpirt-test": "no-such-node"}
        crowd.append(pod)
    namespace.kubectl.apply(*crowd)
    until(
        lambda: len(_ready(namespace)) == _WORKERS,
        within=_CREATED_WITHIN,
        what=f"{_WORKERS} pods of the crowd to be Ready",
    )


def _ready(namespace: Namespace) -> list[str]:
    listed = 'jsonpath={range .items[?(@.status.phase=="Running")]}{.metadata.name}{"\\n"}{end}'
    return namespace.kubectl("get", "pods", "--selector", _LABEL, "--output", listed).stdout.split()
