"""
What is said of a run at its end, as text and as data.

Owns: the tables, the lines about flaky and failed tests, the names of the folders with their logs. Reads and
writes nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.run.verdict import MOST_FLAKY, Stage, Verdict, closing_line, slowest

SLOWEST = 15

FLAKY, FAILED = "flaky", "failed"
"""The folders of logs, by what became of the test in its second run."""
FIRST, SECOND = "first.log", "second.log"

_LONGEST_NAME = 100


def log_folder(test: str) -> str:
    """The name of the folder with a test's logs: readable, and no other test's."""
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", _without_folders(test)).strip("-.")[:_LONGEST_NAME]
    return f"{readable}-{hashlib.sha256(test.encode()).hexdigest()[:6]}"


def lines(stages: Sequence[Stage], verdict: Verdict, logs: Path, spent: Sequence[str] = ()) -> Iterator[str]:
    """The whole text. Its last line is pytest's closing line, which CI systems look for."""
    yield from ["", *_slowest_tests(stages), "", *_times(stages), ""]
    if spent:
        yield from [f"{'SECONDS':>9}  BUDGETS", *spent, ""]
    for test in verdict.flaky:
        yield f"flaky: {test}"
        yield f"       failed, and passed when it was run once more: {logs / FLAKY / log_folder(test)}"
        yield "       find the cause, and note it in tests/flaky.toml; it gets no second chance again"
    for test in verdict.broken:
        yield f"failed: {test}"
        yield f"        {logs / FAILED / log_folder(test)}"
    if len(verdict.flaky) > MOST_FLAKY:
        yield f"red: {len(verdict.flaky)} tests are flaky; at most {MOST_FLAKY} may be"
    yield from (f"red: {problem}" for problem in verdict.problems)
    yield closing_line([verdict])


def data(stages: Sequence[Stage], verdict: Verdict, logs: Path) -> dict[str, object]:
    """The same, to be kept as JSON."""
    return {
        "red": verdict.is_red,
        "passed": verdict.passed,
        "failed": verdict.failed,
        "skipped": verdict.skipped,
        "flaky": [_logged(test, logs / FLAKY) for test in verdict.flaky],
        "broken": [_logged(test, logs / FAILED) for test in verdict.broken],
        "problems": list(verdict.problems),
        "stages": [
            {
                "name": stage.name,
                "seconds": round(stage.seconds, 1),
                "code": stage.code,
                "tests": len(stage.results),
                "parts": [{"name": part.name, "seconds": round(part.seconds, 1)} for part in stage.records],
            }
            for stage in stages
        ],
        "slowest": [
            {"test": test.name, "seconds": round(test.seconds, 1), "setup": round(test.setup, 1)}
            for test in slowest(stages, SLOWEST)
        ],
    }


def _without_folders(test: str) -> str:
    """What is left of "a/b/test_c.py::test_d[e/f]" from the file on."""
    file, colons, rest = test.partition("::")
    return file.rpartition("/")[2] + colons + rest


def _logged(test: str, folder: Path) -> dict[str, str]:
    return {"test": test, "logs": str(folder / log_folder(test))}


def _slowest_tests(stages: Sequence[Stage]) -> Iterator[str]:
    yield f"{'SECONDS':>9}  {'OF SETUP':>9}  SLOWEST TESTS"
    for test in slowest(stages, SLOWEST):
        yield f"{test.seconds:9.1f}  {test.setup:9.1f}  {test.name}"


def _times(stages: Sequence[Stage]) -> Iterator[str]:
    yield f"{'SECONDS':>9}  {'TESTS':>9}  STAGES AND THEIR PARTS"
    for stage in stages:
        yield f"{stage.seconds:9.1f}  {len(stage.results):9}  {stage.name}"
        for part in stage.records:
            yield f"{part.seconds:9.1f}  {len(part.selected):9}    pytest {part.name}"
