"""
Everything that is told of a namespace's TrainingJobs: the jobs, their scalers, their workers' pods.

Owns: the watches, the order in which the cluster came to what they tell, and waiting for it. What it means is
others' matter.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from testbed.kube.errors import ClusterError
from testbed.kube.wait import woken
from tests.api.straight import Straight
from tests.support.trainings import GROUP

Body = dict[str, Any]
Answer = TypeVar("Answer")

_WATCHED = (("/api/v1", "pods"), (GROUP, "trainingjobs"), (GROUP, "scaleins"), (GROUP, "scaleouts"))


@dataclass(frozen=True)
class Told:
    """An object at a moment; the last of it where it was deleted."""

    version: int
    """Grows with every write to the cluster, whatever it is of."""
    deleted: bool
    body: Body

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])


class Recorder:
    """All that a watch reports, from the beginning on. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._told: list[Told] = []
        self._now: dict[tuple[str, str], Body] = {}
        self._newest: defaultdict[str, int] = defaultdict(int)
        self._lock = threading.Lock()
        # One for each job: who waits for something of one job is not woken by all others.
        self._changed: defaultdict[str, threading.Condition] = defaultdict(lambda: threading.Condition(self._lock))

    def told(self) -> list[Told]:
        """All of it, in the order of the cluster."""
        with self._lock:
            return sorted(self._told, key=lambda each: each.version)

    def now(self, kind: str, name: str) -> Body | None:
        """The last reported state of the object; None if there is none now."""
        return self._now.get((kind, name))

    def has_come_to(self, kind: str, version: int) -> bool:
        """Whether that version of the cluster was reported, or a later one: each kind is reported in its order."""
        return self._newest[kind] >= version

    def all_of(self, kind: str, job: str) -> list[Body]:
        """The objects of that kind that belong to a job now."""
        return [body for (of, _), body in self._now.copy().items() if of == kind and job_of(body) == job]

    def wait(
        self,
        job: str,
        question: Callable[[], Answer],
        *,
        within: float,
        what: str,
        instead: Callable[[], object],
    ) -> Answer:
        """Wait until the answer is true; it is asked when something of the job has changed, and now and then."""
        changed, answers = self._changed[job], list[Answer]()

        def is_so() -> bool:
            answers[:] = [question()]
            return bool(answers[0])

        with changed:
            if not woken(partial(changed.wait_for, is_so), within=within):
                raise ClusterError(f"waited {within:g} s for {what}; there is {instead()}")
        return answers[0]

    def read(self, lines: Iterable[bytes]) -> None:
        """Read until the watch ends."""
        for line in lines:
            event = json.loads(line)
            body = _slim(event["object"])
            told = Told(int(body["metadata"]["resourceVersion"]), event["type"] == "DELETED", body)
            with self._lock:
                self._told.append(told)
                self._newest[told.kind] = told.version
                if told.deleted:
                    self._now.pop((told.kind, told.name), None)
                else:
                    self._now[told.kind, told.name] = body
                self._changed[job_of(body)].notify_all()


@contextmanager
def recording(way: Straight, namespace: str) -> Iterator[Recorder]:
    """Record what is reported of a namespace until the end of the block."""
    recorder = Recorder()
    paths = (f"{group}/namespaces/{namespace}/{plural}" for group, plural in _WATCHED)
    with way.watching(paths, recorder.read):
        yield recorder


def job_of(body: Body) -> str:
    """The TrainingJob that an object belongs to; empty if to none."""
    match body["kind"]:
        case "TrainingJob":
            return str(body["metadata"]["name"])
        case "Pod":
            return str(body["metadata"].get("labels", {}).get("training-job-name", ""))
        case _:
            return str(body["spec"]["selector"]["name"])


def is_worker(body: Body) -> bool:
    return bool(body["metadata"].get("labels", {}).get("training-job-role") == "worker")


def _slim(body: Body) -> Body:
    """Without fields that no test reads, which would take much room."""
    body["metadata"].pop("managedFields", None)
    return {name: part for name, part in body.items() if name != "spec" or body["kind"] != "Pod"}
