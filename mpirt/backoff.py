"""
How long to wait from one attempt to the next.

Owns: the one back-off of all programs. Pure: it neither waits nor reads a clock, and chance is handed in.
"""

from __future__ import annotations

from collections.abc import Callable

# 2**62 exceeds every longest delay, and a float holds the product.
_MOST_DOUBLINGS = 62


def no_jitter() -> float:
    """Leave nothing to chance: each delay is as long as it may be."""
    return 1.0


def delay(failures: int, first: float, longest: float) -> float:
    """Return how many seconds to wait, where `failures` came before the last one."""
    return min(longest, first * 2.0 ** min(failures, _MOST_DOUBLINGS))


class Backoff:
    """
    Delays that double from `first` up to `longest` seconds.

    `jitter` returns a number from 0 to 1, which decides on half of each delay: clients that fail together
    come back one by one.
    """

    __slots__ = ("_failures", "_first", "_jitter", "_longest")

    def __init__(self, first: float, longest: float, jitter: Callable[[], float] = no_jitter) -> None:
        self._first, self._longest, self._jitter = first, longest, jitter
        self._failures = 0

    def next(self, asked: float | None = None, *, most: float = float("inf")) -> float:
        """
        Return how many seconds to wait after another failure.

        `asked`: a server's Retry-After, which is honoured up to `most` seconds. Half of our own delay is added, so
        that clients that were asked the same don't return in the same moment.
        """
        own = delay(self._failures, self._first, self._longest)
        own *= 0.5 + self._jitter() / 2
        self._failures += 1
        return own if asked is None else max(own, min(asked, most)) + own / 2

    def reset(self) -> None:
        """Begin anew: the attempt has succeeded."""
        self._failures = 0
