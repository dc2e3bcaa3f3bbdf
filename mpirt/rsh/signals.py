"""
The signals that are meant for the command, as something to poll.

Owns: the process's handlers. A signal that was ignored when we were started stays ignored, as nohup wants it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # The core of it. The module itself makes enumerations of all signals there are, for 0.1 MB and a millisecond.
    import _signal as signal

_MEANT_FOR_IT: dict[int, str] = {
    signal.SIGTERM: "TERM",
    signal.SIGINT: "INT",
    signal.SIGHUP: "HUP",
    signal.SIGQUIT: "QUIT",
    signal.SIGUSR1: "USR1",
    signal.SIGUSR2: "USR2",
}


class Signals:
    """The signals that came. One object a process."""

    __slots__ = ("_came", "_read", "_write")

    def __init__(self) -> None:
        self._came: list[int] = []
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for number in _MEANT_FOR_IT:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._take_note)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def fileno(self) -> int:
        """The descriptor that is readable when signals have come."""
        return self._read

    def take(self) -> list[tuple[str, int]]:
        """Names, without SIG, and numbers of the signals that have come since the last call."""
        try:  # noqa: SIM105  contextlib costs half a millisecond
            os.read(self._read, 1024)
        except BlockingIOError:
            pass
        came, self._came = self._came, []
        return [(_MEANT_FOR_IT[number], number) for number in came]

    def _take_note(self, number: int, _frame: object) -> None:
        self._came.append(number)
