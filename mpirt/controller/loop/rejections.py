"""
What the API server has rejected, so that the same request is not repeated at once.

Owns: the back-off after a rejection: 30 s, doubled with each repetition, up to ten minutes. An admission rule or a
quota may change without a notification. If the server fails for a while, for example because a webhook is down,
that counts as a rejection, too, so that the job reports it. The clock is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from mpirt.controller.model.actions import Rejection, earliest
from mpirt.controller.model.spec import JobKey

_FIRST = timedelta(seconds=30)
_LONGEST = timedelta(minutes=10)
# Longer than etcd needs to find another leader.
_FAILING_FOR = timedelta(seconds=20)

_Question = tuple[str, str]
"""Kind and digest of what is asked for."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    rejection: Rejection
    until: datetime
    believed: timedelta


class Rejections:
    """By job; each is of one object that was asked for, or of one change. One thread at a time for each job."""

    def __init__(self) -> None:
        self._by_job: dict[JobKey, dict[_Question, _Remembered]] = {}
        self._failing: dict[JobKey, dict[_Question, datetime]] = {}

    def remember(self, key: JobKey, rejection: Rejection, now: datetime) -> bool:
        """The no that was just said. Whether it is news: it wasn't believed before."""
        known = self._by_job.setdefault(key, {})
        question = (rejection.kind, rejection.digest)
        self._failing.get(key, {}).pop(question, None)
        before = known.get(question)
        believed = _FIRST if before is None else min(_LONGEST, before.believed * 2)
        known[question] = _Remembered(rejection, now + believed, believed)
        return before is None or before.until <= now

    def failed(self, key: JobKey, rejection: Rejection, now: datetime) -> bool:
        """The server's failure, which is a no if it goes on failing. Whether it is one now, and is news."""
        question = (rejection.kind, rejection.digest)
        since = self._failing.setdefault(key, {}).setdefault(question, now)
        if now - since < _FAILING_FOR:
            return False
        known = self._by_job.setdefault(key, {})
        before = known.get(question)
        known[question] = _Remembered(rejection, now + _FIRST, _FIRST)
        return before is None or before.until <= now

    def of(self, key: JobKey, now: datetime) -> tuple[Rejection, ...]:
        """Those that are believed now."""
        return tuple(each.rejection for each in self._by_job.get(key, {}).values() if now < each.until)

    def next(self, key: JobKey, now: datetime) -> datetime | None:
        """When the next of them is to be asked again."""
        return earliest(*(each.until for each in self._by_job.get(key, {}).values() if now < each.until))

    def accepted(self, key: JobKey, kind: str, digest: str) -> None:
        """It was said yes to; the next no is a first one."""
        for known in (self._by_job, self._failing):
            known.get(key, {}).pop((kind, digest), None)

    def forget(self, key: JobKey) -> None:
        """The job is gone."""
        for known in (self._by_job, self._failing):
            known.pop(key, None)
