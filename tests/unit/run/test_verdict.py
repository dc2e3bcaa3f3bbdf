"""Who gets a second chance, what is red, and what is counted as what."""

from __future__ import annotations

import pytest

from tests.run.records import Phase, Record
from tests.run.verdict import Outcome, Result, Stage, Verdict, chances, closing_line, judge, slowest
from tests.unit.run.stages import IN_SETUP, record, stage

GOOD = {"a": "passed", "b": "passed", "c": "skipped"}
TWO_FAILED = {"a": "failed", "b": "failed", "c": "passed"}
THREE_FAILED = {"a": "failed", "b": "failed", "c": "failed", "d": "passed"}


def names(results: list[Result]) -> list[str]:
    return [result.name for result in results]


class TestResults:
    def test_a_test_is_its_three_phases(self) -> None:
        assert stage({"a": "failed"}).results == (
            Result("a", Outcome.FAILED, setup=1.0, seconds=3.5, text="why a failed", options=("-q",)),
        )

    @pytest.mark.parametrize("when", ["setup", "call", "teardown"])
    def test_a_test_has_failed_whichever_phase_did(self, when: str) -> None:
        phases = [
            Phase("a", each, "failed" if each == when else "passed", 1.0) for each in ("setup", "call", "teardown")
        ]

        assert names(Stage("check", 1.0, 0, (Record("unit", (), ("a",), tuple(phases)),)).failed) == ["a"]

    def test_a_test_in_which_pytest_was_killed_has_no_outcome(self) -> None:
        killed = Record("unit", (), ("a",), (Phase("a", "setup", "passed", 1.0),))

        assert Stage("check", 1.0, 2, (killed,)).results == ()

    def test_a_test_that_two_processes_have_run_has_failed_if_it_has_in_one(self) -> None:
        both = (record({"a": "passed", "b": "failed"}), record({"a": "failed", "b": "passed"}))

        assert names(Stage("check", 1.0, 0, both).failed) == ["a", "b"]

    def test_the_slowest_tests_of_all_stages_come_first(self) -> None:
        quick = Record("unit", (), ("q",), (Phase("q", "teardown", "passed", 0.1),), (), 0)

        assert names(slowest([Stage("check", 1.0, 0, (quick,)), stage({"a": "passed"}, name="e2e")], 1)) == ["a"]


FIVE = {str(number): "failed" for number in range(5)}
# A fixture of one file that fails for seven tests is one failure.
SEVEN = {f"one.py::{number}": IN_SETUP for number in range(7)}
CRASHED = Stage("check", 1.0, 2, (record(TWO_FAILED), Record("unit", (), ("x",))))


@pytest.mark.parametrize(
    ("failed", "flaky_before", "again"),
    [
        pytest.param(stage(TWO_FAILED), (), [["a"], ["b"]], id="tests that failed"),
        pytest.param(stage(FIVE), (), [[each] for each in FIVE], id="five"),
        pytest.param(stage({"a": "failed", **SEVEN}), (), [["a"], list(SEVEN)], id="those of a fixture"),
        pytest.param(
            stage({"one.py::a": f"{IN_SETUP}: one", "one.py::b": f"{IN_SETUP}: other"}),
            (),
            [["one.py::a"], ["one.py::b"]],
            id="those of two failures in a file",
        ),
        pytest.param(stage({**FIVE, **SEVEN}), (), [], id="five and those of a fixture are too many"),
        pytest.param(stage({**FIVE, "5": "failed"}), (), [], id="six are too many"),
        pytest.param(stage(TWO_FAILED), {"b"}, [], id="one of them was flaky before"),
        pytest.param(stage(TWO_FAILED, code=2), (), [], id="something else is wrong"),
        pytest.param(CRASHED, (), [], id="a process crashed"),
    ],
)
def test_tests_that_failed_get_a_second_chance(
    failed: Stage, flaky_before: set[str], again: list[list[str]]
) -> None:
    assert list(map(names, chances(failed, flaky_before))) == again


class TestVerdicts:
    @pytest.mark.parametrize(
        ("stages", "verdict", "is_red"),
        [
            pytest.param(
                [stage(GOOD), stage({"d": "passed"}, name="e2e")],
                Verdict(3, 0, 1, flaky=(), broken=(), problems=()),
                False,
                id="passed and skipped ones of all stages",
            ),
            pytest.param(
                [stage(TWO_FAILED, passed_again="ab")],
                Verdict(3, 0, 0, flaky=("a", "b"), broken=(), problems=()),
                False,
                id="two flaky ones count as passed",
            ),
            pytest.param(
                [stage(TWO_FAILED, passed_again="ab"), stage({"x": "failed"}, name="e2e", passed_again="x")],
                Verdict(1, 3, 0, flaky=("a", "b", "x"), broken=(), problems=(), is_too_flaky=True),
                True,
                id="three flaky ones in all stages count as failed",
            ),
            pytest.param(
                [stage({"a": "failed", **SEVEN}, passed_again=["a", *SEVEN])],
                Verdict(8, 0, 0, flaky=("a", *SEVEN), broken=(), problems=()),
                False,
                id="flaky ones of a fixture are one",
            ),
            pytest.param(
                [stage(THREE_FAILED, passed_again="bc")],
                Verdict(3, 1, 0, flaky=("b", "c"), broken=("a",), problems=()),
                True,
                id="one that failed twice",
            ),
            pytest.param(
                [stage(GOOD, name="check", code=2)],
                Verdict(2, 1, 1, (), (), problems=("check ended with exit code 2",)),
                True,
                id="a problem outside of tests counts as a failure",
            ),
        ],
    )
    def test_count_what_all_stages_have(self, stages: list[Stage], verdict: Verdict, *, is_red: bool) -> None:
        found = judge(stages, is_over=True)

        assert (found, found.is_red) == (verdict, is_red)

    def test_the_cause_in_a_pytest_process_is_said_instead_of_makes_exit_code(self) -> None:
        crashed = Stage("check", 1.0, 2, (record(GOOD), Record("tests/protocol", (), ("x",))))

        assert judge([crashed], is_over=True).problems == ("pytest tests/protocol was killed or crashed",)

    def test_a_crash_is_red_even_if_it_ended_with_0(self) -> None:
        crashed = Stage("check", 1.0, 0, (Record("tests/unit", (), ("x",)),))

        assert judge([crashed], is_over=True).is_red

    @pytest.mark.parametrize("outcomes", [{}, {"a": "skipped"}], ids=["none", "skipped ones"])
    def test_a_run_without_tests_is_red_when_it_is_over(self, outcomes: dict[str, str]) -> None:
        assert judge([stage(outcomes)], is_over=True).problems == ("no test was run",)
        assert not judge([stage(outcomes)], is_over=False).is_red

    @pytest.mark.parametrize(
        ("verdict", "line"),
        [
            (Verdict(7, 0, 0, (), (), ()), "7 passed, 0 failed"),
            (Verdict(7, 2, 0, (), (), ()), "7 passed, 2 failed"),
            (Verdict(7, 0, 3, (), (), ()), "7 passed, 0 failed, 3 skipped"),
        ],
        ids=["green", "red", "with skipped tests"],
    )
    def test_the_closing_line_is_in_pytests_words(self, verdict: Verdict, line: str) -> None:
        assert closing_line([verdict]) == line
