"""
One tenant does what he can against the controller, in his own namespace: another one's jobs go on as if alone.

`make test` has one short game; MPIRT_TEST_GAMES says how many long ones are played instead, one after the other
against the same controller. A game that fails says its seed: with MPIRT_TEST_SEED it is played first.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import pytest

from testbed.kube.status import table
from tests.api import games
from tests.api.adversary import MOVES
from tests.api.controllers import Replica
from tests.api.games import Game, Rules
from tests.api.victims import Took
from tests.promises import promise

GAMES = int(os.environ.get("MPIRT_TEST_GAMES", "0"))
SEED = os.environ.get("MPIRT_TEST_SEED", "mpirt")

SHORT = Rules(jobs=8, moves=len(MOVES), before=8, rate=50.0, crowd=10, pods=100, within=60.0)
LONG = Rules(jobs=20, moves=3 * len(MOVES), before=16, rate=40.0, crowd=200, pods=800, within=240.0)

# A job alone takes one to five seconds. Each of its few turns may come after one of another tenant's job, which
# lasts up to two seconds, and longer where the API server and the nodes share two processors with the controller.
SLOWER, WAITS_SECONDS = 2.0, 5.0
# The limit of the Deployment's container.
MOST_BYTES = 512 * 2**20

pytestmark = pytest.mark.timeout(1200 + GAMES * 300)


@dataclass(frozen=True)
class Course:
    """All games, and the controller after them."""

    alone: Took
    games: list[Game]
    replica: Replica


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    rules = LONG if GAMES else SHORT
    seeds = [SEED, *(f"{SEED}-{number}" for number in range(1, GAMES))]
    with games.arena(tmp_path_factory.mktemp("games"), rules) as arena:
        played = []
        for seed in seeds:
            played.append(arena.play(seed, rules))
            print(report(arena.alone, played[-1]))
        yield Course(arena.alone, played, arena.replica)


@promise(
    "A tenant can't stop the jobs of others, whatever objects they create in their own namespace.", of="safety"
)
def test_all_jobs_of_the_other_tenant_succeed(course: Course) -> None:
    assert course.alone.failed == []
    assert {game.seed: game.took.failed for game in course.games} == {game.seed: [] for game in course.games}


if GAMES:
    # Of few jobs, beside other tests, no time is steady: the short game only prints them.
    def test_no_job_takes_more_than_twice_as_long_as_alone(course: Course) -> None:
        late = {game.seed: late_jobs(course.alone, game.took) for game in course.games}

        assert late == {game.seed: [] for game in course.games}


@promise(
    "A tenant can't stop the jobs of others, whatever objects they create in their own namespace.", of="safety"
)
def test_the_controllers_memory_stays_within_its_limit(course: Course) -> None:
    assert {game.seed: game.seen.memory for game in course.games if not 0 < game.seen.memory < MOST_BYTES} == {}


def test_the_controller_is_healthy_all_the_time_and_never_restarted(course: Course) -> None:
    assert {answer for game in course.games for answer in game.seen.health} == {"ok"}
    assert course.replica.ends == []


def test_the_controller_makes_no_mistake_of_its_own(course: Course) -> None:
    assert games.internal_errors(course.replica) == {}


@promise("Objects that do not belong to a job are never touched.", of="safety")
def test_objects_that_are_not_the_controllers_are_left_alone(course: Course) -> None:
    assert {game.seed: game.touched for game in course.games} == {game.seed: [] for game in course.games}


def late_jobs(alone: Took, took: Took) -> list[str]:
    """Those that have taken too long, by what the machine itself took longer for a plain Job."""
    slower = SLOWER * max(1.0, noise(alone, took))
    limits = {name: slower * seconds + WAITS_SECONDS for name, seconds in by_job(alone).items()}
    return [
        f"{name}: {seconds:.1f} s of {limits[name]:.1f} s"
        for name, seconds in by_job(took).items()
        if seconds > limits[name]
    ]


def noise(alone: Took, took: Took) -> float:
    """How much longer than before the cluster takes for what the controller has no part in."""
    return took.pulse / alone.pulse


def by_job(took: Took) -> dict[str, float]:
    """The seconds of each, by its kind and number."""
    return {"-".join(name.split("-")[-2:]): seconds for name, seconds in took.seconds.items()}


def report(alone: Took, game: Game) -> str:
    """What each job took, and what stood against it."""
    before, after = by_job(alone), by_job(game.took)
    ratios = {name: after.get(name, math.inf) / seconds for name, seconds in before.items()}
    rows = [
        [name, f"{before[name]:.1f}", f"{after.get(name, math.inf):.1f}", f"{ratio:.2f}"]
        for name, ratio in ratios.items()
    ]
    moves = [[move, str(dict(sorted(answers.items())))] for move, answers in game.answers.items()]
    now, seen = game.took, game.seen
    return "\n".join([
        f"game {game.seed}",
        *table([["MOVE", "ANSWERS"], *moves]),
        *table([["JOB", "ALONE", "NOW", "RATIO"], *rows]),
        f"median {median(ratios.values()):.2f}, worst {max(ratios.values()):.2f}",
        f"plain Jobs: {alone.pulse:.2f} s alone, now {now.pulse:.2f} s, ratio {noise(alone, now):.2f}",
        f"memory {seen.memory / 2**20:.0f} MiB, queue {seen.depth:.0f}, health {dict(seen.health)}",
    ])  # fmt: skip
