"""What the judge of random rounds finds wrong, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from mpirt.errors import ExitCode
from tests.e2e.chaos import judging, schedules
from tests.e2e.chaos.judging import End
from tests.e2e.chaos.schedules import Death, Plan

PLAN = Plan(
    number=0,
    begins=0.0,
    lines=3,
    pause=0.1,
    padding=0,
    stdin=1000,
    code=0,
    broken=None,
    death=None,
    dies=1.0,
)
WHOLE = b"7 1 0\n7 2 0\n7 3 0\n%s  -\nlast\n" % sha256(bytes(range(256)) * 3 + b"." * 232).hexdigest().encode()
GOOD = End(PLAN, 0, WHOLE, "", runs=1, is_dead=False, is_replaced=False)
DELETED = replace(
    GOOD,
    plan=replace(PLAN, death=Death.DELETE),
    code=ExitCode.POD_DELETED,
    output=WHOLE[:10],
    errors="mpirt-rsh: pod worker-0 is being deleted",
    runs=0,
    is_dead=True,
    is_replaced=True,
)


def test_the_whole_output_is_what_the_command_writes() -> None:
    assert judging.expected(PLAN, "7") == WHOLE


@pytest.mark.parametrize("end", [GOOD, DELETED], ids=["its own", "a death"])
def test_ends_that_are_right(end: End) -> None:
    assert list(judging.problems(end)) == []


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (replace(GOOD, output=WHOLE[:-5]), "code 0 after"),
        (replace(GOOD, output=WHOLE + b"last\n"), "not what the command wrote"),
        (replace(GOOD, output=WHOLE[:6] + WHOLE), "not what the command wrote"),
        (replace(GOOD, output=WHOLE[:6] + WHOLE[12:]), "at byte 8"),
        (replace(GOOD, code=3), "code 3"),
        (replace(GOOD, code=None), "did not end"),
        (replace(GOOD, runs=2), "ran 2 times"),
        (replace(GOOD, errors="Traceback (most recent call last)"), "mistake"),
        (replace(GOOD, code=ExitCode.CONNECTION_LOST, output=b"7 1", errors="lost"), "code 250"),
        (replace(DELETED, errors=""), "no word of"),
        (replace(DELETED, code=0), "code 0"),
        (replace(DELETED, is_dead=False), "code 246"),
        (replace(DELETED, runs=1), "in another pod"),
    ],
)
def test_ends_that_are_wrong(end: End, says: str) -> None:
    assert any(says in problem for problem in judging.problems(end))


def test_a_seed_makes_the_same_round_again_and_another_seed_another() -> None:
    assert schedules.of("a") == schedules.of("a")
    assert schedules.of("a") != schedules.of("b")


def test_rounds_have_everything_in_them() -> None:
    rounds = [schedules.of(f"mpirt-{number}") for number in range(50)]
    plans = [plan for each in rounds for plan in each.plans]

    assert {outage.weather for each in rounds for outage in each.outages} == set(schedules.Weather)
    assert {plan.death for plan in plans} == {None, *Death}
    assert {plan.broken is None for plan in plans} == {True, False}


def test_ends_of_commands_are_counted() -> None:
    rows = judging.summary([GOOD, GOOD, DELETED])

    assert rows[1:] == [
        ["nothing", "2", "its own end: 2"],
        ["pod deleted", "1", "code 246: 1"],
    ]
