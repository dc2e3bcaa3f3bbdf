"""Who gets a second chance, what is red, and what is counted as what."""

from __future__ import annotations

import pytest

from tests.run.records import Phase, Record
from tests.run.verdict import Outcome, Result, Stage, Verdict, chances, closing_line, judge, slowest
from tests.unit.run.stages import record, stage

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


class TestSecondChances:
    def test_tests_that_failed_get_one(self) -> None:
        assert names(chances(stage(TWO_FAILED), ())) == ["a", "b"]

    def test_no_test_gets_one_where_one_of_them_was_flaky_before(self) -> None:
        assert chances(stage(TWO_FAILED), {"b"}) == []

    def test_failed_tests_get_none_where_something_else_is_wrong(self) -> None:
        assert chances(stage(TWO_FAILED, code=2), ()) == []

    def test_failed_tests_get_none_where_a_process_crashed(self) -> None:
        crashed = Record("unit", (), ("x",))

        assert chances(Stage("check", 1.0, 2, (record(TWO_FAILED), crashed)), ()) == []

    def test_five_that_failed_get_one_and_six_do_not(self) -> None:
        failed = {str(number): "failed" for number in range(6)}

        assert len(chances(stage(dict(list(failed.items())[:5])), ())) == 5
        assert chances(stage(failed), ()) == []


class TestVerdicts:
    def test_passed_and_skipped_tests_are_counted_over_all_stages(self) -> None:
        verdict = judge([stage(GOOD), stage({"d": "passed"}, name="e2e")], is_over=True)

        assert verdict == Verdict(3, 0, 1, flaky=(), broken=(), problems=())
        assert not verdict.is_red

    def test_two_flaky_tests_count_as_passed(self) -> None:
        verdict = judge([stage(TWO_FAILED, passed_again="ab")], is_over=True)

        assert verdict == Verdict(3, 0, 0, flaky=("a", "b"), broken=(), problems=())
        assert not verdict.is_red

    def test_three_flaky_tests_in_all_stages_count_as_failed(self) -> None:
        stages = [stage(TWO_FAILED, passed_again="ab"), stage({"x": "failed"}, name="e2e", passed_again="x")]
        verdict = judge(stages, is_over=True)

        assert verdict == Verdict(1, 3, 0, flaky=("a", "b", "x"), broken=(), problems=())
        assert verdict.is_red

    def test_a_test_that_failed_twice_is_red(self) -> None:
        verdict = judge([stage(THREE_FAILED, passed_again="bc")], is_over=True)

        assert verdict == Verdict(3, 1, 0, flaky=("b", "c"), broken=("a",), problems=())
        assert verdict.is_red

    def test_a_problem_outside_of_tests_counts_as_a_failure(self) -> None:
        verdict = judge([stage(GOOD, name="check", code=2)], is_over=True)

        assert verdict == Verdict(2, 1, 1, (), (), problems=("check ended with exit code 2",))

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
