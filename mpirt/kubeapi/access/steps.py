"""
The one moment by which something must be done, however many steps it takes.

Owns: the arithmetic of what is left. The clock is handed in. Must not wait.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Clock = Callable[[], float]


class Deadline:
    """A moment on a clock, and how long the whole was meant to last (for messages)."""

    __slots__ = ("_at", "_clock", "seconds")

    def __init__(self, seconds: float, *, clock: Clock = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._at = clock() + seconds

    def left(self) -> float:
        """Seconds until the moment; 0.0 once it has passed, never less."""
        return max(0.0, self._at - self._clock())

    def passed(self) -> bool:
        """Whether there is no time left."""
        return self._clock() >= self._at

    def __str__(self) -> str:
        return f"{round(self.seconds, 1):g} s"

    def within(self, seconds: float) -> Deadline:
        """A deadline for one step: so many seconds from now, but never later than this one."""
        return Deadline(min(seconds, self.left()), clock=self._clock)
