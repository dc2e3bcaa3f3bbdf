"""
What a training's log says, as values.

Owns: the lines of train.py and of horovodrun, and the promise about committed steps. Reads nothing by itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

COMMIT_EVERY = 5

_STEP = re.compile(r"<stdout>:step=(\d+) size=(\d+) rank0=(\S+) committed=(yes|no) ")
_RESUMED = re.compile(r"<stdout>:resumed=(\d+) size=")

# What is said by a worker that Gloo ends because another one died, and by one that Gloo has wait for its time-out.
_BROKEN_BY_GLOO = re.compile(r"gloo::EnforceNotMet|Timed out waiting \d+ms for \w+ operation")

# What Horovod has for it then: the time-out of 30 s, or a host that is left out for up to 45 s and has to start.
_WITH_GLOO_BROKEN = 90.0

# kubectl's time stamps have nanoseconds, which Python's do not.
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6})\d*Z (.*)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log, and when it was written, in seconds since 1970."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step that rank 0 has logged."""

    at: float
    number: int
    size: int
    host: str
    committed: bool


@dataclass(frozen=True, slots=True)
class Resumed:
    """A world has begun; all its workers hold the step of that number."""

    number: int


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


def resumed_of(line: Line) -> Resumed | None:
    """What a line tells of a world's beginning, if it does."""
    found = _RESUMED.search(line.text)
    return Resumed(int(found[1])) if found else None


def broken_promises(lines: Iterable[Line]) -> list[str]:
    """
    What breaks the promise of `committed=yes`; nothing, in a sound training.

    Each step follows the one before it, or the one that its world began with. And a world begins with the last
    commit, or with the step after the last that was told: that was committed, and who was to say so has gone.
    """
    broken, before, committed = list[str](), 0, 0
    for told in _told(lines):
        if isinstance(told, Resumed):
            if told.number != committed and (told.number != before + 1 or told.number % COMMIT_EVERY):
                broken.append(f"resumed at {told.number} after step {before}, when {committed} was committed")
            before = committed = told.number
            continue
        if told.number != before + 1:
            broken.append(f"step {told.number} after step {before}")
        if told.committed != (told.number % COMMIT_EVERY == 0):
            broken.append(f"step {told.number} has committed={told.committed}")
        before = told.number
        committed = told.number if told.committed else committed
    return broken


def time_for_a_death(lines: Iterable[Line], *, usual: float) -> float:
    """
    How long training may take to go on after a worker's death, by what the log says meanwhile.

    It is more where Gloo breaks down beside the worker that dies, a limit of Horovod: see docs/elastic.md.
    """
    return _WITH_GLOO_BROKEN if any(_BROKEN_BY_GLOO.search(line.text) for line in lines) else usual


def _told(lines: Iterable[Line]) -> Iterator[Step | Resumed]:
    for line in lines:
        told = step_of(line) or resumed_of(line)
        if told is not None:
            yield told


def digest(lines: Sequence[Line]) -> list[str]:
    """The lines with their seconds, but of steps in one world only the first and the last."""
    steps = [step_of(line) for line in lines]
    within = [None, *(step and (step.size, step.host) for step in steps), None]
    neighbours = zip(lines, within, within[1:], within[2:], strict=False)
    return [
        f"{line.at - lines[0].at:.2f} {line.text}"
        for line, before, here, after in neighbours
        if here is None or not before == here == after
    ]


def repeated(steps: Sequence[Step]) -> list[int]:
    """All steps that were done again, each as often as that."""
    highest = itertools.accumulate((step.number for step in steps), max)
    return [step.number for before, step in zip(highest, steps[1:], strict=False) if step.number <= before]


def worlds(steps: Sequence[Step]) -> list[int]:
    """The sizes of the world, one after the other."""
    return [step.size for i, step in enumerate(steps) if i == 0 or steps[i - 1].size != step.size]
