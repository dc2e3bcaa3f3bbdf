"""
The signals that are meant for the command, as something to poll.

Owns: the process's handlers. A signal that was ignored when we were started stays ignored, as nohup wants it.
"""

from __future__ import annotations

import os
import select
import signal

from mpirt.rsh.ports.loop import FOR_EVER

MEANT_FOR_THE_COMMAND: dict[int, str] = {
    signal.SIGTERM: "TERM",
    signal.SIGINT: "INT",
    signal.SIGHUP: "HUP",
    signal.SIGQUIT: "QUIT",
    signal.SIGUSR1: "USR1",
    signal.SIGUSR2: "USR2",
}

# How often to see whether the process that started us is still there.
_LOOK_EVERY = 2.0


class Signals:
    """The signals that came. One object a process."""

    wants = select.POLLIN
    __slots__ = ("_came", "_parent", "_read", "_write")

    def __init__(self) -> None:
        self._parent = 0
        self._came: list[int] = []
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for number in MEANT_FOR_THE_COMMAND:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._take_note)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def fileno(self) -> int:
        """The descriptor that is readable when signals have come."""
        return self._read

    def timeout(self) -> float:
        """In how many seconds to take what has come, ready or not."""
        if self._parent == 0:
            return FOR_EVER
        return 0.0 if self._is_orphaned() else _LOOK_EVERY

    def follow_the_parent(self) -> None:
        """Take it for a HUP when the process that started us is gone."""
        self._parent = os.getppid()

    def take(self) -> list[tuple[str, int]]:
        """Names, without SIG, and numbers of the signals that have come since the last call."""
        try:  # noqa: SIM105  contextlib costs half a millisecond
            os.read(self._read, 1024)
        except BlockingIOError:
            pass
        if self._is_orphaned():
            self._parent = 0
            self._came.append(signal.SIGHUP)
        came, self._came = self._came, []
        return [(MEANT_FOR_THE_COMMAND[number], number) for number in came]

    def _is_orphaned(self) -> bool:
        return self._parent != 0 and os.getppid() != self._parent

    def _take_note(self, number: int, _frame: object) -> None:
        self._came.append(number)
