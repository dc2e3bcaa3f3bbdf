"""
What a training's log says, as values.

Owns: the lines of train.py and of horovodrun, and the promise about committed steps. Reads nothing by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

COMMIT_EVERY = 5

_STEP = re.compile(r"<stdout>:step=(\d+) size=(\d+) rank0=(\S+) committed=(yes|no) ")

# kubectl's time stamps have nanoseconds, which Python's do not.
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6})\d*Z (.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log, and when it was written, in seconds since 1970."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step that rank 0 told of."""

    at: float
    number: int
    size: int
    host: str
    committed: bool


def line_of(stamped: str) -> Line:
    """A line as `kubectl logs --timestamps` prints it."""
    found = _STAMP.fullmatch(stamped)
    if found is None:
        raise ValueError(f"no time stamp: {stamped!r}")
    return Line(datetime.fromisoformat(f"{found[1]}+00:00").timestamp(), found[2])


def step_of(line: Line) -> Step | None:
    """The step that a line tells of, if it does."""
    found = _STEP.search(line.text)
    if found is None:
        return None
    return Step(line.at, int(found[1]), int(found[2]), found[3], found[4] == "yes")


def broken_promises(steps: Iterable[Step]) -> list[str]:
    """
    Steps that break what `committed=yes` promises; none, in a sound training.

    Each step follows the one before it. After a reset, and only then, work begins again behind the last commit. So
    committed steps come once each, in order, one interval apart.
    """
    broken, before, committed = [], 0, 0
    for step in steps:
        if step.number not in {before + 1, committed + 1}:
            broken.append(f"step {step.number} after step {before}, when {committed} was committed")
        if step.committed != (step.number % COMMIT_EVERY == 0):
            broken.append(f"step {step.number} has committed={step.committed}")
        before = step.number
        committed = step.number if step.committed else committed
    return broken


def worlds(steps: Sequence[Step]) -> list[int]:
    """The sizes of the world, one after the other."""
    return [step.size for i, step in enumerate(steps) if i == 0 or steps[i - 1].size != step.size]
