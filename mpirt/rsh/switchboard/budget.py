"""
How much output may wait in the switchboard for slow readers, all commands together.

Owns: who is not to be read any more. A keeper sends 2 MiB of each stream ahead of a reader that stands still,
which is nothing for one command and gigabytes for a thousand. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable

LIMIT = 64 * 1024 * 1024
# What each may have in any case, so that a few that are stuck take nothing from the others.
SHARE = 256 * 1024


class Budget:
    """What waits, by command."""

    __slots__ = ("_held", "_limit", "_share", "_stopped", "_total")

    def __init__(self, limit: int = LIMIT, share: int = SHARE) -> None:
        self._limit, self._share = limit, share
        self._held: dict[object, int] = {}
        self._total = 0
        self._stopped: dict[object, Callable[[], None]] = {}

    @property
    def total(self) -> int:
        """How many bytes wait."""
        return self._total

    def holds(self, who: object, count: int) -> None:
        """So many bytes of theirs wait now. Those that may be read again are told."""
        before = self._held.pop(who, 0)
        if count:
            self._held[who] = count
        self._total += count - before
        if count < before:
            # While there is no room for all, only their own share may have become free.
            self._resume(tuple(self._stopped) if self._total <= self._limit - self._share else (who,))

    def may_be_read(self, who: object, again: Callable[[], None]) -> bool:
        """Whether more of theirs may be read. If not, `again` is called when that may have changed."""
        if self._has_room(who):
            self._stopped.pop(who, None)
            return True
        self._stopped[who] = again
        return False

    def forget(self, who: object) -> None:
        """They have ended."""
        self._stopped.pop(who, None)
        self.holds(who, 0)

    def _has_room(self, who: object) -> bool:
        # One that is stopped waits for more room than a byte: else all of them would take turns at the limit.
        limit = self._limit - self._share if who in self._stopped else self._limit
        return self._total <= limit or self._held.get(who, 0) < self._share

    def _resume(self, candidates: tuple[object, ...]) -> None:
        for who in candidates:
            # What one of them does then may stop the next one.
            if who in self._stopped and self._has_room(who):
                self._stopped.pop(who)()
