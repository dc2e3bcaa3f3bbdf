"""
TrainingJobs whose controller is killed at a chosen write of a change of their workers, and one left in peace.

Owns: the life of a job that is changed. The kill is that of crashes.py: the API server has carried the write out,
and nobody knows.
"""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass

from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION
from testbed.kube.wait import until
from tests.api import trainings
from tests.api.apiproxy import Where, Write
from tests.api.beds import COMES_WITHIN, Bed
from tests.api.controllers import job_name
from tests.api.leadership import made_twice
from tests.api.likeness import SETTLES_WITHIN, lasting_difference
from tests.api.recorder import Recorder, Told, is_worker
from tests.api.scale_changes import Change, place
from tests.api.scale_words import words
from tests.api.states import State, made_again, state
from tests.api.trainings import Body, Training

_WORKERS = 3


@dataclass(repr=False)
class Course:
    """One job's change, and what is to be said of it."""

    bed: Bed
    change: Change
    job: Training
    recorder: Recorder
    template: str = ""
    """The digest of its workers' template, which names its node."""
    begun: int = 0
    """How many writes there had been for the job when the change was asked for."""
    difference: str = ""
    """How it differed in the end from the one in peace."""

    def writes(self) -> list[str]:
        """What was written for the change, in the words of it."""
        return list(dict.fromkeys(words(write) for write in self._writes()[self.begun :] if write.is_good))

    def made_twice(self) -> list[str]:
        """Objects that the API server has made more than once, and pods that Kubernetes has."""
        return [*made_twice(self._writes()), *made_again(self.bed.namespace, self.job.name)]

    def pods(self) -> dict[str, int]:
        """How many pods of each of its workers there ever were."""
        workers = {(told.name, told.uid) for told in self._told() if told.kind == "Pod" and is_worker(told.body)}
        return Counter(name for name, _ in workers)

    def wanted(self) -> list[tuple[str, ...]]:
        """The different sets of workers that it has wanted, one after the other."""
        told = [told.body.get("status", {}) for told in self._told() if told.kind == "TrainingJob"]
        sets = [tuple(status["targetWorkers"]) for status in told if "targetWorkers" in status]
        return list(dict.fromkeys(sets))

    def scalers(self) -> list[Body]:
        """What asked for the change, if that is an object."""
        return [*self.recorder.all_of("ScaleIn", self.job.name), *self.recorder.all_of("ScaleOut", self.job.name)]

    def live(self, peace: Future[State], target: str) -> None:
        """See the change through; without a target, as the one that others are compared with."""
        self._rest(*range(_WORKERS))
        [self.template] = {pod["metadata"]["annotations"][TEMPLATE_ANNOTATION] for pod in self.job.pods()}
        self.begun = len(self._writes())
        if not target:
            self.change.ask(self.job)
            self._rest(*self.change.hosts)
            # A look that begins before the last of them would not see it.
            until(
                self._is_all_written, within=SETTLES_WITHIN, what="all writes of the change", instead=self.writes
            )
            peace.set_result(self._state())
            return
        hold = self.bed.proxy.hold(Where.AFTER, lambda write: self._is(write, target))
        self.change.ask(self.job)
        self.bed.kill_at(hold)
        self._rest(*self.change.hosts)
        self.difference = lasting_difference(peace.result(COMES_WITHIN), self._state)

    def _rest(self, *numbers: int) -> None:
        """Wait until the job has these workers, nothing is under way, and all that is said."""
        names = list(map(self.job.worker, numbers))

        def is_at_rest() -> bool:
            return _is_at_rest((self.recorder.now("TrainingJob", self.job.name) or {}).get("status", {}), names)

        self.recorder.wait(
            self.job.name, is_at_rest, within=COMES_WITHIN, what=" ".join(names), instead=self.job.around
        )

    def _is(self, write: Write, target: str) -> bool:
        return self.job.name in write.name and words(write) == target

    def _is_all_written(self) -> bool:
        return len(self.writes()) >= len(self.change.writes)

    def _state(self) -> State:
        found = map(_without_course, state(self.bed.namespace, self.job.name))
        return tuple(line.replace(self.template, "TEMPLATE") for line in found)

    def _told(self) -> list[Told]:
        return [told for told in self.recorder.told() if self.job.name in told.name]

    def _writes(self) -> list[Write]:
        return [write for write in self.bed.proxy.writes() if self.job.name in write.name]


def _is_at_rest(status: Body, names: list[str]) -> bool:
    workers = len(names)
    said = [each["message"] for each in status.get("conditions", ()) if each["type"] == "Running"]
    return (
        status.get("phase") == "Running"
        and not {"change", "drains"} & set(status["scaling"])
        and status["targetWorkers"] == names
        and status["replicaStatuses"]["Worker"]["active"] == workers
        and f"{workers} of {workers} workers are Ready" in said[0]
    )


def _without_course(line: str) -> str:
    """What is said of a scaler that is under way is left out: it may be over when the next controller sees it."""
    fact = json.loads(line)
    if fact["kind"] in trainings.PLURALS:
        status = fact["status"]
        status["conditions"] = [each for each in status["conditions"] if each["type"] != "Scaling"]
        status.pop("startTime", None)
    return json.dumps(fact, sort_keys=True)


def live(bed: Bed, recorder: Recorder, change: Change, peace: Future[State], target: str) -> Course:
    """The life of a job that runs and whose workers change; without a target, in peace."""
    name = job_name("scale")
    try:
        with place(bed.namespace.ground.kubectl, change, name) as fields:
            job = trainings.submit(bed.namespace, name, replicas=_WORKERS, restart="Always", **fields)
            course = Course(bed, change, job, recorder)
            course.live(peace, target)
    except BaseException as error:
        if not target and not peace.done():
            # Those that wait for it must know that there will be none.
            peace.set_exception(error)
        raise
    return course
