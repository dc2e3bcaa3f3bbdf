"""
The API server is away for half a minute, and five jobs, each at another point of its life, don't mind.

What is done to the controller's writes at that moment is told by crashes.py's words for them. An API server that
is killed refuses; one that is frozen takes what comes, and does it when it is thawed, however late that is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from mpirt.errors import ExitCode
from testbed.ground import Ground
from testbed.kube import programs
from testbed.kube.wait import until
from testbed.plane import shared
from testbed.plane.plane import APISERVER, OwnPlane, running
from tests.api.apiproxy import Hold, Where
from tests.api.beds import COMES_WITHIN, Bed, beds, is_for_job
from tests.api.controllers import job_name
from tests.api.crashes import LIFE, RUNNING, Course, Peace, hold_up, in_order, start
from tests.promises import promise

AWAY = 30.0
WITHIN = 60.0

KILLED, FROZEN = "killed", "frozen"

NOTHING_IS_MADE = "nothing is made yet"
CONFIG_MAP_IS_MADE = "the ConfigMap was made, and nobody knows"
WORKERS_START = "its workers start"
LAUNCHER_RUNS = "its launcher runs"
LAUNCHER_HAS_ENDED = "its launcher has just ended"
CONFIG_MAP = LIFE.index("POST configmaps")
NEXT_TO_CONFIG_MAP = "what follows the ConfigMap"
CREATED = LIFE.index("PATCH mpijobs/status Created")
POINTS = {
    NOTHING_IS_MADE: in_order(LIFE[:0]),
    CONFIG_MAP_IS_MADE: in_order(LIFE[: CONFIG_MAP + 1]),
    WORKERS_START: in_order(LIFE[: CREATED + 1]),
    LAUNCHER_RUNS: in_order(LIFE[: RUNNING + 1]),
    LAUNCHER_HAS_ENDED: in_order(LIFE[: RUNNING + 1]),
}
"""What has been written for a job at each of them: changes and reports."""


@dataclass(frozen=True)
class Outage:
    """What came of everything."""

    leader: str
    """The replica that led when the API server went away."""
    ends: dict[str, list[int]]
    """How processes ended until it was back, by the replica."""
    courses: dict[str, Course]
    lives: dict[str, tuple[list[str], list[str]]]
    """Changes and reports for each when the API server went away."""
    acted_after: float
    """Seconds from when the API server was ready again to the first write."""
    health: dict[str, set[int]]
    """What /healthz answered meanwhile, by the replica."""


@pytest.fixture(
    scope="module",
    params=[
        KILLED,
        pytest.param(
            FROZEN,
            marks=pytest.mark.full(
                "the same as killed; a frozen API server is one of those in e2e/rsh/test_outages"
            ),
        ),
    ],
)
def outage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    with survived(request.param, tmp_path_factory.mktemp(request.param)) as seen:
        yield seen


@contextmanager
def survived(harm: str, folder: Path) -> Iterator[Outage]:
    """Five jobs at five points, the API server of a plane of their own away, and all of them at their ends."""
    with (
        running(folder / "plane", programs.ensure(shared.version())) as own,
        beds(own, Ground(own.kubectl, is_ours=False), folder, 1) as [bed],
        ThreadPoolExecutor() as aside,
    ):
        peace = Peace()
        names = {point: job_name("outage") for point in POINTS}
        holds = hold_all_up(bed, names)
        courses = bring_to_their_points(bed, peace, names, holds)
        # On a busy machine an earlier leader may have lost the lease.
        leader = [write.sender for write in bed.proxy.writes() if write.is_good and not is_for_job(write)][-1]
        ended = {each.name: len(each.ends) for each in bed.controller.replicas}
        gone = time.monotonic()
        health: dict[str, set[int]] = {each.name: set() for each in bed.controller.replicas}
        with api_server_away(own, harm, lambda: look_at(bed, health)):
            lives = {point: in_order(course.life()) for point, course in courses.items()}
            # A client that waits for an answer gets none: the API server that would send it is gone.
            for hold in holds.values():
                hold.release()
        back = time.monotonic()
        ends = {each.name: each.ends[ended[each.name] :] for each in bed.controller.replicas}
        lived = [aside.submit(start(bed, peace, job_name("peace")).live_in_peace)]
        lived += [
            aside.submit(course.end if point == LAUNCHER_HAS_ENDED else course.live)
            for point, course in courses.items()
        ]
        for life in lived:
            life.result()
        acted = next(w.at for w in bed.proxy.writes() if w.at > gone + AWAY and w.is_good and is_for_job(w))
        yield Outage(leader, ends, courses, lives, max(0.0, acted - back), health)


def hold_all_up(bed: Bed, names: dict[str, str]) -> dict[str, Hold]:
    """Have jobs stay where they are to be."""
    return {
        point: hold_up(bed, names[point], where, target)
        for point, where, target in (
            (LAUNCHER_HAS_ENDED, Where.BEFORE, LIFE[RUNNING + 1]),
            (NOTHING_IS_MADE, Where.BEFORE, LIFE[0]),
            (CONFIG_MAP_IS_MADE, Where.AFTER, LIFE[CONFIG_MAP]),
            (WORKERS_START, Where.BEFORE, LIFE[CREATED + 1]),
        )
    } | {
        # On a busy machine it may have waited for its answer for too long, and goes on.
        NEXT_TO_CONFIG_MAP: hold_up(bed, names[CONFIG_MAP_IS_MADE], Where.BEFORE, LIFE[CONFIG_MAP + 1])
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
    holds[LAUNCHER_HAS_ENDED].wait(COMES_WITHIN)
    courses[WORKERS_START] = begin(names[WORKERS_START])
    until(
        lambda: in_order(courses[WORKERS_START].life()) == POINTS[WORKERS_START],
        within=COMES_WITHIN,
        what="a job whose workers start",
    )
    # Last, for a controller waits for an answer for a few seconds only.
    for point in (NOTHING_IS_MADE, CONFIG_MAP_IS_MADE):
        courses[point] = begin(names[point])
        holds[point].wait(COMES_WITHIN)
    return courses


@contextmanager
def api_server_away(own: OwnPlane, harm: str, meanwhile: Callable[[], None]) -> Iterator[None]:
    """Do harm to the API server, and undo it after half a minute; returns when it is ready again."""
    server = own.children[APISERVER]
    (server.freeze if harm == FROZEN else server.kill)()
    begun = time.monotonic()

    def is_over() -> bool:
        meanwhile()
        return time.monotonic() - begun >= AWAY

    try:
        yield
        until(is_over, within=AWAY + WITHIN, what="the end of the outage")
    finally:
        if harm == FROZEN:
            server.thaw()
        else:
            own.start(APISERVER)
        until(own.is_ready, within=COMES_WITHIN, what="the API server")


def look_at(bed: Bed, health: dict[str, set[int]]) -> None:
    for each in bed.controller.replicas:
        health[each.name].add(each.health())


@promise(
    "An outage of the API server changes no job's end, and nothing is created or run twice.", of="mpirt-controller"
)
class TestAJobThatTheOutageMet:
    def test_the_outage_met_each_job_at_its_moment(self, outage: Outage) -> None:
        changes = {point: changes for point, (changes, _) in outage.lives.items()}
        # A slow machine may have reported early what stands at the ConfigMap.
        reports = {point: reports for point, (_, reports) in outage.lives.items() if point != CONFIG_MAP_IS_MADE}

        assert changes == {point: changes for point, (changes, _) in POINTS.items()}
        assert reports == {point: POINTS[point][1] for point in reports}

    @pytest.mark.parametrize("point", POINTS)
    def test_a_job_comes_to_the_end_of_an_undisturbed_one_and_nothing_is_made_or_run_twice(
        self, outage: Outage, point: str
    ) -> None:
        course = outage.courses[point]

        assert not course.while_running, course.while_running
        assert not (at_the_end := course.at_the_end()), at_the_end
        assert course.made_twice() == []
        assert course.runs() == ["Succeeded"]


@promise("A leader that can't renew its lease stops, ends with 244 and is restarted.", of="mpirt-controller")
def test_the_leader_has_ended_and_was_started_again_and_the_other_replica_has_waited_on(outage: Outage) -> None:
    print(f"the first write came {outage.acted_after:.1f} s after the API server was back")
    ends = dict(outage.ends)

    assert outage.acted_after < WITHIN
    assert ends.pop(outage.leader) == [ExitCode.UNREACHABLE]
    [(waited, none)] = ends.items()
    # No probe has ended it: an API server that is away is nothing that a restart mends.
    assert (none, outage.health[waited]) == ([], {200})
