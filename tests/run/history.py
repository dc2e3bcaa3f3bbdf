"""
What a run knows of earlier ones: the commit and its changes, the last full run, and the flaky tests.

Owns: git's answers, tests/lastfull.json and tests/flaky.toml. `make test-full` writes the former: what the merge
tier may leave out, how the rest is shared out and which tests have grown follow from it.

A test has one second chance in its life: when it has used it, it is noted in tests/flaky.toml, and then mended.
Without git, or outside of a checkout, nothing is known, which is no error.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from tests.run.verdict import Stage

LAST_FULL = Path("tests/lastfull.json")
FLAKY = Path("tests/flaky.toml")
UNKNOWN = "unknown"

_SHORTEST = 1.0
"""Seconds; a shorter test is not worth a line."""


@dataclass(frozen=True)
class LastFull:
    """The last full run that was green; without a commit there was none."""

    commit: str = ""
    date: str = ""
    total: float = 0.0
    """Its seconds."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Those of each test, setup and teardown included."""


def last_full_of(stages: Iterable[Stage], commit: str, day: date) -> LastFull:
    """What a run that has ended leaves to the next ones."""
    stages = tuple(stages)
    seconds = {test.name: test.seconds for stage in stages for test in stage.results}
    return LastFull(commit, day.isoformat(), sum(stage.seconds for stage in stages), seconds)


def last_full() -> LastFull:
    try:
        found = json.loads(LAST_FULL.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return LastFull()
    return LastFull(found["commit"], found["date"], found["total"], found["seconds"])


def keep(run: LastFull) -> None:
    seconds = {name: round(took, 1) for name, took in sorted(run.seconds.items()) if took >= _SHORTEST}
    kept = {"commit": run.commit, "date": run.date, "total": round(run.total), "seconds": seconds}
    LAST_FULL.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Sighting:
    """A test that failed, and passed when it was run once more."""

    test: str
    seen: date
    cause: str

    def __post_init__(self) -> None:
        if not self.cause:
            raise ValueError(f"{FLAKY} gives no cause for {self.test}")


def sightings() -> dict[str, Sighting]:
    """By the test's name."""
    entries = tomllib.loads(FLAKY.read_text(encoding="utf-8")).get("flaky", ())
    return {entry["test"]: Sighting(entry["test"], entry["seen"], entry["cause"]) for entry in entries}


def head() -> str:
    """The commit that is checked out."""
    return _git("rev-parse", "HEAD").strip() or UNKNOWN


def changed_since(commit: str) -> list[str]:
    """The files that differ from a commit, committed or not; all files if the commit is unknown."""
    if not commit or not _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"):
        return _git("ls-files").splitlines() or ["Makefile"]
    return _git("diff", "--name-only", commit).splitlines()


def count_since(commit: str) -> int:
    """How many commits there are since one; since the first if it is unknown."""
    found = _git("rev-list", "--count", f"{commit}..HEAD") if commit else ""
    return int(found or _git("rev-list", "--count", "HEAD") or 0)


def _git(*words: str) -> str:
    try:
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
