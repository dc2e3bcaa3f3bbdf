"""
What is printed of a run at its end, or of several rounds of it, as text and as data.

Owns: the tables, the lines about flaky and failed tests, the names of the folders with their logs, and how long
the parts of a run may last on two processors. A machine may be slow, so a budget makes no run red. Reads and
writes nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.run.verdict import MOST_FLAKY, Stage, Verdict, closing_line, judge, slowest

SLOWEST = 15

FLAKY, FAILED = "flaky", "failed"
"""The folders of logs, by what became of the test in its second run."""
FIRST, SECOND = "first.log", "second.log"

_LONGEST_NAME = 100

CHECK, MERGE, SLICE, FULL = "make check", "merge tier", "slice", "full tier"
BUDGETS = {CHECK: 60.0, MERGE: 1200.0, SLICE: 900.0, FULL: 5400.0}
"""In seconds."""

_OF_TARGETS = {"check": CHECK, "rest": SLICE, "oldest": SLICE}
_GROWN = 5
# Less than this is the machine's mood.
_BY_SECONDS, _BY_RATIO = 3.0, 1.5


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
    if verdict.is_too_flaky:
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


def spent(stages: Iterable[Stage], *, is_full: bool) -> dict[str, float]:
    """What each budget was charged."""
    found: dict[str, float] = {}
    for stage in stages:
        budget = FULL if is_full else _OF_TARGETS.get(stage.name, MERGE)
        found[budget] = found.get(budget, 0.0) + stage.seconds
    return found


def budget_lines(stages: Sequence[Stage], known: Mapping[str, float], *, is_full: bool) -> Iterator[str]:
    """What each of them took of its budget, and if one took more, which tests last longer than was known."""
    over = False
    for budget, seconds in spent(stages, is_full=is_full).items():
        most = BUDGETS[budget]
        more = f", {seconds - most:.0f} s more than it may" if seconds > most else ""
        over = over or bool(more)
        yield f"{seconds:9.1f}  {budget}, of {most:.0f}{more}"
    if over:
        yield from (
            f"           grown from {then:.0f} to {now:.0f} s: {test}" for test, then, now in _grown(stages, known)
        )


def _grown(stages: Iterable[Stage], known: Mapping[str, float]) -> list[tuple[str, float, float]]:
    took = {test.name: test.seconds for stage in stages for test in stage.results}
    found = [
        (test, known.get(test, 0.0), now)
        for test, now in took.items()
        if now > known.get(test, 0.0) + _BY_SECONDS and now > known.get(test, 0.0) * _BY_RATIO
    ]
    return sorted(found, key=lambda grown: grown[1] - grown[2])[:_GROWN]


@dataclass(frozen=True)
class Round:
    """One run, in which no test has had a second chance."""

    number: int
    stages: tuple[Stage, ...]

    @property
    def is_red(self) -> bool:
        return judge(self.stages, is_over=True).is_red

    def failures(self, folder: Path) -> dict[str, Path]:
        """What has failed, and where its log is; `folder` is that of all rounds."""
        own = round_folder(self, folder)
        found = {test.name: own / FAILED / log_folder(test.name) for stage in self.stages for test in stage.failed}
        for stage in self.stages:
            found |= {problem: round_log(self, stage.name, folder) for problem in stage.problems}
        return found


def round_folder(one: Round, folder: Path) -> Path:
    return folder / str(one.number)


def round_log(one: Round, target: str, folder: Path) -> Path:
    """Where the output of a target is."""
    return round_folder(one, folder) / f"{target}.log"


def round_lines(rounds: Sequence[Round], folder: Path) -> Iterator[str]:
    """The table, and the closing line with the sums of all rounds."""
    yield f"{'FAILED':>9}  WHAT, AND ITS LOGS"
    for what, logs in _by_frequency(rounds, folder):
        yield f"{f'{len(logs)} of {len(rounds)}':>9}  {what}"
        yield from (f"{'':9}    {log}" for log in logs)
    verdicts = [judge(one.stages, is_over=True) for one in rounds]
    yield f"{sum(verdict.is_red for verdict in verdicts)} of {len(rounds)} rounds were red"
    yield closing_line(verdicts)


def round_data(rounds: Sequence[Round], folder: Path) -> dict[str, object]:
    """The same, to be kept as JSON."""
    return {
        "rounds": [
            {
                "red": one.is_red,
                "stages": [{"name": stage.name, "seconds": round(stage.seconds, 1)} for stage in one.stages],
            }
            for one in rounds
        ],
        "failures": [
            {"what": what, "times": len(logs), "logs": [str(log) for log in logs]}
            for what, logs in _by_frequency(rounds, folder)
        ],
    }


def _by_frequency(rounds: Sequence[Round], folder: Path) -> list[tuple[str, list[Path]]]:
    """What has failed, the most frequent first, with its logs."""
    found: dict[str, list[Path]] = {}
    for one in rounds:
        for what, log in one.failures(folder).items():
            found.setdefault(what, []).append(log)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
