"""
What several rounds of the same run come to: what failed, and how often.

Owns: the table and the same as data. Reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.run.summary import FAILED, log_folder
from tests.run.verdict import Stage, closing_line, judge


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
        own = folder_of(self, folder)
        found = {test.name: own / FAILED / log_folder(test.name) for stage in self.stages for test in stage.failed}
        for stage in self.stages:
            found |= {problem: log_of(self, stage.name, folder) for problem in stage.problems}
        return found


def folder_of(one: Round, folder: Path) -> Path:
    return folder / str(one.number)


def log_of(one: Round, target: str, folder: Path) -> Path:
    """Where the output of a target is."""
    return folder_of(one, folder) / f"{target}.log"


def lines(rounds: Sequence[Round], folder: Path) -> Iterator[str]:
    """The table, and the closing line with the sums of all rounds."""
    yield f"{'FAILED':>9}  WHAT, AND ITS LOGS"
    for what, logs in _by_frequency(rounds, folder):
        yield f"{f'{len(logs)} of {len(rounds)}':>9}  {what}"
        yield from (f"{'':9}    {log}" for log in logs)
    verdicts = [judge(one.stages, is_over=True) for one in rounds]
    yield f"{sum(verdict.is_red for verdict in verdicts)} of {len(rounds)} rounds were red"
    yield closing_line(verdicts)


def data(rounds: Sequence[Round], folder: Path) -> dict[str, object]:
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
