"""What is said of how long a run has lasted."""

from __future__ import annotations

from datetime import date

from tests.run import budgets, lastfull
from tests.run.records import Phase, Record
from tests.run.verdict import Stage


def stage(name: str, seconds: float, **tests: float) -> Stage:
    phases = [
        Phase(test, when, "passed", took if when == "call" else 0.0)
        for test, took in tests.items()
        for when in ("setup", "call", "teardown")
    ]
    return Stage(name, seconds, 0, (Record("tests", (), tuple(tests), tuple(phases), (), 0, seconds),))


STAGES = [
    stage("check", 50.0, quick=1.0),
    stage("cluster", 100.0),
    stage("api-and-e2e", 1190.5, grown=100.0, alike=31.0, new=20.0, slower=4.0),
    stage("rest", 100.0, other=3.0),
]
KNOWN = {"grown": 60.0, "alike": 30.0, "slower": 2.0}


def test_each_part_is_charged_to_its_budget_and_it_is_said_how_much_too_long_one_was_and_what_has_grown() -> None:
    assert list(budgets.lines(STAGES, KNOWN, is_full=False)) == [
        "     50.0  make check, of 60",
        "   1290.5  merge tier, of 1200, 90 s more than it may",
        "    100.0  slice, of 900",
        "           grown from 60 to 100 s: grown",
        "           grown from 0 to 20 s: new",
    ]


def test_a_run_within_its_budgets_names_no_test() -> None:
    assert list(budgets.lines(STAGES[:2], {}, is_full=False)) == [
        "     50.0  make check, of 60",
        "    100.0  merge tier, of 1200",
    ]


def test_everything_has_a_budget_of_its_own() -> None:
    assert list(budgets.lines(STAGES, KNOWN, is_full=True)) == ["   1440.5  full tier, of 5400"]


def test_what_a_full_run_leaves_is_its_commit_its_day_and_the_time_of_each_test() -> None:
    found = lastfull.of(STAGES[:1], "1f", date(2026, 11, 27))

    assert found == lastfull.LastFull("1f", "2026-11-27", 50.0, {"quick": 1.0})
