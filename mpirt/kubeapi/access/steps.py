"""
What takes time, in steps that never wait.

Owns: the deadline of a whole operation, what a step waits for, and the two ways to run steps: run() waits, a
Pending is for a poll loop. Must not know: connections.

Steps are generators. Each yields the Wait for its next step. A step that is run too early finds nothing ready and
yields again. Closing the generator closes the connection that it uses.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Generator
from typing import Generic, TypeAlias, TypeVar

from mpirt.values import Value

_T = TypeVar("_T")
Clock: TypeAlias = Callable[[], float]
Steps: TypeAlias = "Generator[Wait, None, _T]"


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


class Wait(Value):
    """What to poll before the next step."""

    fileno: int
    """The descriptor; -1 where there is none and only time must pass."""
    wants: int
    deadline: Deadline
    """When to go on without it."""


class Pending(Generic[_T]):
    """
    Steps in a poll loop.

    The owner polls as waits() says, and then calls advance(). The descriptor may change with each step.
    """

    __slots__ = ("_steps", "_wait", "result")

    def __init__(self, steps: Steps[_T]) -> None:
        self.result: _T | None = None
        """What the steps have returned, at their end."""
        self._steps = steps
        self._wait = _now()

    def waits(self) -> tuple[int, int, float]:
        """What to poll, -1 for nothing; for what; and in how many seconds to call advance(), ready or not."""
        wait = self._wait
        return wait.fileno, wait.wants, wait.deadline.left()

    def advance(self) -> bool:
        """Go as far as it goes without waiting. True at the end. Raises whatever goes wrong."""
        try:
            self._wait = next(self._steps)
        except BaseException as error:
            self._wait = _now()
            if isinstance(error, StopIteration):
                self.result = error.value
                return True
            raise
        return False

    def close(self) -> None:
        """Stop; connections that are in use are closed."""
        self._wait = _now()
        self._steps.close()


def _now() -> Wait:
    return Wait(-1, 0, Deadline(0.0))


def run(steps: Steps[_T]) -> _T:
    """See the steps through, waiting for each."""
    try:
        while True:
            wait = next(steps)
            poll = select.poll()
            if wait.fileno >= 0:
                poll.register(wait.fileno, wait.wants)
            # A millisecond more rather than less: poll cuts fractions off, and would spin through the last one.
            poll.poll(int(wait.deadline.left() * 1000) + 1)
    except StopIteration as end:
        result: _T = end.value
        return result
    finally:
        steps.close()
