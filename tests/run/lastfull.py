"""
The last run of the full tier that was green, as the repository keeps it: which commit, when, what each test took.

`make test-full` writes it. What the merge tier may leave out, how the rest is shared out and what has grown since
follow from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from tests.run.verdict import Stage

FILE = Path("tests/lastfull.json")

_SHORTEST = 1.0
"""Seconds; a shorter test is not worth a line."""


@dataclass(frozen=True)
class LastFull:
    """That run; without a commit there was none."""

    commit: str = ""
    date: str = ""
    total: float = 0.0
    """Its seconds."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Those of each test, setup and teardown included."""


def of(stages: Iterable[Stage], commit: str, day: date) -> LastFull:
    """What a run that has ended leaves to the next ones."""
    stages = tuple(stages)
    seconds = {test.name: test.seconds for stage in stages for test in stage.results}
    return LastFull(commit, day.isoformat(), sum(stage.seconds for stage in stages), seconds)


def read() -> LastFull:
    try:
        found = json.loads(FILE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return LastFull()
    return LastFull(found["commit"], found["date"], found["total"], found["seconds"])


def write(run: LastFull) -> None:
    seconds = {name: round(took, 1) for name, took in sorted(run.seconds.items()) if took >= _SHORTEST}
    kept = {"commit": run.commit, "date": run.date, "total": round(run.total), "seconds": seconds}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
