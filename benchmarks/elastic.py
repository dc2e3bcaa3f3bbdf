"""
Elastic Horovod on mpirt beside elastic Horovod on `kubectl exec` and a static script: what a loss costs in time.

Owns: what happens to the workers, what is measured of it, and the table. Each event has a job of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from benchmarks import place
from testbed.ground import Namespace
from testbed.kube import cluster, faults
from testbed.kube.errors import ClusterError
from testbed.kube.progress import step
from testbed.kube.status import table
from tests.e2e.elastic import example, workers
from tests.e2e.elastic.training import Training

_WORKERS = 4

# For how long a training is waited for, at each of its marks.
_PATIENCE = 90.0

_SIDES = {"mpirt": False, "kubectl exec": True}

_HEADING = ["EVENT", "BY", "AGENT ENDED", "GOES ON", "ALL BACK", "EXIT"]

_LEGEND = """\
Seconds from the event to the first agent's end, to the first step of the smaller world, and to the first step of
all four workers again. A lost node comes back when training goes on, or after 90 s."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What became of one training, in seconds from the event; None: not within its time."""

    event: str
    side: str
    ended: float | None
    goes_on: float | None
    back: float | None
    code: int | None


def delete(namespace: Namespace, victims: list[str]) -> None:
    workers.delete(namespace, victims[0])


def run_out_of_memory(namespace: Namespace, victims: list[str]) -> None:
    faults.oom(namespace.kubectl, victims[0])


def lose_the_node(namespace: Namespace, victims: list[str]) -> None:
    faults.node_lost(faults.node_named(workers.node_of(namespace, victims[0])))


_EVENTS: dict[str, Callable[[Namespace, list[str]], None]] = {
    "pod deleted": delete,
    "OOM kill": run_out_of_memory,
    "node lost": lose_the_node,
}


def timelines() -> Iterator[Timeline]:
    for event, happens in _EVENTS.items():
        for side, by_kubectl in _SIDES.items():
            with step(f"{event}, {side}"), place.fresh_namespace() as namespace:
                try:
                    with example.started(namespace, workers=_WORKERS, by_kubectl=by_kubectl) as run:
                        yield _timeline(run, event, side, happens)
                finally:
                    cluster.up()


def rendered(found: Iterable[Timeline]) -> str:
    rows = [
        [
            each.event,
            each.side,
            *map(_seconds, (each.ended, each.goes_on, each.back)),
            "none" if each.code is None else str(each.code),
        ]
        for each in found
    ]
    return "\n".join([*table([_HEADING, *rows]), "", _LEGEND])


def _timeline(run: Training, event: str, side: str, happens: Callable[[Namespace, list[str]], None]) -> Timeline:
    """Let it happen on the node without the launcher, and note what the log says."""
    namespace = run.namespace
    launcher = workers.node_of(namespace, run.pod)
    [other] = namespace.nodes_of([f"worker-{number}" for number in range(_WORKERS)]) - {launcher}
    victims = workers.on_node(namespace, other)
    began = time.time()
    happens(namespace, victims)
    goes_on = _mark(lambda: run.next_world(since=began, within=_PATIENCE, at_most=_WORKERS - 1).at)
    faults.node_back(faults.node_named(other))
    back = _mark(lambda: run.world(_WORKERS, since=goes_on or time.time(), within=_PATIENCE).at)
    ended = _mark(lambda: run.line("exit with status code", since=began, within=1).at)
    run.finish(workers.on_node(namespace, launcher)[0])
    code = _mark(lambda: float(run.exit_code(within=_PATIENCE)))
    seconds = [None if mark is None else mark - began for mark in (ended, goes_on, back)]
    return Timeline(event, side, seconds[0], seconds[1], seconds[2], None if code is None else int(code))


def _mark(found: Callable[[], float]) -> float | None:
    try:
        return found()
    except ClusterError:
        return None


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"
