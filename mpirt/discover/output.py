"""
What the user sees on stderr while it takes longer, and the end that a deadline forces.

Owns: our own lines; the progress, which is one line written over and over on a terminal and one plain line
elsewhere; and SIGALRM. Everything that waits has a deadline of its own; the alarm is for what can't have one, such
as a file that is a pipe, or a stderr that is never read. It rings twice: first with an error, so that what an
earlier answer said is not lost, then for good.
"""

from __future__ import annotations

import os
import select
import signal
from types import FrameType, TracebackType

from mpirt import names
from mpirt.errors import ExitCode, MpirtError
from mpirt.kubeapi.request.answers import TimedOut

_STDERR = 2
_NARROWEST = 40
# Of a terminal that does not say how wide it is.
_USUAL = 80
_CLEAR = "\r\x1b[K"
# What an error that knows its reason has, after the deadline, before the alarm rings.
_GRACE = 0.2
# What a busy machine may take to say what is known then, before it rings for good.
_TO_SAY_SO = 1.0


def say(line: str) -> None:
    """Write a line of our own at once."""
    _write(f"{names.DISCOVER}: {line}\n")


class Progress:
    """The state of the waiting."""

    __slots__ = ("_every", "_shown", "_width")

    def __init__(self, *, every: bool) -> None:
        """With `every`, one plain line for each cause."""
        self._every = every
        self._shown = False
        self._width = 0 if every else _terminal_width()

    def tell(self, line: str) -> None:
        """Why it takes longer."""
        if self._width:
            room = self._width - len(names.DISCOVER) - 3
            short = line if len(line) <= room else line[: room - 3] + "..."
            _write(f"{_CLEAR}{names.DISCOVER}: {short}")
        elif self._every or not self._shown:
            say(f"waiting: {line}")
        self._shown = True

    def clear(self) -> None:
        """Take the line away: it is over."""
        if self._width and self._shown:
            _write(_CLEAR)


def _terminal_width() -> int:
    """Columns of the terminal that stderr is; 0 where it is none."""
    try:
        return max(os.get_terminal_size(_STDERR).columns or _USUAL, _NARROWEST)
    except OSError:
        return 0


def _write(text: str) -> None:
    """Write at once. There may be no reader."""
    try:  # noqa: SIM105  contextlib costs half a millisecond
        os.write(_STDERR, text.encode("utf-8", "replace"))
    except OSError:
        pass


class Alarm:
    """Silent until it is set. An error that leaves its `with` block is only ended in time, not interrupted."""

    __slots__ = ("_code", "_late")

    def __init__(self) -> None:
        self._late = ""
        self._code = ExitCode.UNREACHABLE

    def set(self, seconds: float, *, spent: float = 0.0) -> None:
        """Ring when so many seconds have passed since the start of the program, `spent` seconds ago."""
        self._late = f"no answer within {seconds:g} s"
        signal.signal(signal.SIGALRM, self._interrupt)
        signal.setitimer(signal.ITIMER_REAL, max(0.0, seconds - spent) + _GRACE)

    def off(self) -> None:
        """Be silent from now on."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def __enter__(self) -> None:
        """Nothing rings yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """From now on the error may be reported."""
        if isinstance(error, MpirtError):
            self._code = error.code
        if self._late and error is not None:
            self._ring_for_good()

    def _ring_for_good(self) -> None:
        signal.signal(signal.SIGALRM, self._end)
        signal.setitimer(signal.ITIMER_REAL, _TO_SAY_SO)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._ring_for_good()
        raise TimedOut(self._late)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        # The process may hang in writing that very line.
        poll = select.poll()
        poll.register(_STDERR, select.POLLOUT)
        if poll.poll(0):
            say(self._late)
        os._exit(self._code)
