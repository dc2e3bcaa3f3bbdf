"""
How many dial at a time.

Owns: whose turn it is, first come, first served. A thousand handshakes at once would all take as long as the last.
Commands that run already, and have lost their connection, go before those that have not begun; and only these wait
when the API server asks for a pause. No I/O; the clock is handed in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

# What two cores and an API server do side by side; more only wait for each other.
DIALS = 32

_Queue = OrderedDict[object, Callable[[], None]]


class Gate:
    """A few may be inside; the others wait."""

    __slots__ = ("_again", "_first", "_inside", "_is_letting_in", "_most", "_paused_until")

    def __init__(self, most: int = DIALS) -> None:
        self._most = most
        self._inside: set[object] = set()
        self._first: _Queue = OrderedDict()
        self._again: _Queue = OrderedDict()
        self._paused_until: float | None = None
        self._is_letting_in = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._first) + len(self._again)

    def waits(self, who: object) -> bool:
        """Whether it is not their turn yet."""
        return who in self._first or who in self._again

    @property
    def wake(self) -> float | None:
        """When a pause ends: call tick() then."""
        return self._paused_until

    def enter(self, who: object, begin: Callable[[], None], now: float, *, is_first: bool) -> None:
        """
        Begin at once, or when it is their turn. Who is inside begins at once.

        `is_first`: nothing of theirs runs yet. `begin` must not raise.
        """
        if who in self._inside:
            begin()
            return
        queue = self._first if is_first else self._again
        queue[who] = begin
        self._let_in(now)

    def leave(self, who: object, now: float) -> None:
        """They no longer need it, whether they are inside or wait; the next ones begin."""
        self._first.pop(who, None)
        self._again.pop(who, None)
        self._inside.discard(who)
        self._let_in(now)

    def pause(self, until: float) -> None:
        """No command begins for the first time until then."""
        self._paused_until = max(until, self._paused_until or until)

    def tick(self, now: float) -> None:
        """Time has passed."""
        self._let_in(now)

    def _let_in(self, now: float) -> None:
        # One that begins may leave at once. A thousand that do so one within the other would be too deep.
        if self._is_letting_in:
            return
        self._is_letting_in = True
        while len(self._inside) < self._most and (queue := self._queue(now)):
            who, begin = queue.popitem(last=False)
            self._inside.add(who)
            begin()
        self._is_letting_in = False

    def _queue(self, now: float) -> _Queue | None:
        """Of whom the next one is."""
        if self._paused_until is not None and now >= self._paused_until:
            self._paused_until = None
        if self._again:
            return self._again
        return self._first if self._paused_until is None else None
