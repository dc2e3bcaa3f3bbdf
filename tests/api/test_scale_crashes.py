"""
Crash consistency of elastic jobs: wherever in a change of its workers the controller is killed, a job comes to the
same end, no pod is made twice, and no number is used twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from testbed.ground import Ground
from testbed.plane.plane import Plane
from tests.api import kills
from tests.api.beds import FreeBeds, beds
from tests.api.recorder import Recorder, recording
from tests.api.scale_changes import CHANGES, IN_PEACE_ONLY, Change
from tests.api.scale_crashes import Course, live
from tests.api.states import State
from tests.api.straight import Straight
from tests.promises import promise

# All lives are begun at once, and the first test waits for the first of them.
pytestmark = pytest.mark.timeout(1800)

# Each has its own controller.
SIDE_BY_SIDE = 8
PEACE = ""
ROLE, REFRESH = "PATCH roles", "PATCH pods launcher"

Courses = dict[tuple[str, str], Future[Course]]
IN_PEACE = CHANGES | IN_PEACE_ONLY
KILLS = kills.parameters([(what, write) for what, change in CHANGES.items() for write in change.writes], each=2)


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
        wanted = [*((what, PEACE) for what in IN_PEACE), *sorted(kills.asked(request, "what", "write"))]
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
@pytest.mark.parametrize(("what", "write"), KILLS)
def test_a_change_whose_controller_was_killed_comes_to_the_same_end(
    courses: Courses, what: str, write: str
) -> None:
    course = courses[what, write].result()

    assert not course.difference, course.difference


@promise("A number of a worker is never used twice in a job, and no pod is created twice.", of="TrainingJob")
@pytest.mark.parametrize(("what", "write"), KILLS)
def test_no_pod_is_made_twice_and_no_number_is_used_twice(courses: Courses, what: str, write: str) -> None:
    course, change = courses[what, write].result(), CHANGES[what]

    assert course.made_twice() == []
    assert course.pods() == {course.job.worker(number): 1 for number in range(change.highest + 1)}


@pytest.mark.parametrize(("what", "write"), KILLS)
def test_the_wanted_workers_change_once(courses: Courses, what: str, write: str) -> None:
    course, change = courses[what, write].result(), CHANGES[what]
    worker = course.job.worker

    assert course.wanted() == [
        (worker(0), worker(1), worker(2)),
        tuple(worker(number) for number in change.hosts),
    ]


@promise(
    "A worker on a node that is about to go gets a successor, first if the job can't do without.", of="TrainingJob"
)
@pytest.mark.parametrize("what", IN_PEACE)
def test_the_end_is_the_one_that_was_asked_for(courses: Courses, what: str) -> None:
    course, change = courses[what, PEACE].result(), IN_PEACE[what]
    job = course.job
    workers = [job.worker(number) for number in change.hosts]

    assert job.status()["targetWorkers"] == workers
    assert job.replicas() == change.replicas
    assert sorted(job.workers()) == workers
    assert job.hosts() == [f"{name}:1" for name in workers]
    assert {scaler["status"]["phase"] for scaler in course.scalers()} <= {"ScaleSucceeded"}


@promise(
    "A worker on a node that is about to go gets a successor, first if the job can't do without.", of="TrainingJob"
)
@pytest.mark.parametrize("what", IN_PEACE)
def test_a_change_is_these_writes(courses: Courses, what: str) -> None:
    done, expected = courses[what, PEACE].result().writes(), IN_PEACE[what].writes

    assert [write for write in done if not _follows(write)] == [write for write in expected if not _follows(write)]
    assert {write: _seen_by(write, done) for write in done if _follows(write)} == {
        write: _seen_by(write, expected) for write in expected if _follows(write)
    }


def _follows(write: str) -> bool:
    """Whether it comes when it may: the Role a second after the patch before, the launcher's a turn later."""
    return write.startswith((ROLE, REFRESH))


def _seen_by(write: str, writes: Sequence[str]) -> list[str]:
    """The writes before this one without which it would not be true."""
    before = writes[: writes.index(write)]
    if write.startswith(ROLE):
        return [each for each in before if each.startswith(("POST pods", "DELETE pods"))]
    return [each for each in before if each.startswith("PATCH configmaps hosts")][:1]
