"""
Back-offs of single requests: after a rejection, and before an edit is undone again.

Owns: the delays, which double, each up to a limit. An admission rule or a quota may change without a notification;
if the server fails for a while, for example because a webhook is down, that counts as a rejection, too, so that
the job reports it. An object is patched at most so often that nothing is written at event speed. The clock is an
argument.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mpirt.backoff import Backoff
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create, Patch, Rejection, earliest
from mpirt.controller.model.spec import JobKey

_FIRST_REJECTION, _LONGEST_REJECTION = 30.0, 600.0
# Longer than etcd needs to elect another leader.
_FAILING_FOR = timedelta(seconds=20)

_Question = tuple[str, str]
"""Kind and digest of the object or patch that was requested."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    rejection: Rejection
    until: datetime
    backoff: Backoff


class Rejections:
    """By job, the rejections of single objects or patches. Not for several threads at once on the same job."""

    def __init__(self) -> None:
        self._by_job: dict[JobKey, dict[_Question, _Remembered]] = {}
        self._failing: dict[JobKey, dict[_Question, datetime]] = {}

    def remember(self, key: JobKey, rejection: Rejection, now: datetime) -> bool:
        """Remember a rejection. Return whether it is new: no earlier one of the request was in force."""
        question = (rejection.kind, rejection.digest)
        self._failing.get(key, {}).pop(question, None)
        before = self._by_job.get(key, {}).get(question)
        backoff = Backoff(_FIRST_REJECTION, _LONGEST_REJECTION) if before is None else before.backoff
        return self._keep(key, rejection, now, backoff)

    def failed(self, key: JobKey, rejection: Rejection, now: datetime) -> bool:
        """
        Note a failure of the server; once it has lasted for a while, it counts as a rejection.

        Return whether it does now, and no earlier one of the request was in force.
        """
        question = (rejection.kind, rejection.digest)
        since = self._failing.setdefault(key, {}).setdefault(question, now)
        if now - since < _FAILING_FOR:
            return False
        return self._keep(key, rejection, now, Backoff(_FIRST_REJECTION, _LONGEST_REJECTION))

    def _keep(self, key: JobKey, rejection: Rejection, now: datetime, backoff: Backoff) -> bool:
        known, question = self._by_job.setdefault(key, {}), (rejection.kind, rejection.digest)
        before = known.get(question)
        known[question] = _Remembered(rejection, now + timedelta(seconds=backoff.next()), backoff)
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


# No delay at first.
_FIRST_EDIT, _LONGEST_EDIT = 1.0, 300.0
# After so long without an edit of the field, the count starts anew.
_QUIET = timedelta(minutes=10)

# The Role names the workers that there are, of which thousands may come one by one.
_PAUSES = {kinds.ROLE: timedelta(seconds=1)}

_Object = tuple[str, str]
"""Kind and name."""
_Fields = frozenset[str]
"""The paths in the object that a patch changes. Edits of other fields are counted separately."""


@dataclass(frozen=True, slots=True)
class _Undone:
    """How often edits of these fields were undone in a row, when the last one was, and until when none is."""

    times: int
    at: datetime
    until: datetime
    backoff: Backoff


@dataclass(slots=True)
class _Written:
    """The digest of the last write of an object, when it was, and the edits undone since."""

    digest: str
    at: datetime
    undone: dict[_Fields, _Undone] = field(default_factory=dict)


class EditLimits:
    """
    The edits undone so far, by job, object and field. Not for several threads at once on the same job.

    A patch undoes an edit if its digest is that of the last write: the job has not changed since.
    """

    def __init__(self) -> None:
        self._by_job: dict[JobKey, dict[_Object, _Written]] = {}

    def times(self, key: JobKey, patch: Patch, now: datetime) -> int:
        """Return how many edits in a row are undone, including by this patch; 0 if it undoes none."""
        last = self._last(key, patch)
        if last is None:
            return 0
        before = last.undone.get(_fields(patch))
        return 1 if before is None or before.at + _QUIET <= now else before.times + 1

    def not_before(self, key: JobKey, patch: Patch, now: datetime) -> datetime | None:
        """Return when the patch may be sent; None if it may be sent now."""
        known, last = self._by_job.get(key, {}).get((patch.kind, patch.name)), self._last(key, patch)
        due = now if known is None else known.at + _PAUSES.get(patch.kind, timedelta())
        before = last.undone.get(_fields(patch)) if last is not None else None
        if before is not None:
            due = max(due, before.until)
        return due if now < due else None

    def written(self, key: JobKey, action: Create | Patch, now: datetime) -> None:
        """Record that the action was carried out."""
        times = self.times(key, action, now) if isinstance(action, Patch) else 0
        if isinstance(action, Patch) and (last := self._last(key, action)) is not None:
            before = last.undone.get(_fields(action))
            backoff = Backoff(_FIRST_EDIT, _LONGEST_EDIT) if before is None or times == 1 else before.backoff
            until = now + timedelta(seconds=backoff.next())
            last.undone[_fields(action)] = _Undone(times, now, until, backoff)
            last.at = now
        else:
            self._by_job.setdefault(key, {})[action.kind, action.name] = _Written(action.digest, now)

    def forget(self, key: JobKey) -> None:
        """Drop the records of a job that is gone."""
        self._by_job.pop(key, None)

    def _last(self, key: JobKey, patch: Patch) -> _Written | None:
        found = self._by_job.get(key, {}).get((patch.kind, patch.name))
        return found if found is not None and found.digest == patch.digest else None


def _fields(patch: Patch) -> _Fields:
    return frozenset(str(operation["path"]) for operation in patch.operations)
