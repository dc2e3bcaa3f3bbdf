"""
Crash consistency of elastic jobs: wherever in a change of its workers the controller is killed, a job comes to the
same end, no pod is made twice, and no number is used twice.

The kill is that of crashes.py: the API server has carried the write out, and nobody knows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION
from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.plane.plane import Plane
from testbed.plane.stages import NEVER, READY_AFTER
from tests.api.apiproxy import Write
from tests.api.beds import COMES_WITHIN, Bed, FreeBeds, beds, made_twice
from tests.api.controllers import job_name
from tests.api.crashes import asked_kills, in_order, is_report, kill_parameters
from tests.api.recorder import Recorder, Told, is_worker, recording
from tests.api.scale_changes import CHANGES, IN_PEACE_ONLY, Change, place, words
from tests.api.states import SETTLES_WITHIN, State, lasting_difference, made_again, state
from tests.api.straight import Straight
from tests.promises import promise
from tests.support import trainings
from tests.support.trainings import Body, Training

_WORKERS = 3
# Workers are Ready when the test says so.
WAITS = {READY_AFTER: NEVER}


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
        self._let_be_ready(range(_WORKERS))
        self._rest(*range(_WORKERS))
        [self.template] = {pod["metadata"]["annotations"][TEMPLATE_ANNOTATION] for pod in self.job.pods()}
        self.begun = len(self._writes())
        if not target:
            self._go_through()
            # A look that begins before the last of them would not see it.
            until(
                self._is_all_written, within=SETTLES_WITHIN, what="all writes of the change", instead=self.writes
            )
            peace.set_result(self._state())
            return
        hold = self.bed.hold_to_kill(lambda write: self._is(write, target))
        with ThreadPoolExecutor(1) as aside:
            killed = aside.submit(self.bed.kill_at, hold)
            self._go_through()
            killed.result()
        self._rest(*self.change.hosts)
        self.difference = lasting_difference(peace.result(COMES_WITHIN), self._state)

    def _go_through(self) -> None:
        """
        Ask for the change, and see it through.

        A new worker is Ready, and one on a node that goes is idle, only when the status has forgotten which pods
        are to be created: a slow controller would learn both at once, and write one status for both.
        """
        if self.change.leaves_node:
            self.bed.proxy.busy[self.job.worker(0)] = 1
        self.change.ask(self.job)
        if joining := range(_WORKERS, self.change.highest + 1):
            self._wait(self._are_all_created, "a status after the creation of the new workers")
            self.bed.proxy.busy.pop(self.job.worker(0), None)
            self._let_be_ready(joining)
        self._rest(*self.change.hosts)

    def _are_all_created(self) -> bool:
        scaling = self._status()["scaling"]
        return scaling["highestNumber"] == self.change.highest and "pending" not in scaling

    def _let_be_ready(self, numbers: Iterable[int]) -> None:
        names = list(map(self.job.worker, numbers))
        self._wait(lambda: all(self.recorder.now("Pod", name) for name in names), f"pods {' '.join(names)}")
        self.bed.namespace.kubectl("annotate", "pods", *names, f"{READY_AFTER}=0s", "--overwrite")

    def _rest(self, *numbers: int) -> None:
        """Wait until the job has these workers, nothing is under way, and all that is said."""
        names = list(map(self.job.worker, numbers))
        self._wait(lambda: _is_at_rest(self._status(), names), " ".join(names))

    def _wait(self, question: Callable[[], bool], what: str) -> None:
        self.recorder.wait(self.job.name, question, within=COMES_WITHIN, what=what, instead=self.job.surroundings)

    def _status(self) -> Body:
        found: Body = (self.recorder.now("TrainingJob", self.job.name) or {}).get("status", {})
        return found

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
        return self.bed.writes_for(self.job.name)


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
            job = trainings.submit(
                bed.namespace, name, replicas=_WORKERS, restart="Always", annotations=WAITS, **fields
            )
            course = Course(bed, change, job, recorder)
            course.live(peace, target)
    except BaseException as error:
        if not target and not peace.done():
            # Those that wait for it must know that there will be none.
            peace.set_exception(error)
        raise
    return course


# All lives are begun at once, and the first test waits for the first of them.
pytestmark = pytest.mark.timeout(1800)

# Each has its own controller.
SIDE_BY_SIDE = 8
PEACE = ""
ROLE, REFRESH = "PATCH roles", "PATCH pods launcher"

Courses = dict[tuple[str, str], Future[Course]]
IN_PEACE = CHANGES | IN_PEACE_ONLY
KILLS = kill_parameters([(what, write) for what, change in CHANGES.items() for write in change.writes], each=2)


@pytest.fixture(scope="module")
def courses(
    plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Courses]:
    """A change for every kill that is asked for, and each without. One that goes wrong fails its own tests."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("scaling")
        free_of_lease = beds(plane, cluster, folder, SIDE_BY_SIDE, replicas=1, has_lease=False, sees_nodes=True)
        made = stack.enter_context(free_of_lease)
        way = Straight(plane)
        recorders = {bed.namespace.name: stack.enter_context(recording(way, bed.namespace.name)) for bed in made}
        pool, free = stack.enter_context(ThreadPoolExecutor(SIDE_BY_SIDE)), FreeBeds(made)
        peace = {what: Future[State]() for what in IN_PEACE}
        wanted = [*((what, PEACE) for what in IN_PEACE), *sorted(asked_kills(request, "what", "write"))]
        yield {
            (what, write): pool.submit(in_a_bed, free, recorders, IN_PEACE[what], peace[what], write)
            for what, write in wanted
        }


def in_a_bed(
    free: FreeBeds, recorders: dict[str, Recorder], change: Change, peace: Future[State], write: str
) -> Course:
    with free.one() as bed:
        return live(bed, recorders[bed.namespace.name], change, peace, write)


@promise(
    "A controller that is killed at any write leaves no trace: the next one reaches the same end.",
    of="mpirt-controller",
)
@promise("A number of a worker is never used twice in a job, and no pod is created twice.", of="TrainingJob")
@pytest.mark.parametrize(("what", "write"), KILLS)
def test_a_change_whose_controller_was_killed_comes_to_the_same_end_once_and_uses_no_number_twice(
    courses: Courses, what: str, write: str
) -> None:
    course, change = courses[what, write].result(), CHANGES[what]
    worker = course.job.worker

    assert not course.difference, course.difference
    assert course.made_twice() == []
    assert course.pods() == {worker(number): 1 for number in range(change.highest + 1)}
    assert course.wanted() == [
        (worker(0), worker(1), worker(2)),
        tuple(worker(number) for number in change.hosts),
    ]


@promise(
    "A worker on a node that is about to go gets a successor, first if the job can't do without.", of="TrainingJob"
)
@pytest.mark.parametrize("what", IN_PEACE)
def test_a_change_is_these_writes_and_ends_as_it_was_asked_for(courses: Courses, what: str) -> None:
    course, change = courses[what, PEACE].result(), IN_PEACE[what]
    job = course.job
    workers = [job.worker(number) for number in change.hosts]

    assert job.status()["targetWorkers"] == workers
    assert job.replicas() == change.replicas
    assert sorted(job.workers()) == workers
    assert job.hosts() == [f"{name}:1" for name in workers]
    assert {scaler["status"]["phase"] for scaler in course.scalers()} <= {"ScaleSucceeded"}
    done, expected = course.writes(), change.writes
    assert in_order(_without_followers(done)) == in_order(_without_followers(expected))
    assert _too_early(done, expected) == []
    assert {write: _seen_by(write, done) for write in done if _follows(write)} == {
        write: _seen_by(write, expected) for write in expected if _follows(write)
    }


def _without_followers(writes: Sequence[str]) -> list[str]:
    return [write for write in writes if not _follows(write)]


def _too_early(done: Sequence[str], expected: Sequence[str]) -> list[str]:
    """
    The changes that came before a report that has to precede them.

    A plan that has taken two seconds reports before its last changes, and never after them: what it may change is
    written to the status first.
    """
    changes = [write for write in expected if not _follows(write) and not is_report(write)]
    return [write for write in changes if not _reported(write, expected) <= _reported(write, done)]


def _reported(write: str, writes: Sequence[str]) -> set[str]:
    """The reports before this write."""
    return set(filter(is_report, writes[: writes.index(write)]))


def _follows(write: str) -> bool:
    """Whether it comes when it may: the Role a second after the patch before, the launcher's a turn later."""
    return write.startswith((ROLE, REFRESH))


def _seen_by(write: str, writes: Sequence[str]) -> list[str]:
    """The writes before this one without which it would not be true."""
    before = writes[: writes.index(write)]
    if write.startswith(ROLE):
        return [each for each in before if each.startswith(("POST pods", "DELETE pods"))]
    return [each for each in before if each.startswith("PATCH configmaps hosts")][:1]
