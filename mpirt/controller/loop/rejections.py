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
# Longer than etcd needs to elect another leader.
_FAILING_FOR = timedelta(seconds=20)

_Question = tuple[str, str]
"""Kind and digest of the object or patch that was requested."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    rejection: Rejection
    until: datetime
    believed: timedelta


class Rejections:
    """By job, the rejections of single objects or patches. Not for several threads at once on the same job."""

    def __init__(self) -> None:
        self._by_job: dict[JobKey, dict[_Question, _Remembered]] = {}
        self._failing: dict[JobKey, dict[_Question, datetime]] = {}

    def remember(self, key: JobKey, rejection: Rejection, now: datetime) -> bool:
        """Remember a rejection. Return whether it is new: none of the same request was still in force."""
        known = self._by_job.setdefault(key, {})
        question = (rejection.kind, rejection.digest)
        self._failing.get(key, {}).pop(question, None)
        before = known.get(question)
        believed = _FIRST if before is None else min(_LONGEST, before.believed * 2)
        known[question] = _Remembered(rejection, now + believed, believed)
        return before is None or before.until <= now

    def failed(self, key: JobKey, rejection: Rejection, now: datetime) -> bool:
        """
        Note a failure of the server; once it has lasted for a while, it counts as a rejection.

        Return whether it does now, and none of the same request was still in force.
        """
        question = (rejection.kind, rejection.digest)
        since = self._failing.setdefault(key, {}).setdefault(question, now)
        if now - since < _FAILING_FOR:
            return False
        known = self._by_job.setdefault(key, {})
        before = known.get(question)
        known[question] = _Remembered(rejection, now + _FIRST, _FIRST)
        return before is None or before.until <= now

    def of(self, key: JobKey, now: datetime) -> tuple[Rejection, ...]:
        """Return the rejections in force: their requests are not repeated yet."""
        return tuple(each.rejection for each in self._by_job.get(key, {}).values() if now < each.until)

    def next(self, key: JobKey, now: datetime) -> datetime | None:
        """Return when the first of them ends and its request may be repeated; None if there is none."""
        return earliest(*(each.until for each in self._by_job.get(key, {}).values() if now < each.until))

    def accepted(self, key: JobKey, kind: str, digest: str) -> None:
        """Forget the rejections of a request that was accepted: the next one starts with the shortest back-off."""
        for known in (self._by_job, self._failing):
            known.get(key, {}).pop((kind, digest), None)

    def forget(self, key: JobKey) -> None:
        """Drop the rejections of a job that is gone."""
        for known in (self._by_job, self._failing):
            known.pop(key, None)
