"""
The signals that are meant for the command, as something to poll, and the end of the process that started us.

Owns: the process's handlers. A signal that was ignored when we were started stays ignored, as nohup wants it.
"""

from __future__ import annotations

import os
import select
import signal
import time

from mpirt.rsh.ports.loop import FOR_EVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.kubeapi.access.steps import Clock

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
# How long mpirun's daemons may take to notice its end and to clean up, before they get a HUP.
DAEMON_GRACE = 5.0


class Parent:
    """The process that started us; its end counts as one HUP after a grace."""

    __slots__ = ("_clock", "_getppid", "_grace", "_hup_at", "_pid")

    def __init__(
        self,
        grace: Callable[[], float],
        *,
        clock: Clock = time.monotonic,
        getppid: Callable[[], int] = os.getppid,
    ) -> None:
        """`grace` is asked when the process has ended: in how many seconds it is a HUP."""
        self._grace, self._clock, self._getppid = grace, clock, getppid
        self._pid = getppid()
        self._hup_at: float | None = None

    def timeout(self) -> float:
        """In how many seconds to call is_hup()."""
        if self._hup_at is not None:
            return max(0.0, self._hup_at - self._clock())
        return 0.0 if self._has_ended() else _LOOK_EVERY

    def is_hup(self) -> bool:
        """Whether it is time for the HUP, which comes once."""
        now = self._clock()
        if self._hup_at is None and self._has_ended():
            self._hup_at = now + self._grace()
        if self._hup_at is None or now < self._hup_at:
            return False
        self._hup_at = FOR_EVER
        return True

    def _has_ended(self) -> bool:
        return self._getppid() != self._pid


class Signals:
    """The signals that came. One object a process."""

    wants = select.POLLIN
    __slots__ = ("_came", "_parent", "_read", "_write")

    def __init__(self) -> None:
        self._parent: Parent | None = None
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
        return FOR_EVER if self._parent is None else self._parent.timeout()

    def follow(self, parent: Parent) -> None:
        """Take its end for a HUP."""
        self._parent = parent

    def take(self) -> list[tuple[str, int]]:
        """Names, without SIG, and numbers of the signals that have come since the last call."""
        try:  # noqa: SIM105  contextlib costs half a millisecond
            os.read(self._read, 1024)
        except BlockingIOError:
            pass
        if self._parent is not None and self._parent.is_hup():
            self._came.append(signal.SIGHUP)
        came, self._came = self._came, []
        return [(MEANT_FOR_THE_COMMAND[number], number) for number in came]

    def _take_note(self, number: int, _frame: object) -> None:
        self._came.append(number)
