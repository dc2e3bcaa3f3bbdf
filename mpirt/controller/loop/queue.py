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
# Dates that no longer count are kept until they come up, but not without end.
_STALE_DATES = 100


class Queue(Generic[Key]):
    """Not for several threads at once: see work_queue.py. Times are seconds of a clock that never goes back."""

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
        self._not_before: dict[Key, float] = {}

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
            if len(self._dates) > _STALE_DATES + 2 * len(self._due):
                self._dates = [(due, number, each) for number, (each, due) in enumerate(self._due.items())]
                heapq.heapify(self._dates)

    def take(self, now: float) -> Key | None:
        """The next key, which is the caller's until done(); None if there is none yet."""
        self._wake(now)
        while self._ready:
            key, _ = self._ready.popitem(last=False)
            if (date := self._not_before.get(key, now)) > now:
                self.add_at(key, date)
                continue
            # Whoever looks now sees what the date was for, and sets another if it still matters.
            self._due.pop(key, None)
            self._not_before.pop(key, None)
            self._taken.add(key)
            return key
        return None

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

    def failed(self, key: Key, now: float, *, at_least: float = 0.0) -> float:
        """
        It could not be done: look again after a while that grows. Returns the while.

        `at_least`: seconds that the API server has asked for. Until then nothing makes it come.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self._delay(failures)
        if at_least > 0:
            # All that were sent away together must not come back together.
            asked = at_least * (1 + _SPREAD * self._chance())
            self._not_before[key] = now + asked
            delay = max(delay, asked)
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

    def dates(self) -> int:
        """How many dates are kept, those included that no longer count."""
        return len(self._dates)

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
