"""
Departed pods: pods that were deleted a moment ago.

Owns: how long they are remembered. A StatefulSet deletes a failed pod and creates another of the same name within
milliseconds: the next reconcile finds a healthy pod, and no cause of the trouble. No lock, no I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

from mpirt.controller.model.reading import Body
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
