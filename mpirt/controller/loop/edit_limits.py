"""
Limits how often an object is patched, so that nothing is written at event speed.

Owns: the delay before an edit by others is undone again: none at first, then 1 s, doubled each time, at most
5 min. After 10 min without an edit of the field, the count starts anew. And the pause between two patches of an
object that follows the job's pods, of which thousands may come one by one. The clock is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create, Patch
from mpirt.controller.model.spec import JobKey

_FIRST = timedelta(seconds=1)
_LONGEST = timedelta(minutes=5)
_QUIET = timedelta(minutes=10)

# The Role names the workers that there are.
_PAUSES = {kinds.ROLE: timedelta(seconds=1)}

_Object = tuple[str, str]
"""Kind and name."""
_Fields = frozenset[str]
"""The paths in the object that a patch changes. Edits of other fields are counted separately."""


@dataclass(frozen=True, slots=True)
class _Undone:
    """How often edits of these fields were undone in a row, and when the last one was."""

    times: int
    at: datetime


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
            # The exponent is capped because timedelta overflows.
            due = max(due, before.at + min(_LONGEST, _FIRST * 2 ** min(before.times - 1, 30)))
        return due if now < due else None

    def written(self, key: JobKey, action: Create | Patch, now: datetime) -> None:
        """Record that the action was carried out."""
        times = self.times(key, action, now) if isinstance(action, Patch) else 0
        if isinstance(action, Patch) and (last := self._last(key, action)) is not None:
            last.undone[_fields(action)] = _Undone(times, now)
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
