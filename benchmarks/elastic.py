"""
Elastic Horovod whose workers die, or leave on purpose: by mpirt, and as people do it without.

Owns: the events and the marks. Each event has a job of its own, of the same training. Workers that die: the other
side is `kubectl exec` with a static script. Workers that leave: the other side does what et-operator does
(byhand.py), and knows nothing of nodes, so that `kubectl drain` evicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import click

from benchmarks import byhand
from benchmarks.frame import Report, command, events, seconds_until, shown
from benchmarks.place import fresh_ground, fresh_namespace
from testbed.ground import Namespace
from testbed.kube import cluster, faults
from testbed.kube.progress import step
from tests.e2e.controller import deployed
from tests.e2e.elastic import example, workers
from tests.e2e.elastic.steps import repeated
from tests.e2e.elastic.training import Training
from tests.e2e.training import jobs
from tests.support.watching import State, Watch, watch

_WORKERS = 4
# For how long a training is waited for, at each of its marks.
_PATIENCE = 90.0
# Bare pods are evicted by force only.
_DRAIN = ("--timeout=150s", "--force")
_SPREAD = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}

_LOSSES_HEADING = ["EVENT", "BY", "AGENT ENDED", "GOES ON", "ALL BACK", "EXIT"]
_LOSSES_LEGEND = """\
Seconds from the event to the first agent's end, to the first step of the smaller world, and to the first step of
all four workers again. A lost node comes back when training goes on, or after 90 s."""
_LEAVES_HEADING = ["EVENT", "BY", "NEXT WORLD", "DELETED", "GONE", "ALL BACK", "STEPS AGAIN", "EXIT"]
_LEAVES_LEGEND = """\
Seconds from the event to the first step of the next world, to the deletion of the first worker's pod, to the end
of the last one, and to the first step of all four workers again. STEPS AGAIN: how many were done twice. By hand:
hosts in a file, and pods deleted without grace when no process of the launcher names them."""


@command(click.option("--only", type=click.Choice(["losses", "leaves"]), help="Measure this only."))
def elastic(*, only: str | None) -> Report:
    """Elastic Horovod whose workers die, and whose workers leave. 20 minutes, root."""
    reports = []
    if only != "leaves":
        reports.append(events(_LOSSES_HEADING, _losses(), _LOSSES_LEGEND))
    if only != "losses":
        reports.append(events(_LEAVES_HEADING, _leaves(), _LEAVES_LEGEND))
    figures = {key: cell for report in reports for key, cell in report.figures.items()}
    return Report("\n".join(report.text for report in reports), figures)


_LOSSES: Mapping[str, Callable[[Namespace, str], object]] = {
    "pod deleted": workers.delete,
    "OOM kill": lambda namespace, victim: faults.oom(namespace.kubectl, victim),
    "node lost": lambda namespace, victim: faults.node_lost(faults.node_named(workers.node_of(namespace, victim))),
}


def _losses() -> list[list[str]]:
    rows = []
    for event, happens in _LOSSES.items():
        for side, by_kubectl in (("mpirt", False), ("kubectl exec", True)):
            with step(f"{event}, {side}"), fresh_namespace() as namespace:
                try:
                    with example.started(namespace, workers=_WORKERS, by_kubectl=by_kubectl) as run:
                        rows.append([event, side, *_loss(run, happens)])
                finally:
                    cluster.up()
    return rows


def _loss(run: Training, happens: Callable[[Namespace, str], object]) -> list[str]:
    """Let it happen on the node without the launcher, and note what the log says."""
    namespace = run.namespace
    launcher = workers.node_of(namespace, run.pod)
    [other] = namespace.nodes_of([f"worker-{number}" for number in range(_WORKERS)]) - {launcher}
    began = time.time()
    happens(namespace, workers.on_node(namespace, other)[0])
    goes_on = seconds_until(lambda: run.next_world(since=began, within=_PATIENCE, at_most=_WORKERS - 1).at, began)
    faults.node_back(faults.node_named(other))
    since = time.time() if goes_on is None else began + goes_on
    back = seconds_until(lambda: run.world(_WORKERS, since=since, within=_PATIENCE).at, began)
    ended = seconds_until(lambda: run.line("exit with status code", since=began, within=1).at, began)
    run.finish(workers.on_node(namespace, launcher)[0])
    return [*map(shown, (ended, goes_on, back)), _code(run)]


def _code(run: Training) -> str:
    return shown(seconds_until(lambda: run.exit_code(within=_PATIENCE), 0), "{:.0f}")


@dataclass(frozen=True)
class _Job:
    """A training of four workers on two nodes, and how one of them leaves."""

    run: Training
    labels: str
    """Of its workers."""
    names: list[str]
    """Of its workers at first, in their order."""
    scale_in: Callable[[str], None]
    healed: Callable[[], AbstractContextManager[None]] = nullcontext
    """Replaces meanwhile what vanishes, where no controller does."""


@contextmanager
def _by_mpirt() -> Iterator[_Job]:
    with fresh_ground() as (found, folder), deployed.passing(found, folder, sees_nodes=True) as controller:
        job = jobs.submit(
            controller.namespace,
            deployed.job_name("leaving"),
            annotations={"mpirt.dev/leave-cordoned-nodes": "true"},
            spread=_SPREAD,
            worker={"replicas": _WORKERS},
        )

        def scale_in(worker: str) -> None:
            job.scale_in("one-less", toDelete={"podNames": [worker]}, timeout=60).outcome(within=_PATIENCE)

        with jobs.trains(job, size=_WORKERS) as run:
            yield _Job(run, job.labels(), job.workers(), scale_in)


@contextmanager
def _by_hand() -> Iterator[_Job]:
    with fresh_namespace() as namespace, byhand.training(namespace, _WORKERS) as theirs:
        yield _Job(theirs.run, byhand.LABELS, list(theirs.names), theirs.remove, theirs.healed)


def _leaves() -> list[list[str]]:
    rows = []
    for event, leave in {"scaled 4 to 3": _scaled_in, "kubectl drain": _drained}.items():
        for side, started in {"mpirt": _by_mpirt, "by hand": _by_hand}.items():
            with step(f"{event}, {side}"), started() as job:
                rows.append([event, side, *leave(job)])
    return rows


def _scaled_in(job: _Job) -> list[str]:
    last = job.names[-1]
    with watch(job.run.namespace, "pods", labels=job.labels) as watching:
        began = time.time()
        job.scale_in(last)
        return _departure(job, [last], watching, began)


def _drained(job: _Job) -> list[str]:
    namespace = job.run.namespace
    [other] = namespace.nodes_of(job.names) - {workers.node_of(namespace, job.run.pod)}
    leaving = [name for name in job.names if workers.node_of(namespace, name) == other]
    with watch(namespace, "pods", labels=job.labels) as watching:
        began = time.time()
        try:
            with job.healed():
                namespace.kubectl("drain", other, f"--pod-selector={job.labels}", *_DRAIN, timeout=180)
                return _departure(job, leaving, watching, began, comes_back=True)
        finally:
            namespace.kubectl("uncordon", other)


def _departure(
    job: _Job, leaving: Sequence[str], watching: Watch, began: float, *, comes_back: bool = False
) -> list[str]:
    """Note what the log and the pods say, and let the training end."""
    run = job.run
    # The watch has another clock than the log.
    offset = time.time() - time.monotonic() - began

    def at(name: str, *, gone: bool) -> float:
        def happened(state: State) -> bool:
            metadata = state.body["metadata"]
            return metadata["name"] == name and (state.deleted or ("deletionTimestamp" in metadata and not gone))

        return watching.wait(happened, within=_PATIENCE, what=f"{name} to go").at

    following = seconds_until(lambda: run.next_world(since=began, within=_PATIENCE, at_most=_WORKERS).at, began)
    deleted = seconds_until(lambda: min(at(name, gone=False) for name in leaving), -offset)
    gone = seconds_until(lambda: max(at(name, gone=True) for name in leaving), -offset)
    back = None
    if comes_back:
        since = began + (following or 0)
        back = seconds_until(lambda: run.world(_WORKERS, since=since, within=_PATIENCE).at, began)
    run.finish(next(name for name in job.names if name not in leaving))
    code = _code(run)
    return [*map(shown, (following, deleted, gone, back)), str(len(repeated(run.steps()))), code]
