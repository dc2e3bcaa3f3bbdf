"""
Crash consistency: wherever in a job's life the controller is killed, the job comes to the same end.

Every fourth write is tried, all of them with MPIRT_TEST_CRASHES=all, for which there is `make crashes`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest

from tests.e2e.controller.beds import Bed, beds
from tests.e2e.controller.crashes import LIFE, Course, Peace, live_disturbed, live_in_peace
from tests.e2e.ground import Ground

WRITES = LIFE if os.environ.get("MPIRT_TEST_CRASHES") == "all" else LIFE[1::4]

# Each has its own controller, and a life is mostly waiting: for pods, and for a lease to run out.
SIDE_BY_SIDE = 3
PEACE = "no kill"

# Controllers are killed at chosen moments, with seconds to hit them.
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("own_cluster")]


@pytest.fixture(scope="module")
def courses(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Course]]:
    """A job's life for every kill, and one without."""
    with (
        beds(cluster, tmp_path_factory.mktemp("crashes"), SIDE_BY_SIDE) as made,
        ThreadPoolExecutor(SIDE_BY_SIDE) as pool,
    ):
        free: Queue[Bed] = Queue()
        for bed in made:
            free.put(bed)
        peace = Peace()
        lives = {PEACE: pool.submit(peaceful, free, peace)}
        lives |= {write: pool.submit(disturbed, free, peace, write) for write in WRITES}
        yield {what: life.result() for what, life in lives.items()}


def peaceful(free: Queue[Bed], peace: Peace) -> Course:
    bed = free.get()
    try:
        return live_in_peace(bed, peace)
    finally:
        free.put(bed)


def disturbed(free: Queue[Bed], peace: Peace, write: str) -> Course:
    bed = free.get()
    try:
        return live_disturbed(bed, peace, write)
    finally:
        free.put(bed)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("write", WRITES)
def test_a_job_whose_controller_was_killed_comes_to_the_same_end(courses: dict[str, Course], write: str) -> None:
    course = courses[write]

    assert not course.while_running, course.while_running
    assert not (at_the_end := course.at_the_end()), at_the_end


@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_made_twice_although_nobody_knows_what_was_made(courses: dict[str, Course], write: str) -> None:
    course = courses[write]

    assert course.made_twice() == []
    assert course.job.log() == ["ran"]


def test_the_life_of_a_job_is_these_writes(courses: dict[str, Course]) -> None:
    assert tuple(courses[PEACE].life()) == LIFE
