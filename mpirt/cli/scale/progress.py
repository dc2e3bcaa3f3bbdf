"""
A change of the number of a job's workers, and what becomes of it. No I/O.

Owns: the words +2, -1, 5 and --remove, and the ScaleIn or ScaleOut that each becomes; the words for each step of a
pod; and reading the status of jobs, ScaleIns and ScaleOuts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from mpirt import names, podobjects
from mpirt.errors import UsageError
from mpirt.objects import number, rows, table, text

if TYPE_CHECKING:
    from mpirt.objects import Body

API_VERSION = "kai.alibabacloud.com/v1alpha1"
_WORDS = re.compile(r"([+-]?)([0-9]{1,6})")
_OVER = {"ScaleSucceeded": True, "ScaleFailed": False}
_GONE = "gone"


class How(Enum):
    """The ways to change the number of workers."""

    ADD = "ScaleOut"
    REMOVE = "ScaleIn"
    SET = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the workers of a job."""

    how: How
    count: int = 0
    pods: tuple[str, ...] = ()
    """The workers to remove; empty if only their number is asked for."""

    def of(self, workers: int) -> int:
        """Return how many workers there are in the end, of so many now."""
        by = len(self.pods) or self.count
        return {How.ADD: workers + by, How.REMOVE: workers - by, How.SET: self.count}[self.how]


def read_change(words: str | None, removed: Sequence[str]) -> Change:
    """Return what the command line asks for. Raises UsageError."""
    if removed and words is not None:
        raise UsageError(f"{words} and --remove are given; choose one of them")
    if removed:
        return Change(How.REMOVE, pods=tuple(dict.fromkeys(removed)))
    found = _WORDS.fullmatch(words or "")
    if found is None:
        given = "nothing" if words is None else repr(words)
        raise UsageError(f"how many workers? expected +2, -1, 5 or --remove POD, got {given}")
    how = {"+": How.ADD, "-": How.REMOVE, "": How.SET}[found[1]]
    count = int(found[2])
    if not count:
        raise UsageError(f"expected at least one worker, got {words}")
    return Change(how, count)


def scaler(change: Change, job: str, *, timeout: int, force: bool) -> dict[str, object]:
    """Return the object that asks for the change; the API server completes its name."""
    asked: dict[str, object] = {"podNames": list(change.pods)} if change.pods else {"count": change.count}
    field = "toAdd" if change.how is How.ADD else "toDelete"
    annotations = {"annotations": {names.FORCE_ANNOTATION: "true"}} if force else {}
    return {
        "apiVersion": API_VERSION,
        "kind": change.how.value,
        "metadata": {"generateName": f"{job}-{change.how.value.lower()}-", **annotations},
        "spec": {"selector": {"name": job}, field: asked, "timeout": timeout},
    }


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
    conditions = podobjects.conditions(status)
    if podobjects.holds(conditions, "Ready"):
        return "is Ready"
    if unscheduled := podobjects.unscheduled(conditions):
        return f"waits for a node: {text(unscheduled, 'message') or text(unscheduled, 'reason')}"
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
