"""
What a run comes to, by the records of its stages.

Owns: which tests get a second chance, what is flaky, what is red, what is counted. Reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from tests.run.records import NO_TESTS, OK, Phase, Record

MOST_FLAKY = 2
"""Failures that may be none the second time, in a whole run."""

MOST_CHANCES = 5
"""With more failures in a stage something is broken, and none of the tests is run again."""


class Outcome(Enum):
    """What became of a test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """One test in its first run."""

    name: str
    """What pytest calls it, from the folder of the checkout."""
    outcome: Outcome
    setup: float
    """In seconds. The first test of several that share a fixture pays for it."""
    seconds: float
    """Setup, call and teardown."""
    text: str
    """Why it failed."""
    options: tuple[str, ...]
    """Those of the pytest that ran it."""
    shares: str = ""
    """Its file, and how its fixture failed, if one did: other tests of that file may share it."""


@dataclass(frozen=True)
class Stage:
    """A target of the Makefile, and the pytest processes that it has started."""

    name: str
    seconds: float
    code: int
    """0 even if tests have failed: the recorder leaves that to the verdict."""
    records: tuple[Record, ...] = ()
    passed_again: frozenset[str] = field(default_factory=frozenset)
    """Tests that failed and then passed in a second run."""

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Each test once. If several processes ran it, a failure in one of them counts."""
        found: dict[str, Result] = {}
        for record in self.records:
            for result in _results(record):
                if result.name not in found or result.outcome is Outcome.FAILED:
                    found[result.name] = result
        return tuple(found.values())

    @property
    def failed(self) -> list[Result]:
        return [result for result in self.results if result.outcome is Outcome.FAILED]

    @property
    def problems(self) -> list[str]:
        """What is wrong beside tests that have failed: a line for each."""
        found = [problem for record in self.records if (problem := record.problem())]
        ended_well = self.code in (OK, NO_TESTS)
        return found or ([] if ended_well else [f"{self.name} ended with exit code {self.code}"])


def chances(stage: Stage, seen: Container[str]) -> list[list[Result]]:
    """
    The tests that are run once more, those together that failed together.

    None that was flaky before, and none where the run is red whatever they do.
    """
    failed = stage.failed
    together = failures(failed)
    if stage.problems or len(together) > MOST_CHANCES or any(test.name in seen for test in failed):
        return []
    return together


def failures(failed: Iterable[Result]) -> list[list[Result]]:
    """Tests by what has failed: each by itself, but those of a file whose setup failed alike are one failure."""
    found: dict[str, list[Result]] = {}
    for test in failed:
        found.setdefault(test.shares or test.name, []).append(test)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Verdict:
    """The counts of a run, and what is wrong with it. A run is red if and only if `failed` is not 0."""

    passed: int
    failed: int
    skipped: int
    flaky: tuple[str, ...]
    broken: tuple[str, ...]
    """Tests that have failed, twice where they had a second chance."""
    problems: tuple[str, ...]
    is_too_flaky: bool = False

    @property
    def is_red(self) -> bool:
        return self.failed > 0


def closing_line(verdicts: Iterable[Verdict]) -> str:
    """The counts in pytest's words."""
    verdicts = tuple(verdicts)
    passed, failed = sum(each.passed for each in verdicts), sum(each.failed for each in verdicts)
    skipped = sum(each.skipped for each in verdicts)
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def judge(stages: Iterable[Stage], *, is_over: bool) -> Verdict:
    """
    The verdict on what has been run so far, or on all of it.

    Each problem counts as a failure. Flaky tests count as passed, but as failed where there are too many of them.
    """
    stages = tuple(stages)
    again = [test for stage in stages for test in stage.failed if test.name in stage.passed_again]
    flaky = tuple(test.name for test in again)
    broken = tuple(test.name for stage in stages for test in stage.failed if test.name not in stage.passed_again)
    is_too_flaky = len(failures(again)) > MOST_FLAKY
    problems = [problem for stage in stages for problem in stage.problems]
    outcomes = [result.outcome for stage in stages for result in stage.results]
    if is_over and not problems and set(outcomes) <= {Outcome.SKIPPED}:
        problems.append("no test was run")
    forgiven = 0 if is_too_flaky else len(flaky)
    return Verdict(
        passed=outcomes.count(Outcome.PASSED) + forgiven,
        failed=len(broken) + len(problems) + len(flaky) - forgiven,
        skipped=outcomes.count(Outcome.SKIPPED),
        flaky=flaky,
        broken=broken,
        problems=tuple(problems),
        is_too_flaky=is_too_flaky,
    )


def slowest(stages: Sequence[Stage], count: int) -> list[Result]:
    """The tests that took the most time."""
    results = [result for stage in stages for result in stage.results]
    return sorted(results, key=lambda result: -result.seconds)[:count]


def _results(record: Record) -> list[Result]:
    """The tests that have failed or have come to their ends. One in which pytest was killed has no outcome."""
    by_test: dict[str, list[Phase]] = {}
    for phase in record.phases:
        by_test.setdefault(phase.test, []).append(phase)
    return [
        Result(
            name=name,
            outcome=outcome,
            setup=sum(phase.seconds for phase in phases if phase.when == "setup"),
            seconds=sum(phase.seconds for phase in phases),
            text="\n".join(phase.text for phase in phases if phase.text),
            options=record.options,
            shares=next((f"{name.partition('::')[0]} {phase.cause}" for phase in phases if phase.cause), ""),
        )
        for name, phases in by_test.items()
        if (outcome := _outcome(phases)) is not None
    ]


def _outcome(phases: Sequence[Phase]) -> Outcome | None:
    outcomes = {phase.outcome for phase in phases}
    if "failed" in outcomes:
        return Outcome.FAILED
    if all(phase.when != "teardown" for phase in phases):
        return None
    return Outcome.SKIPPED if "skipped" in outcomes else Outcome.PASSED
