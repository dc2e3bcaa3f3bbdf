"""Stages of a run, made of what became of each test."""

from __future__ import annotations

from collections.abc import Iterable

from tests.run.records import Phase, Record
from tests.run.verdict import Stage

IN_SETUP = "failed in setup"
"""What becomes of a test whose fixture fails; how may follow."""


def record(outcomes: dict[str, str], *, name: str = "tests/unit", code: int | None = None) -> Record:
    """A pytest process that ran these tests to their ends, each in 3.5 seconds."""
    phases = [phase for test, outcome in outcomes.items() for phase in _phases(test, outcome)]
    ended = code if code is not None else int(any("failed" in outcome for outcome in outcomes.values()))
    return Record(name, ("-q",), tuple(outcomes), tuple(phases), (), ended, 4.0)


def stage(
    outcomes: dict[str, str], *, name: str = "check", code: int = 0, passed_again: Iterable[str] = ()
) -> Stage:
    """A stage of one such process."""
    return Stage(name, 5.0, code, (record(outcomes),), frozenset(passed_again))


def _phases(test: str, outcome: str) -> list[Phase]:
    text = f"why {test} failed" if outcome == "failed" else ""
    if outcome.startswith(IN_SETUP):
        return [
            Phase(test, "setup", "failed", 1.0, f"why {test} failed", cause=outcome),
            Phase(test, "teardown", "passed", 0.5),
        ]
    return [
        Phase(test, "setup", "passed", 1.0),
        Phase(test, "call", outcome, 2.0, text),
        Phase(test, "teardown", "passed", 0.5),
    ]
