"""
What the API server has said no to, so that it isn't asked the same at once.

Owns: how long a no is believed: 30 s, and twice as long each time it is said again, up to ten minutes. An
admission rule or a quota may change, and nobody tells. The clock is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from mpirt.controller.actions import Refusal, earliest
from mpirt.controller.spec import JobKey

_FIRST = timedelta(seconds=30)
_LONGEST = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class _Remembered:
    refusal: Refusal
    until: datetime
    believed: timedelta


class Refusals:
    """By job; each is of one object that was asked for, or of one change. One thread at a time for each job."""

    def __init__(self) -> None:
        self._by_job: dict[JobKey, dict[tuple[str, str], _Remembered]] = {}

    def remember(self, key: JobKey, refusal: Refusal, now: datetime) -> None:
        """The no that was just said."""
        known = self._by_job.setdefault(key, {})
        question = (refusal.kind, refusal.digest)
        before = known.get(question)
        believed = _FIRST if before is None else min(_LONGEST, before.believed * 2)
        known[question] = _Remembered(refusal, now + believed, believed)

    def of(self, key: JobKey, now: datetime) -> tuple[Refusal, ...]:
        """Those that are believed now."""
        return tuple(each.refusal for each in self._by_job.get(key, {}).values() if now < each.until)

    def next(self, key: JobKey, now: datetime) -> datetime | None:
        """When the next of them is to be asked again."""
        return earliest(*(each.until for each in self._by_job.get(key, {}).values() if now < each.until))

    def accepted(self, key: JobKey, kind: str, digest: str) -> None:
        """It was said yes to; the next no is a first one."""
        self._by_job.get(key, {}).pop((kind, digest), None)

    def forget(self, key: JobKey) -> None:
        """The job is gone."""
        self._by_job.pop(key, None)
