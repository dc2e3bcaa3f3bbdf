"""
The work queue: which job is reconciled next.

Owns: the order. A key that is added many times is handed out once, and never to two workers at a time; a key that
fails is requeued with back-off; a key with a date is handed out then; a key that took long, without need, rests.
Groups of keys take turns, so that one with many keys delays the others by one key at a time. Clock and randomness
are passed in.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY = 0.25
LONGEST_DELAY = 15.0
# After this many turns in a row that changed something, the key is requeued with a delay. A plan that settles
# needs one or two; one that never does must not cause a storm of writes.
TURNS_AT_ONCE = 5
_SPREAD = 0.2
# While a job with thousands of workers starts, its pods change all the time, and each look at them takes long. If
# nothing is to be done, looks may take a tenth of a processor; what is to be done must not wait for long.
_REST = 9.0
LONGEST_REST = 1.0
# Small jobs never rest.
_SHORTEST_REST = 0.05
# Superseded dates stay in the heap until they are due; when there are more than about this many, it is rebuilt. So
# are dates before which keys don't come.
_STALE_DATES = 100


class _Ready(Generic[Key]):
    """The keys that are due, by group."""

    def __init__(self, group: Callable[[Key], Hashable]) -> None:
        self._group = group
        self._keys: OrderedDict[Hashable, OrderedDict[Key, None]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def add(self, key: Key) -> None:
        self._keys.setdefault(self._group(key), OrderedDict())[key] = None

    def pop(self) -> Key:
        """Return the first key of the first group, which becomes the last one."""
        group, keys = self._keys.popitem(last=False)
        key, _ = keys.popitem(last=False)
        if keys:
            self._keys[group] = keys
        return key


class Queue(Generic[Key]):
    """Not thread-safe: the daemon locks it. Times are seconds of a monotonic clock."""

    def __init__(self, chance: Callable[[], float], *, group: Callable[[Key], Hashable]) -> None:
        self._chance = chance
        self._ready = _Ready(group)
        self._due: dict[Key, float] = {}
        # A heap of dates; one that is no longer in _due is skipped.
        self._dates: list[tuple[float, int, Key]] = []
        self._count = 0
        self._taken: set[Key] = set()
        # Keys that were added while a worker had them.
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._turns: dict[Key, int] = {}
        self._not_before: dict[Key, float] = {}

    def add(self, key: Key) -> None:
        """Queue the key now, or once the worker that has it gives it back."""
        if key in self._taken:
            self._again.add(key)
        else:
            self._ready.add(key)

    def add_at(self, key: Key, date: float) -> None:
        """Queue the key at this date. Of several dates the earliest counts."""
        if date < self._due.get(key, float("inf")):
            self._due[key] = date
            self._count += 1
            heapq.heappush(self._dates, (date, self._count, key))
            if len(self._dates) > _STALE_DATES + 2 * len(self._due):
                self._dates = [(due, number, each) for number, (each, due) in enumerate(self._due.items())]
                heapq.heapify(self._dates)

    def take(self, now: float) -> Key | None:
        """Return the next key, which is the caller's until it is given back; None if none is due."""
        self._wake(now)
        while self._ready:
            key = self._ready.pop()
            if (date := self._not_before.get(key, now)) > now:
                self.add_at(key, date)
                continue
            # This turn sees whatever the date was set for, and sets a new one if it is still needed.
            self._due.pop(key, None)
            self._not_before.pop(key, None)
            self._taken.add(key)
            return key
        return None

    def done(self, key: Key, now: float = 0.0, *, took: float = 0.0) -> None:
        """
        Give back a key that needed no change. Resets its back-off.

        `took`: the processor time of that, in seconds. If it is long, take() does not return the key for a while.
        """
        self._failures.pop(key, None)
        self._turns.pop(key, None)
        if (rest := min(took * _REST, LONGEST_REST)) >= _SHORTEST_REST:
            self._not_before[key] = now + rest
            if len(self._not_before) > _STALE_DATES:
                self._not_before = {each: date for each, date in self._not_before.items() if date > now}
        self._release(key)

    def changed(self, key: Key, now: float) -> None:
        """Give back a key for which something was done, and requeue it; with a delay if that happens too often."""
        self._failures.pop(key, None)
        turns = self._turns[key] = self._turns.get(key, 0) + 1
        if turns < TURNS_AT_ONCE:
            self._again.add(key)
        else:
            self.add_at(key, now + self._delay(turns - TURNS_AT_ONCE))
        self._release(key)

    def more(self, key: Key) -> None:
        """Give back a key for which there is more to do, and requeue it behind the others."""
        self._failures.pop(key, None)
        self._again.add(key)
        self._release(key)

    def failed(self, key: Key, now: float, *, at_least: float = 0.0) -> float:
        """
        Give back a key that failed, and requeue it with back-off. Return the delay.

        `at_least`: seconds that the API server has asked to wait. Until then take() does not return the key, even
        if it is added.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self._delay(failures)
        if at_least > 0:
            # Jitter: keys with the same Retry-After must not all be retried at once.
            asked = at_least * (1 + _SPREAD * self._chance())
            self._not_before[key] = now + asked
            delay = max(delay, asked)
        self.add_at(key, now + delay)
        # Adding the key meanwhile must not bypass the delay.
        self._again.discard(key)
        self._release(key)
        return delay

    def next_date(self) -> float | None:
        """Return the earliest date; None if there is none."""
        self._forget_old_dates()
        return self._dates[0][0] if self._dates else None

    def depth(self) -> int:
        """Return how many keys are ready."""
        return len(self._ready)

    def dates(self) -> int:
        """Return how many dates are kept, including superseded ones."""
        return len(self._dates)

    def resting(self) -> int:
        """Return for how many keys a date is kept before which they don't come, including past ones."""
        return len(self._not_before)

    def _release(self, key: Key) -> None:
        self._taken.discard(key)
        if key in self._again:
            self._again.discard(key)
            self._ready.add(key)

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
