"""
Our own stdout and stderr, written without ever waiting, and the form of our own lines among a command's.

Where there is no descriptor of our own to write to (descriptors.py), and where a file's server may be away, a
thread writes and may wait (blocking.py).
"""

from __future__ import annotations

import os
import select
import stat

from mpirt import names
from mpirt.rsh.ports.loop import FOR_EVER
from mpirt.rsh.stdio.descriptors import opened_anew

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.rsh.stdio.blocking import Writer

# What is written at a time.
_LARGEST = 64 * 1024


class OutputPort:
    """One descriptor, with what waits to be written to it."""

    __slots__ = ("_aside", "_fd", "_is_unknown", "_own", "_taken", "_waiting", "broken_by", "in_line")

    def __init__(self, fd: int) -> None:
        self.broken_by: OSError | None = None
        """Why nothing can be written any more: mostly that nobody reads it. What comes then is dropped."""
        self.in_line = False
        """Whether what came last was not the end of a line."""
        anew = opened_anew(fd, os.O_WRONLY)
        self._fd = fd if anew is None else anew
        self._waiting = bytearray()
        self._taken = self._own = 0
        self._aside: Writer | None = None
        # Who mostly is never written to, as stderr, is not looked at either.
        self._is_unknown = anew is None

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._fd if self._aside is None else self._aside.fileno()

    @property
    def wants(self) -> int:
        """What to poll it for: nothing, while nothing waits to be written."""
        if not self._waiting:
            return 0
        return select.POLLOUT if self._aside is None else select.POLLIN

    @staticmethod
    def timeout() -> float:
        """In how many seconds it has to drain, ready or not."""
        return FOR_EVER

    @property
    def done(self) -> int:
        """How much of the command's output has been written, at least, or dropped for want of a reader."""
        return max(self._taken - self._own - len(self._waiting), 0)

    @property
    def waiting(self) -> int:
        """How many bytes were not written yet."""
        return len(self._waiting)

    def add(self, data: bytes) -> None:
        """Take bytes, and write what can be written now."""
        self._taken += len(data)
        if self.broken_by is None and data:
            self.in_line = not data.endswith(b"\n")
            self._waiting += data
            if self._is_unknown:
                self._aside, self._is_unknown = _aside(self._fd), False
            self.drain()

    def say(self, line: str) -> None:
        """Take a line of ours, which never stands in the middle of the command's."""
        said = b"\n" * self.in_line + own_line(line)
        self._own += len(said)
        self.add(said)

    def drain(self) -> None:
        """Write what can be written now."""
        while self._waiting:
            try:
                piece = self._waiting[:_LARGEST]
                written = os.write(self._fd, piece) if self._aside is None else self._aside.write(piece)
            except BlockingIOError:
                return
            except OSError as error:
                self.broken_by = error
                self._waiting.clear()
                return
            del self._waiting[:written]


def _aside(fd: int) -> Writer | None:
    """Who writes to a descriptor that may keep its writer waiting; None where none does."""
    # Nearly all are pipes, which are opened anew.
    from mpirt.rsh.stdio.blocking import Writer, is_far  # noqa: PLC0415

    return Writer(fd) if not stat.S_ISREG(os.fstat(fd).st_mode) or is_far(fd) else None


def own_line(text: str) -> bytes:
    """A line of ours for stderr: one line whatever was put into it."""
    return f"{names.RSH}: {' '.join(text.split())}\n".encode(errors="backslashreplace")
