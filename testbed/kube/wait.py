"""
Waiting for a condition with a deadline: the only place of the test cluster that sleeps.

Seconds in which somebody waited for a processor hardly count: a test that shares the machine is as patient as one
that has it for itself.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from testbed.kube.errors import ClusterError

# Who has waited for long is in no hurry, and on a busy machine, where a question takes longer, it is asked less
# often.
_STEP, _LONGEST_STEP = 0.05, 1.0
_PAUSE_PER_QUESTION = 3.0
_PAUSE_PER_SECOND, _PATIENT_STEP = 0.1, 0.4

_PRESSURE = Path("/proc/pressure/cpu")
_STALLED = re.compile(r"^some .* total=(\d+)$", re.MULTILINE)
_MICROSECONDS = 1e-6
# On a machine that is always busy a wait in vain must end, too.
_LEAST_COUNTED = 0.25

Answer = TypeVar("Answer")


def by_the_clock(seconds: float) -> float:
    """How long so many seconds of a stopwatch may last, for who waits by another clock."""
    return seconds / _LEAST_COUNTED


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, and for how long until then somebody has waited for a processor, in seconds."""

    time: float
    stalled: float

    @classmethod
    def now(cls) -> Moment:
        return cls(time.monotonic(), _stalled())

    def until(self, later: Moment) -> float:
        """The seconds in between, without those in which somebody waited for a processor: at least a quarter."""
        seconds = later.time - self.time
        return max(seconds - (later.stalled - self.stalled), seconds * _LEAST_COUNTED)


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Runs from the moment on in which it is made, and slower while the machine is busy."""

    begun: Moment = field(default_factory=Moment.now)

    def seconds(self) -> float:
        return self.begun.until(Moment.now())


def until(
    question: Callable[[], Answer],
    *,
    within: float,
    what: str,
    instead: Callable[[], object] | None = None,
    remedy: str = "",
) -> Answer:
    """
    Ask until the answer is true, and return it; after `within` seconds of a stopwatch raise ClusterError.

    Its message tells what there is `instead` at that moment.
    """
    watch = Stopwatch()
    asked = time.monotonic()
    while not (answer := question()):
        if watch.seconds() > within:
            took = time.monotonic() - watch.begun.time
            found = "" if instead is None else f"; there is {instead()}"
            raise ClusterError(
                f"waited {within:g} s{_on_the_clock(took, within)} for {what}{found}", remedy=remedy
            )
        now = time.monotonic()
        time.sleep(_pause(waited=now - watch.begun.time, question=now - asked))
        asked = time.monotonic()
    return answer


def woken(wait: Callable[[float], bool], *, within: float) -> bool:
    """
    Wait for what others report, at most `within` seconds of a stopwatch. Return whether it has come.

    `wait` waits for it for so many seconds by the clock, and says the same.
    """
    watch = Stopwatch()
    while not wait(_LONGEST_STEP):
        if watch.seconds() > within:
            return False
    return True


def _pause(*, waited: float, question: float) -> float:
    patient = min(waited * _PAUSE_PER_SECOND, _PATIENT_STEP)
    return min(max(_STEP, patient, question * _PAUSE_PER_QUESTION), _LONGEST_STEP)


def _on_the_clock(took: float, within: float) -> str:
    """How much longer it was because the machine was busy, where that is worth a word."""
    return f" ({took:.0f} s by the clock, for the machine was busy)" if took > within * 1.5 + 1 else ""


def _stalled() -> float:
    """Nothing where the kernel does not count it."""
    with suppress(OSError):
        if found := _STALLED.search(_PRESSURE.read_text(encoding="ascii")):
            return int(found[1]) * _MICROSECONDS
    return 0.0
