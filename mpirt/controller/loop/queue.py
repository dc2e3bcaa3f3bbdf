"""
Which job is looked at next.

Owns: the order: a key that is added many times is looked at once, no key by two workers at a time, one that fails
ever more seldom, one that has a date then. The clock is an argument, and so is chance.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY = 0.25
LONGEST_DELAY = 15.0
# Turns in a row that changed something and want another look at once. A plan that settles needs one or two; one
# that never does must not become a storm of writes.
TURNS_AT_ONCE = 5
_SPREAD = 0.2


class Queue(Generic[Key]):
    """Not for several threads at once: see waiting.py. Times are seconds of a clock that never goes back."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._ready: OrderedDict[Key, None] = OrderedDict()
        self._due: dict[Key, float] = {}
        # Dates as they come; one that is not in _due any more is skipped.
        self._dates: list[tuple[float, int, Key]] = []
        self._count = 0
        self._taken: set[Key] = set()
        # Were added while somebody had them.
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._turns: dict[Key, int] = {}

    def add(self, key: Key) -> None:
        """Look at it as soon as may be."""
        if key in self._taken:
            self._again.add(key)
        else:
            self._ready[key] = None

    def add_at(self, key: Key, date: float) -> None:
        """Look at it then, if not before. Of several dates the first counts."""
        if date < self._due.get(key, float("inf")):
            self._due[key] = date
            self._count += 1
            heapq.heappush(self._dates, (date, self._count, key))

    def take(self, now: float) -> Key | None:
        """The next key, which is the caller's until done(); None if there is none yet."""
        self._wake(now)
        if not self._ready:
            return None
        key, _ = self._ready.popitem(last=False)
        # Whoever looks now sees what the date was for, and sets another if it still matters.
        self._due.pop(key, None)
        self._taken.add(key)
        return key

    def done(self, key: Key) -> None:
        """It was looked at, and all is as it should be."""
        self._failures.pop(key, None)
        self._turns.pop(key, None)
        self._release(key)

    def changed(self, key: Key, now: float) -> None:
        """Something was done about it: look again, at once unless that happens too often."""
        self._failures.pop(key, None)
        turns = self._turns[key] = self._turns.get(key, 0) + 1
        if turns < TURNS_AT_ONCE:
            self._again.add(key)
        else:
            self.add_at(key, now + self._delay(turns - TURNS_AT_ONCE))
        self._release(key)

    def failed(self, key: Key, now: float) -> float:
        """It could not be done: look again after a while that grows. Returns the while."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self._delay(failures)
        self.add_at(key, now + delay)
        # What was added meanwhile must not go around the delay.
        self._again.discard(key)
        self._release(key)
        return delay

    def next_date(self) -> float | None:
        """When the first of the dates is due."""
        self._forget_old_dates()
        return self._dates[0][0] if self._dates else None

    def depth(self) -> int:
        """How many could be taken now."""
        return len(self._ready)

    def _release(self, key: Key) -> None:
        self._taken.discard(key)
        if key in self._again:
            self._again.discard(key)
            self._ready[key] = None

    def _wake(self, now: float) -> None:
        self._forget_old_dates()
        while self._dates and self._dates[0][0] <= now:
            key = heapq.heappop(self._dates)[2]
            del self._due[key]
            self.add(key)
            self._forget_old_dates()

    def _forget_old_dates(self) -> None:
        while self._dates and self._due.get(self._dates[0][2]) != self._dates[0][0]:
            heapq.heappop(self._dates)

    def _delay(self, times: int) -> float:
        delay: float = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(times, 32))
        return delay * (1 - _SPREAD + 2 * _SPREAD * self._chance())
