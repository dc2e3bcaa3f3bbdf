"""
Crash consistency: wherever in a job's life the controller is killed, the job comes to the same end.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from testbed.ground import Ground
from testbed.plane.plane import Plane
from tests.api.beds import FreeBeds, beds
from tests.api.crashes import (
    LIFE,
    Course,
    Peace,
    asked_kills,
    in_order,
    kill_parameters,
    live_disturbed,
    live_in_peace,
)
from tests.promises import promise

# All lives are begun at once, and the first test waits for the first of them.
pytestmark = pytest.mark.timeout(1800)

# Each has its own controller.
SIDE_BY_SIDE = 6
PEACE = "no kill"

KILLS = kill_parameters([(write,) for write in LIFE], each=1)

Courses = dict[str, Future[Course]]


@pytest.fixture(scope="module")
def courses(
    plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Courses]:
    """A job's life for every kill that is asked for, and one without. One that goes wrong fails its own tests."""
    folder = tmp_path_factory.mktemp("crashes")
    with (
        beds(plane, cluster, folder, SIDE_BY_SIDE, replicas=1, has_lease=False) as made,
        ThreadPoolExecutor(SIDE_BY_SIDE) as pool,
    ):
        free, peace = FreeBeds(made), Peace()
        lives = {PEACE: pool.submit(peaceful, free, peace)}
        writes = [write for (write,) in asked_kills(request, "write")]
        yield lives | {write: pool.submit(disturbed, free, peace, write) for write in writes}


def peaceful(free: FreeBeds, peace: Peace) -> Course:
    with free.one() as bed:
        return live_in_peace(bed, peace)


def disturbed(free: FreeBeds, peace: Peace, write: str) -> Course:
    with free.one() as bed:
        return live_disturbed(bed, peace, write)


@promise(
    "A controller that is killed at any write leaves no trace: the next one reaches the same end.",
    of="mpirt-controller",
)
@promise(
    "After a controller is killed, nothing is created twice and no launcher runs twice.", of="mpirt-controller"
)
@pytest.mark.parametrize("write", KILLS)
def test_a_job_whose_controller_was_killed_comes_to_the_same_end_and_nothing_of_it_is_made_twice(
    courses: Courses, write: str
) -> None:
    course = courses[write].result()

    assert not course.while_running, course.while_running
    assert not (at_the_end := course.at_the_end()), at_the_end
    assert course.made_twice() == []
    assert course.runs() == ["Succeeded"]


def test_the_life_of_a_job_is_these_writes(courses: Courses) -> None:
    assert in_order(courses[PEACE].result().life()) == in_order(LIFE)
