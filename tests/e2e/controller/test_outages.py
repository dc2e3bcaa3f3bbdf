"""
The API server is away for half a minute, and five jobs, each at another point of its life, don't mind.

What is done to the controller's writes at that moment is told by crashes.py's words for them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from mpirt.errors import ExitCode
from tests.e2e.controller.apiproxy import Hold, Where
from tests.e2e.controller.beds import Bed, beds
from tests.e2e.controller.crashes import LIFE, RUNNING, Course, Peace, hold_up, start
from tests.e2e.controller.deployed import NAME, job_name
from tests.e2e.controller.leadership import is_for_job
from tests.e2e.ground import Ground
from tests.kube import controlplane, faults
from tests.kube.wait import until

# All tests share the API server.
pytestmark = pytest.mark.alone

AWAY = 30.0
WITHIN = 60.0

KILLED, FROZEN = "killed", "frozen"
# Who is killed refuses; who is frozen takes what comes, and does it when it is thawed, however late that is.
HARMS = (KILLED, FROZEN) if os.environ.get("MPIRT_TEST_CRASHES") == "all" else (KILLED,)

NOTHING_IS_MADE = "nothing is made yet"
CONFIG_MAP_IS_MADE = "the ConfigMap was made, and nobody knows"
WORKERS_START = "its workers start"
LAUNCHER_RUNS = "its launcher runs"
LAUNCHER_HAS_ENDED = "its launcher has just ended"
CREATED = list(LIFE[: LIFE.index("PATCH mpijobs/status Created") + 1])
POINTS = (NOTHING_IS_MADE, CONFIG_MAP_IS_MADE, WORKERS_START, LAUNCHER_RUNS, LAUNCHER_HAS_ENDED)


@dataclass(frozen=True)
class Outage:
    """What came of everything."""

    bed: Bed
    leader: str
    """The pod that led before."""
    courses: dict[str, Course]
    lives: dict[str, list[str]]
    """What had been written for each when the API server went away."""
    acted_after: float
    """Seconds from when the API server was ready again to the first write."""


@pytest.fixture(scope="module", params=HARMS)
def outage(
    request: pytest.FixtureRequest, cluster: Ground, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outage]:
    """Five jobs at five points, the API server away, and all of them at their ends."""
    with beds(cluster, tmp_path_factory.mktemp("outages"), 1) as [bed], ThreadPoolExecutor() as aside:
        peace = Peace()
        leader = bed.controller.leader()
        names = {point: job_name("outage") for point in POINTS}
        holds = hold_all_up(bed, names)
        courses = bring_to_their_points(bed, peace, names, holds)
        gone = time.monotonic()
        with api_server_away(request.param):
            lives = {point: course.life() for point, course in courses.items()}
            # Who waits for an answer will get none: there is nobody any more to give it.
            for hold in holds.values():
                hold.release()
        back = time.monotonic()
        ends = [aside.submit(start(bed, peace, job_name("peace")).live_in_peace)]
        ends += [
            aside.submit(course.end if point == LAUNCHER_HAS_ENDED else course.live)
            for point, course in courses.items()
        ]
        for end in ends:
            end.result()
        acted = next(w.at for w in bed.proxy.writes() if w.at > gone + AWAY and w.is_good and is_for_job(w))
        yield Outage(bed, leader, courses, lives, max(0.0, acted - back))


def hold_all_up(bed: Bed, names: dict[str, str]) -> dict[str, Hold]:
    """Have jobs stay where they are to be, in the order in which they get there."""
    return {
        point: hold_up(bed, names[point], where, target)
        for point, where, target in (
            (LAUNCHER_HAS_ENDED, Where.BEFORE, "DELETE statefulsets"),
            (NOTHING_IS_MADE, Where.BEFORE, LIFE[0]),
            (CONFIG_MAP_IS_MADE, Where.AFTER, "POST configmaps"),
            (WORKERS_START, Where.BEFORE, "POST jobs"),
        )
    }


def bring_to_their_points(
    bed: Bed, peace: Peace, names: dict[str, str], holds: dict[str, Hold]
) -> dict[str, Course]:
    """Start all of them so that they are at their points at the same moment."""
    begin = partial(start, bed, peace, all_is_told=False)
    courses = {point: begin(names[point]) for point in (LAUNCHER_RUNS, LAUNCHER_HAS_ENDED)}
    for course in courses.values():
        course.run()
    courses[LAUNCHER_HAS_ENDED].let_end()
    holds[LAUNCHER_HAS_ENDED].wait(WITHIN)
    courses[WORKERS_START] = begin(names[WORKERS_START])
    until(lambda: courses[WORKERS_START].life() == CREATED, within=WITHIN, what="a job whose workers start")
    # Last, for a controller waits for an answer for a few seconds only.
    for point in (NOTHING_IS_MADE, CONFIG_MAP_IS_MADE):
        courses[point] = begin(names[point])
        holds[point].wait(WITHIN)
    return courses


@contextmanager
def api_server_away(harm: str) -> Iterator[None]:
    """Do harm to the API server, and undo it after half a minute; returns when it is ready again."""
    do, undo = (faults.freeze, faults.thaw) if harm == FROZEN else (faults.kill, faults.start)
    do("apiserver")
    begun = time.monotonic()
    try:
        yield
        until(lambda: time.monotonic() - begun >= AWAY, within=AWAY + WITHIN, what="the end of the outage")
    finally:
        undo("apiserver")
        until(controlplane.is_ready, within=WITHIN, what="the API server")


# The first test waits for all that is made to happen.
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("own_cluster")
class TestAJobThatTheOutageMet:
    def test_it_was_where_it_was_to_be(self, outage: Outage) -> None:
        assert outage.lives == {
            NOTHING_IS_MADE: [],
            CONFIG_MAP_IS_MADE: list(LIFE[:2]),
            WORKERS_START: CREATED,
            LAUNCHER_RUNS: list(LIFE[: RUNNING + 1]),
            LAUNCHER_HAS_ENDED: list(LIFE[: RUNNING + 1]),
        }

    @pytest.mark.parametrize("point", POINTS)
    def test_it_comes_to_the_same_end_as_one_that_was_left_in_peace(self, outage: Outage, point: str) -> None:
        course = outage.courses[point]

        assert not course.while_running, course.while_running
        assert not (at_the_end := course.at_the_end()), at_the_end

    @pytest.mark.parametrize("point", POINTS)
    def test_nothing_of_it_is_made_or_run_twice(self, outage: Outage, point: str) -> None:
        course = outage.courses[point]

        assert course.made_twice() == []
        assert course.job.log() == ["ran"]


@pytest.mark.usefixtures("own_cluster")
class TestTheController:
    def test_it_acts_again_when_the_api_server_is_back(self, outage: Outage) -> None:
        print(f"the first write came {outage.acted_after:.1f} s after the API server was back")

        assert outage.acted_after < WITHIN

    def test_who_led_has_ended_and_was_started_again_and_who_waited_has_waited_on(self, outage: Outage) -> None:
        pods = outage.bed.controller.all_pods()
        ends = {
            pod["metadata"]["name"]: [
                (status["restartCount"], status["lastState"].get("terminated", {}).get("exitCode"))
                for status in pod["status"]["containerStatuses"]
            ]
            for pod in pods
        }

        assert ends.pop(outage.leader) == [(1, ExitCode.UNREACHABLE)]
        assert list(ends.values()) == [[(0, None)]]

    def test_no_probe_has_ended_it(self, outage: Outage) -> None:
        events = outage.bed.namespace.kubectl.get("events", "--field-selector=reason=Killing")

        assert [event["message"] for event in events if NAME in event["involvedObject"]["name"]] == []
