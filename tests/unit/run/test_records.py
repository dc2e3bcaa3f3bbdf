"""What one pytest process did: read from its lines, and whether its outcomes count."""

from __future__ import annotations

import pytest

from tests.run.records import Phase, Record, read

LINES = [
    '{"kind": "begun", "name": "tests/unit", "options": ["-x"]}',
    '{"kind": "selected", "tests": ["a", "b"]}',
    '{"kind": "phase", "test": "a", "when": "setup", "outcome": "passed", "seconds": 0.5, "text": ""}',
    '{"kind": "phase", "test": "a", "when": "call", "outcome": "failed", "seconds": 2.0, "text": "assert 1 == 2"}',
    '{"kind": "phase", "test": "a", "when": "teardown", "outcome": "passed", "seconds": 0.1, "text": ""}',
]
PHASES = (
    Phase("a", "setup", "passed", 0.5),
    Phase("a", "call", "failed", 2.0, "assert 1 == 2"),
    Phase("a", "teardown", "passed", 0.1),
)


def test_lines_are_read_into_a_record() -> None:
    assert read([*LINES, '{"kind": "ended", "code": 1, "seconds": 3.5}']) == Record(
        "tests/unit", ("-x",), ("a", "b"), PHASES, (), 1, 3.5
    )


def test_a_process_that_was_killed_while_it_wrote_leaves_what_it_wrote_before() -> None:
    assert read([*LINES, '{"kind": "pha']) == Record("tests/unit", ("-x",), ("a", "b"), PHASES)


def test_tests_that_several_workers_have_collected_are_selected_once() -> None:
    assert read([LINES[1], LINES[1]]).selected == ("a", "b")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        pytest.param(Record("unit", (), ("a",), PHASES, code=0), "", id="all passed"),
        pytest.param(Record("unit", (), ("a",), PHASES, code=1), "", id="a test failed"),
        pytest.param(Record("unit", code=5), "", id="nothing was selected"),
        pytest.param(Record("unit", (), ("a",), PHASES), "pytest unit was killed or crashed", id="no end"),
        pytest.param(
            Record("unit", (), ("a", "b"), PHASES, code=1),
            "pytest unit stopped before the end of 1 of 2 tests",
            id="stopped by -x",
        ),
        pytest.param(
            Record("unit", (), ("a", "b"), PHASES, code=0),
            "pytest unit stopped before the end of 1 of 2 tests",
            id="ended with 0 too early",
        ),
        pytest.param(
            Record("unit", (), ("a",), PHASES, ("can't collect b.py\nSyntaxError",), 1),
            "pytest unit: can't collect b.py",
            id="collection error",
        ),
        pytest.param(Record("unit", (), ("a",), PHASES, code=2), "pytest unit ended with 2", id="interrupted"),
        pytest.param(Record("unit", code=4), "pytest unit ended with 4", id="wrong usage"),
    ],
)
def test_the_problem_of_a_process_is_one_line(record: Record, problem: str) -> None:
    assert record.problem() == problem
