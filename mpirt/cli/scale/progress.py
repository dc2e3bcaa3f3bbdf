"""
What becomes of a job's workers, and whether a change of them is done. No I/O.

Owns: the words for each step of a pod, and reading the status of jobs, ScaleIns and ScaleOuts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpirt import names, podobjects
from mpirt.objects import number, rows, table, text

if TYPE_CHECKING:
    from mpirt.objects import Body

_OVER = {"ScaleSucceeded": True, "ScaleFailed": False}
_GONE = "gone"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a change."""

    succeeded: bool
    message: str


class Steps:
    """
    The step of each worker that was reported last.

    A worker that joins carries the annotation of one that leaves until it is a host; that is not reported.
    """

    def __init__(self, pods: Iterable[Body]) -> None:
        self._last = {name_of(pod): step_of(pod) for pod in pods}
        self._hosts = {*self._last}

    def news(self, pods: Sequence[Body]) -> Iterator[str]:
        """Yield a line for each worker whose step is another one now."""
        self._hosts.update(name_of(pod) for pod in pods if not _is_draining(pod))
        now = {name_of(pod): step_of(pod, joins=name_of(pod) not in self._hosts) for pod in pods}
        for name in sorted({*now, *self._last}):
            step = now.get(name, _GONE)
            if step != self._last.get(name):
                yield f"{name}: {step}"
        self._last = now


def name_of(pod: Body) -> str:
    """Return the worker's name."""
    return text(table(pod, "metadata"), "name")


def step_of(pod: Body, *, joins: bool = False) -> str:
    """Return where a worker is on its way; `joins`: it has not been a host yet."""
    if table(pod, "metadata").get("deletionTimestamp"):
        return "is being deleted"
    if _is_draining(pod) and not joins:
        return "is no host any more; waits until no command runs in it"
    return _state(table(pod, "status"))


def _is_draining(pod: Body) -> bool:
    return bool(podobjects.annotation(table(pod, "metadata"), names.DRAINING_ANNOTATION))


def _state(status: Body) -> str:
    conditions = {text(row, "type"): row for row in rows(status, "conditions")}
    if text(conditions.get("Ready", {}), "status") == "True":
        return "is Ready"
    placed = conditions.get("PodScheduled", {})
    if text(placed, "status") == "False":
        return f"waits for a node: {text(placed, 'message') or text(placed, 'reason')}"
    if text(status, "phase") in ("Failed", "Succeeded"):
        return f"has ended: {text(status, 'phase')}"
    return "starts"


def is_taken_up(body: Body) -> bool:
    """Whether a controller has said anything of this ScaleIn or ScaleOut."""
    return bool(rows(table(body, "status"), "conditions"))


def outcome_of(body: Body) -> Outcome | None:
    """Return how a ScaleIn or ScaleOut has ended; None while it has not."""
    status = table(body, "status")
    phase = text(status, "phase")
    if phase not in _OVER:
        return None
    last = next((row for row in reversed(rows(status, "conditions")) if text(row, "type") == phase), {})
    return Outcome(_OVER[phase], text(last, "message") or phase)


def refusal(job: Body, workers: int) -> str:
    """Return why the job can't have so many workers; empty if it can. An invalid number would stop the job."""
    worker, elastic = table(job, "spec", "etReplicaSpecs", "worker"), table(job, "spec", "elastic")
    least = number(worker, "minReplicas") or number(elastic, "minReplicas") or 1
    most = number(worker, "maxReplicas") or number(elastic, "maxReplicas") or workers
    if workers < least:
        return f"{workers} workers are fewer than its minReplicas={least}"
    return f"{workers} workers are more than its maxReplicas={most}" if workers > most else ""


def aims_at(job: Body, workers: int) -> bool:
    """Whether a TrainingJob's status says that its workers change, or that there are to be so many."""
    scaling = table(job, "status", "scaling")
    return "change" in scaling or scaling.get("replicas") == workers


def has_workers(pods: Iterable[Body], count: int) -> bool:
    """Whether there are exactly so many workers, all of them Ready, and none on its way out."""
    steps = list(map(step_of, pods))
    return len(steps) == count and set(steps) <= {"is Ready"}


def end_of(job: Body) -> str:
    """Return how the job has ended; empty while it has not."""
    held = {text(row, "type") for row in rows(table(job, "status"), "conditions") if text(row, "status") == "True"}
    return next((kind for kind in ("Succeeded", "Failed", "Suspended") if kind in held), "")
