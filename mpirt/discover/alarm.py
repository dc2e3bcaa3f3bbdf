"""
The alarm behind the deadline: an end, whatever holds us.

Owns: SIGALRM. Everything that waits has a deadline of its own; this is for what can't have one, as a file that is
a pipe, or a stderr that nobody reads. It rings twice: first with an error, so that what an earlier answer told is
not lost, then for good.
"""

from __future__ import annotations

import os
import select
import signal

from mpirt.discover.progress import say
from mpirt.errors import ExitCode, MpirtError
from mpirt.kubeapi.request.answers import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

# What an error that knows its reason has, after the deadline, before the alarm rings.
_GRACE = 0.2
# What a busy machine may take to say what is known then, before it rings for good.
_TO_SAY_SO = 1.0
_STDERR = 2


class Alarm:
    """Silent until it is set. An error that leaves its `with` block is interrupted no more, only ended in time."""

    __slots__ = ("_code", "_late")

    def __init__(self) -> None:
        self._late = ""
        self._code = ExitCode.UNREACHABLE

    def set(self, seconds: float) -> None:
        """Ring when so many seconds have passed."""
        self._late = f"no answer within {seconds:g} s"
        signal.signal(signal.SIGALRM, self._interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)

    def off(self) -> None:
        """Be silent from now on."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def __enter__(self) -> None:
        """Nothing rings yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The error may be told now."""
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
        # It may be that very line that nobody takes.
        poll = select.poll()
        poll.register(_STDERR, select.POLLOUT)
        if poll.poll(0):
            say(self._late)
        os._exit(self._code)
