"""
How often edits by others are undone, so that two controllers that disagree don't write as fast as events come.

Owns: the delay before a field is changed back once more: none at first, then 1 s, and twice as long each time, at
most 5 min. After 10 min without an edit of it the next one is a first one. The clock is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mpirt.controller.model.actions import Create, Patch
from mpirt.controller.model.spec import JobKey

_FIRST = timedelta(seconds=1)
_LONGEST = timedelta(minutes=5)
_QUIET = timedelta(minutes=10)

_Object = tuple[str, str]
"""Kind and name."""
_Fields = frozenset[str]
"""What an edit has changed, as paths in the object: who edits another field starts another dispute."""


@dataclass(frozen=True, slots=True)
class _Undone:
    """How often an edit of these fields was undone in a row, and when it was the last time."""

    times: int
    at: datetime


@dataclass(slots=True)
class _Written:
    """What was written last, and what was undone since."""

    digest: str
    undone: dict[_Fields, _Undone] = field(default_factory=dict)


class EditLimits:
    """
    By job, object and field. One thread at a time for each job.

    A patch undoes an edit if it asks for the same object as the last write did: the job has not changed since.
    """

    def __init__(self) -> None:
        self._by_job: dict[JobKey, dict[_Object, _Written]] = {}

    def times(self, key: JobKey, patch: Patch, now: datetime) -> int:
        """How many edits in a row will have been undone with this patch; 0 if it undoes none."""
        last = self._last(key, patch)
        if last is None:
            return 0
        before = last.undone.get(_fields(patch))
        return 1 if before is None or before.at + _QUIET <= now else before.times + 1

    def not_before(self, key: JobKey, patch: Patch, now: datetime) -> datetime | None:
        """When the patch may be sent; None if now."""
        last = self._last(key, patch)
        before = last.undone.get(_fields(patch)) if last is not None else None
        if before is None:
            return None
        # A number of times beyond any sense would overflow.
        due = before.at + min(_LONGEST, _FIRST * 2 ** min(before.times - 1, 30))
        return due if now < due else None

    def written(self, key: JobKey, action: Create | Patch, now: datetime) -> None:
        """It was done."""
        times = self.times(key, action, now) if isinstance(action, Patch) else 0
        if isinstance(action, Patch) and (last := self._last(key, action)) is not None:
            last.undone[_fields(action)] = _Undone(times, now)
        else:
            self._by_job.setdefault(key, {})[action.kind, action.name] = _Written(action.digest)

    def forget(self, key: JobKey) -> None:
        """The job is gone."""
        self._by_job.pop(key, None)

    def _last(self, key: JobKey, patch: Patch) -> _Written | None:
        found = self._by_job.get(key, {}).get((patch.kind, patch.name))
        return found if found is not None and found.digest == patch.digest else None


def _fields(patch: Patch) -> _Fields:
    return frozenset(str(operation["path"]) for operation in patch.operations)
