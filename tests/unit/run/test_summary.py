"""What is printed at the end of a run, and of several, and how long they have lasted."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from tests.run import summary
from tests.run.history import LastFull, last_full_of
from tests.run.records import Phase, Record
from tests.run.summary import Round
from tests.run.verdict import Stage, judge
from tests.unit.run.stages import record, stage

LOGS = Path("build")
STAGES = [
    stage({"unit.py::test_a": "passed", "unit.py::test_b[1 s]": "failed"}, passed_again=["unit.py::test_b[1 s]"]),
    Stage("cluster", 12.0, 0),
    Stage(
        "e2e",
        61.0,
        0,
        (record({"e2e.py::test_c": "failed"}, name="e2e, side by side"), record({}, name="e2e, alone")),
    ),
]
TEXT = """
  SECONDS   OF SETUP  SLOWEST TESTS
      3.5        1.0  unit.py::test_a
      3.5        1.0  unit.py::test_b[1 s]
      3.5        1.0  e2e.py::test_c

  SECONDS      TESTS  STAGES AND THEIR PARTS
      5.0          2  check
      4.0          2    pytest tests/unit
     12.0          0  cluster
     61.0          1  e2e
      4.0          1    pytest e2e, side by side
      4.0          0    pytest e2e, alone

flaky: unit.py::test_b[1 s]
       failed, and passed when it was run once more: build/flaky/unit.py-test_b-1-s-887bd7
       find the cause, and note it in tests/flaky.toml; it gets no second chance again
failed: e2e.py::test_c
        build/failed/e2e.py-test_c-c37c0d
2 passed, 1 failed
"""


def test_a_run_ends_with_tables_the_flaky_the_failed_and_the_closing_line() -> None:
    assert "\n".join([*summary.lines(STAGES, judge(STAGES, is_over=True), LOGS), ""]) == TEXT


def test_too_many_flaky_tests_and_problems_are_named_as_what_made_it_red() -> None:
    outcomes = dict.fromkeys("abc", "failed")
    stages = [stage(outcomes, passed_again="abc"), stage({}, name="e2e", code=2)]

    assert list(summary.lines(stages, judge(stages, is_over=True), LOGS))[-3:] == [
        "red: 3 tests are flaky; at most 2 may be",
        "red: e2e ended with exit code 2",
        "0 passed, 4 failed",
    ]


def test_the_summary_is_kept_as_data() -> None:
    kept = json.loads(json.dumps(summary.data(STAGES, judge(STAGES, is_over=True), LOGS)))

    assert (kept["red"], kept["passed"], kept["failed"], kept["skipped"]) == (True, 2, 1, 0)
    assert kept["flaky"] == [{"test": "unit.py::test_b[1 s]", "logs": "build/flaky/unit.py-test_b-1-s-887bd7"}]
    assert kept["broken"] == [{"test": "e2e.py::test_c", "logs": "build/failed/e2e.py-test_c-c37c0d"}]
    assert kept["stages"][0] == {
        "name": "check",
        "seconds": 5.0,
        "code": 0,
        "tests": 2,
        "parts": [{"name": "tests/unit", "seconds": 4.0}],
    }
    assert kept["slowest"][0] == {"test": "unit.py::test_a", "seconds": 3.5, "setup": 1.0}


def test_a_folder_of_logs_is_named_after_file_and_test() -> None:
    assert summary.log_folder("tests/unit/test_a.py::test_b[x/y z]").startswith("test_a.py-test_b-x-y-z-")


def test_tests_whose_names_differ_in_signs_only_have_folders_of_their_own() -> None:
    assert summary.log_folder("a.py::test[1]") != summary.log_folder("a.py::test(1)")


ROUNDS = [
    Round(1, (stage({"a": "failed", "b": "passed"}), stage({}, name="e2e", code=2))),
    Round(2, (stage({"a": "failed", "b": "failed"}),)),
    Round(3, (stage({"a": "passed", "b": "passed", "c": "skipped"}),)),
]


def test_the_summary_of_rounds_says_what_failed_how_often_and_where_the_logs_are() -> None:
    assert list(summary.round_lines(ROUNDS, Path("build/soak"))) == [
        "   FAILED  WHAT, AND ITS LOGS",
        "   2 of 3  a",
        "             build/soak/1/failed/a-ca9781",
        "             build/soak/2/failed/a-ca9781",
        "   1 of 3  b",
        "             build/soak/2/failed/b-3e23e8",
        "   1 of 3  e2e ended with exit code 2",
        "             build/soak/1/e2e.log",
        "2 of 3 rounds were red",
        "3 passed, 4 failed, 1 skipped",
    ]


def test_the_same_of_several_rounds_is_kept_as_data() -> None:
    kept = json.loads(json.dumps(summary.round_data(ROUNDS, Path("build/soak"))))

    assert [one["red"] for one in kept["rounds"]] == [True, True, False]
    assert kept["failures"][0] == {
        "what": "a",
        "times": 2,
        "logs": ["build/soak/1/failed/a-ca9781", "build/soak/2/failed/a-ca9781"],
    }


def timed(name: str, seconds: float, **tests: float) -> Stage:
    phases = [
        Phase(test, when, "passed", took if when == "call" else 0.0)
        for test, took in tests.items()
        for when in ("setup", "call", "teardown")
    ]
    return Stage(name, seconds, 0, (Record("tests", (), tuple(tests), tuple(phases), (), 0, seconds),))


TIMED = [
    timed("check", 50.0, quick=1.0),
    timed("cluster", 100.0),
    timed("api-and-e2e", 1190.5, grown=100.0, alike=31.0, new=20.0, slower=4.0),
    timed("rest", 100.0, other=3.0),
]
KNOWN = {"grown": 60.0, "alike": 30.0, "slower": 2.0}


def test_each_part_is_charged_to_its_budget_and_it_is_said_how_much_too_long_one_was_and_what_has_grown() -> None:
    assert list(summary.budget_lines(TIMED, KNOWN, is_full=False)) == [
        "     50.0  make check, of 60",
        "   1290.5  merge tier, of 1200, 90 s more than it may",
        "    100.0  slice, of 900",
        "           grown from 60 to 100 s: grown",
        "           grown from 0 to 20 s: new",
    ]


def test_a_run_within_its_budgets_names_no_test() -> None:
    assert list(summary.budget_lines(TIMED[:2], {}, is_full=False)) == [
        "     50.0  make check, of 60",
        "    100.0  merge tier, of 1200",
    ]


def test_everything_has_a_budget_of_its_own() -> None:
    assert list(summary.budget_lines(TIMED, KNOWN, is_full=True)) == ["   1440.5  full tier, of 5400"]


def test_a_full_run_leaves_its_commit_its_day_and_the_time_of_each_test() -> None:
    found = last_full_of(TIMED[:1], "1f", date(2026, 11, 27))

    assert found == LastFull("1f", "2026-11-27", 50.0, {"quick": 1.0})
