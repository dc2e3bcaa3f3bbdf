"""
How many dial at a time.

Owns: whose turn it is, first come, first served. A thousand handshakes at once would all take as long as the last.
No I/O, no clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

# What two cores and an API server do side by side; more only wait for each other.
DIALS = 32


class Gate:
    """A few may be inside; the others wait."""

    __slots__ = ("_inside", "_most", "_waiting")

    def __init__(self, most: int = DIALS) -> None:
        self._most = most
        self._inside: set[object] = set()
        self._waiting: OrderedDict[object, Callable[[], None]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def waits(self, who: object) -> bool:
        """Whether it is not their turn yet."""
        return who in self._waiting

    def enter(self, who: object, begin: Callable[[], None]) -> None:
        """Begin at once, or when it is their turn. Who is inside begins at once."""
        if who not in self._inside and len(self._inside) >= self._most:
            self._waiting[who] = begin
            return
        self._inside.add(who)
        begin()

    def leave(self, who: object) -> None:
        """They need it no more, whether they are inside or wait; the next ones begin."""
        self._waiting.pop(who, None)
        self._inside.discard(who)
        while self._waiting and len(self._inside) < self._most:
            following, begin = self._waiting.popitem(last=False)
            self._inside.add(following)
            begin()
