"""
Pods and launcher Jobs that were deleted.

Owns: how long a departed pod is remembered, and how a launcher Job was when its deletion was requested. No lock,
no I/O.

A StatefulSet deletes a failed pod and creates another of the same name within milliseconds: the next reconcile
finds a healthy pod, and no cause of the trouble. What ends during a deletion may have been ended by it: a launcher
may answer the signal with code 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

from mpirt.controller.model.reading import Body, rows, table, text, uid_of
from mpirt.controller.model.spec import JobKey

# Long enough for two attempts to write its end into the job's status, up to 15 s apart. Then the status keeps it.
REMEMBERED = timedelta(seconds=30)


class Departed:
    """The last state of departed pods, in the order in which they went."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._gone: deque[tuple[JobKey, Body, datetime]] = deque()

    def add(self, key: JobKey, body: Body) -> None:
        """Remember a job's pod that is gone now."""
        now = self._clock()
        self._forget_old(now)
        self._gone.append((key, body, now))

    def of(self, key: JobKey, now: datetime) -> list[tuple[Body, datetime]]:
        """Return a job's departed pods, each with the time at which it was gone."""
        self._forget_old(now)
        return [(body, at) for owner, body, at in self._gone if owner == key]

    def forget(self, key: JobKey) -> None:
        """Forget the pods of a job that is gone."""
        kept = [each for each in self._gone if each[0] != key]
        if len(kept) != len(self._gone):
            self._gone = deque(kept)

    def _forget_old(self, now: datetime) -> None:
        while self._gone and self._gone[0][2] + REMEMBERED <= now:
            self._gone.popleft()


def end_of(job: Body) -> Body | None:
    """Return the condition by which a batch/v1 Job has ended; None if it has not."""
    ends = [row for row in rows(table(job, "status"), "conditions") if text(row, "status") == "True"]
    return next((row for row in ends if text(row, "type") in ("Complete", "Failed")), None)


class GoneJobs:
    """The last launcher Job of each job that has none, or one that is being deleted."""

    def __init__(self) -> None:
        self._gone: dict[JobKey, Body] = {}

    def of(self, key: JobKey) -> list[Body]:
        """Return the Job, if it is known to be deleted: empty if it is unknown how it was before."""
        return [self._gone[key]] if key in self._gone else []

    def put(self, key: JobKey, before: Body | None, now: Body) -> None:
        """A Job was created or changed; `before`: as it was known, if it was."""
        if not _is_deleted(now):
            self._gone.pop(key, None)
        elif before is None or uid_of(before) != uid_of(now):
            self._gone[key] = {} if end_of(now) else now
        elif not _is_deleted(before):
            self._gone[key] = before

    def removed(self, key: JobKey, before: Body, last: Body) -> None:
        """A Job is gone; `before`: as it was known, `last`: as the API server had it in the end."""
        if not _is_deleted(before):
            self._gone[key] = before if _is_deleted(last) else last

    def miss(self, key: JobKey) -> None:
        """There is no Job, and no watch has reported its deletion."""
        self._gone.setdefault(key, {})

    def forget(self, key: JobKey) -> None:
        """Forget the launcher Job of a job that is gone."""
        self._gone.pop(key, None)


def _is_deleted(body: Body) -> bool:
    return "deletionTimestamp" in table(body, "metadata")
