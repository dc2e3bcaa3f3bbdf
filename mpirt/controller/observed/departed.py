"""
Pods that were there a moment ago.

Owns: for how long they are remembered. A StatefulSet deletes a pod that has failed and makes another of its name
within milliseconds: whoever looks then finds a healthy pod, and no reason for the trouble. No lock, no I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import JobKey

# Until its end is told: two attempts to write, as far apart as they come. Later, a status of its own keeps it.
REMEMBERED = timedelta(seconds=30)


class Departed:
    """The last state of pods that are no more, in the order in which they went."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._gone: deque[tuple[JobKey, Body, datetime]] = deque()

    def add(self, key: JobKey, body: Body) -> None:
        """This pod of a job is gone now."""
        now = self._clock()
        self._forget_old(now)
        self._gone.append((key, body, now))

    def of(self, key: JobKey, now: datetime) -> list[tuple[Body, datetime]]:
        """A job's pods that went of late, and when."""
        self._forget_old(now)
        return [(body, at) for owner, body, at in self._gone if owner == key]

    def forget(self, key: JobKey) -> None:
        """The job is gone."""
        kept = [each for each in self._gone if each[0] != key]
        if len(kept) != len(self._gone):
            self._gone = deque(kept)

    def _forget_old(self, now: datetime) -> None:
        while self._gone and self._gone[0][2] + REMEMBERED <= now:
            self._gone.popleft()
