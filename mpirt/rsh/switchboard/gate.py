"""
How many dial at a time.

Owns: whose turn it is, first come, first served. A thousand handshakes at once would all take as long as the last.
Commands that run already, and have lost their connection, go before those that have not begun; and only these wait
when the API server asks for a pause. No I/O; the clock is handed in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from mpirt.rsh.watches.loop import FOR_EVER

# What two cores and an API server do side by side; more only wait for each other.
DIALS = 32

_Queue = OrderedDict[object, Callable[[], None]]


class Gate:
    """A few may be inside; the others wait."""

    __slots__ = ("_again", "_clock", "_first", "_inside", "_is_letting_in", "_most", "_paused_until")

    def __init__(self, clock: Callable[[], float], most: int = DIALS) -> None:
        self._clock, self._most = clock, most
        self._inside: set[object] = set()
        self._first: _Queue = OrderedDict()
        self._again: _Queue = OrderedDict()
        self._paused_until = 0.0
        self._is_letting_in = False

    def waits(self, who: object) -> bool:
        """Whether it is not their turn yet."""
        return who in self._first or who in self._again

    def timeout(self) -> float:
        """In how many seconds a pause ends: call let_in() then."""
        return max(0.0, self._paused_until - self._clock()) if self._paused_until else FOR_EVER

    def enter(self, who: object, begin: Callable[[], None], *, is_first: bool = False) -> None:
        """
        Begin at once, or when it is their turn. Who is inside begins at once.

        `is_first`: nothing of theirs runs yet. `begin` must not raise.
        """
        if who in self._inside:
            begin()
            return
        queue = self._first if is_first else self._again
        queue[who] = begin
        self.let_in()

    def leave(self, who: object) -> None:
        """They no longer need it, whether they are inside or wait; the next ones begin."""
        self._first.pop(who, None)
        self._again.pop(who, None)
        self._inside.discard(who)
        self.let_in()

    def pause(self, seconds: float) -> None:
        """No command begins for the first time for so long."""
        self._paused_until = max(self._clock() + seconds, self._paused_until)

    def let_in(self) -> None:
        """Have those begin whose turn it is."""
        if self._paused_until <= self._clock():
            self._paused_until = 0.0
        # One that begins may leave at once. A thousand that do so one within the other would be too deep.
        if self._is_letting_in:
            return
        self._is_letting_in = True
        while len(self._inside) < self._most and (queue := self._queue()):
            who, begin = queue.popitem(last=False)
            self._inside.add(who)
            begin()
        self._is_letting_in = False

    def _queue(self) -> _Queue:
        """Of whom the next one is."""
        return self._first if not (self._again or self._paused_until) else self._again
