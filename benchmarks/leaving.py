"""
Elastic Horovod whose workers leave on purpose: by mpirt's controller, and as people do it without.

Owns: what each side does to let a worker go, what is measured of it, and the table. Each event has a job of its
own, of the same training.

The other side is what et-operator does, see byhand.py. It knows nothing of nodes, so that `kubectl drain` evicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from benchmarks import byhand, place
from testbed.kube.errors import ClusterError
from testbed.kube.progress import step
from testbed.kube.status import table
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.elastic import workers
from tests.e2e.elastic.steps import repeated
from tests.e2e.elastic.training import Training
from tests.e2e.training import jobs
from tests.support.watching import State, Watch, watch

_WORKERS = 4
_PATIENCE = 90.0
# Bare pods are evicted by force only.
_DRAINS = ("--timeout=150s", "--force")
_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
}

_HEADING = ["EVENT", "BY", "NEXT WORLD", "DELETED", "GONE", "ALL BACK", "STEPS AGAIN", "EXIT"]

_LEGEND = """\
Seconds from the event to the first step of the next world, to the moment when the first worker's pod is told to
end, to that when the last one is gone, and to the first step of all four workers again. STEPS AGAIN: how many were
done twice. By hand: hosts in a file, and pods deleted without grace when no process of the launcher names them."""


@dataclass(frozen=True, slots=True)
class Departure:
    """What became of one training."""

    event: str
    side: str
    marks: Sequence[float | None]
    """In seconds from the event, as in the heading; None: not within its time, or not expected."""
    again: int
    code: int | None


@dataclass(frozen=True)
class _Job:
    """A training of four workers on two nodes, and who lets one of them go."""

    run: Training
    labels: str
    """Of its workers."""
    names: list[str]
    """Of its workers at first, in their order."""
    scale_in: Callable[[str], None]
    healed: Callable[[], AbstractContextManager[None]] = nullcontext
    """Replaces meanwhile what vanishes, where no controller does."""


@dataclass(frozen=True)
class _Moments:
    """When pods that leave were told to end, and were gone."""

    watching: Watch
    leaving: list[str]
    # The watch has another clock than the log.
    offset: float = field(default_factory=lambda: time.time() - time.monotonic())

    def first_deleted(self) -> float:
        return self._at(lambda state: state.deleted or "deletionTimestamp" in state.body["metadata"])[0]

    def last_gone(self) -> float:
        return self._at(lambda state: state.deleted)[-1]

    def _at(self, happened: Callable[[State], bool]) -> list[float]:
        def of(name: str) -> float:
            state = self.watching.wait(
                lambda state: state.body["metadata"]["name"] == name and happened(state),
                within=_PATIENCE,
                what=f"{name} to go",
            )
            return state.at + self.offset

        return sorted(map(of, self.leaving))


def departures() -> Iterator[Departure]:
    """Each event by each side."""
    for event, leave in _EVENTS.items():
        for side, started in _SIDES.items():
            with step(f"{event}, {side}"), started() as job:
                yield leave(job, event, side)


def rendered(found: Iterable[Departure]) -> str:
    rows = [
        [
            each.event,
            each.side,
            *("none" if mark is None else f"{mark:.1f}" for mark in each.marks),
            str(each.again),
            "none" if each.code is None else str(each.code),
        ]
        for each in found
    ]
    return "\n".join([*table([_HEADING, *rows]), "", _LEGEND])


def _scaled_in(job: _Job, event: str, side: str) -> Departure:
    last = job.names[-1]
    with _watching(job, [last]) as moments:
        began = time.time()
        job.scale_in(last)
        return _departure(job, event, side, began, moments)


def _drained(job: _Job, event: str, side: str) -> Departure:
    namespace = job.run.namespace
    [other] = namespace.nodes_of(job.names) - {workers.node_of(namespace, job.run.pod)}
    leaving = [name for name in job.names if workers.node_of(namespace, name) == other]
    with _watching(job, leaving) as moments:
        began = time.time()
        try:
            with job.healed():
                namespace.kubectl("drain", other, f"--pod-selector={job.labels}", *_DRAINS, timeout=180)
                return _departure(job, event, side, began, moments, comes_back=True)
        finally:
            namespace.kubectl("uncordon", other)


_EVENTS = {"scaled 4 to 3": _scaled_in, "kubectl drain": _drained}


@contextmanager
def _watching(job: _Job, leaving: list[str]) -> Iterator[_Moments]:
    with watch(job.run.namespace, "pods", labels=job.labels) as watching:
        yield _Moments(watching, leaving)


def _departure(
    job: _Job, event: str, side: str, began: float, moments: _Moments, *, comes_back: bool = False
) -> Departure:
    """Note what the log and the pods say, and let the training end."""
    run = job.run
    next_world = _mark(lambda: run.next_world(since=began, within=_PATIENCE, at_most=_WORKERS).at)
    marks = [next_world, _mark(moments.first_deleted), _mark(moments.last_gone), None]
    if comes_back:
        marks[-1] = _mark(lambda: run.world(_WORKERS, since=next_world or began, within=_PATIENCE).at)
    run.finish(next(name for name in job.names if name not in moments.leaving))
    code = _mark(lambda: float(run.exit_code(within=_PATIENCE)))
    seconds = [None if mark is None else mark - began for mark in marks]
    return Departure(event, side, seconds, len(repeated(run.steps())), None if code is None else int(code))


def _mark(found: Callable[[], float]) -> float | None:
    try:
        return found()
    except ClusterError:
        return None


@contextmanager
def _by_mpirt() -> Iterator[_Job]:
    with place.fresh_installation() as controller, _training_job(controller) as job:
        yield job


@contextmanager
def _training_job(controller: Deployed) -> Iterator[_Job]:
    job = jobs.submit(
        controller.namespace,
        job_name("leaving"),
        annotations={"mpirt.dev/leave-cordoned-nodes": "true"},
        spread=_SPREAD,
        worker={"replicas": _WORKERS},
    )

    def scale_in(worker: str) -> None:
        job.scale_in("one-less", podNames=[worker]).outcome(within=_PATIENCE)

    with jobs.trains(job, size=_WORKERS) as run:
        yield _Job(run, job.labels(), job.workers(), scale_in)


@contextmanager
def _by_hand() -> Iterator[_Job]:
    with place.fresh_namespace() as namespace, byhand.training(namespace, _WORKERS) as theirs:
        yield _Job(theirs.run, byhand.LABELS, list(theirs.names), theirs.remove, theirs.healed)


_SIDES = {"mpirt": _by_mpirt, "by hand": _by_hand}
