"""
Our own stdin, stdout and stderr, opened anew where they are shared.

Owns: how to read and write them without ever waiting. They belong to others too (mpirun's output is ours), so
they can't be made non-blocking; but a pipe or a terminal can be opened a second time through /proc, and that one
is ours alone. Where it can't, a thread writes (blocking.py), and poll has to say when there is something to read.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.rsh.stdio.blocking import Reader

_SELF = "/proc/self/fd/"


def opened_anew(fd: int, flags: int) -> int | None:
    """The same pipe or terminal, as a non-blocking descriptor of our own; None where it can't be had."""
    kind = os.fstat(fd).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)):
        return None
    try:
        return os.open(f"{_SELF}{fd}", flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None


class Stdin:
    """Where stdin is read from."""

    __slots__ = ("_aside", "_fd", "_is_terminal")

    def __init__(self, fd: int) -> None:
        self._is_terminal = os.isatty(fd)
        anew = opened_anew(fd, os.O_RDONLY)
        self._fd = fd if anew is None else anew
        self._aside = _aside(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None

    def fileno(self) -> int:
        """The descriptor to poll; -1 while it must be left alone, as a terminal in the background."""
        if self._is_terminal and not self._is_in_the_foreground():
            return -1
        return self._aside.fileno() if self._aside is not None and self._aside.is_busy else self._fd

    def read(self, size: int) -> bytes | None:
        """What is there, none at the end; None where nothing is there yet, or any more. Raises OSError."""
        try:
            return os.read(self._fd, size) if self._aside is None else self._aside.read(size)
        except BlockingIOError:
            return None

    def _is_in_the_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            # It is not the terminal of our session: nobody would stop us.
            return True


def _aside(fd: int) -> Reader | None:
    """Who reads a file whose server may be away; None where it is here."""
    # Launchers give pipes, or nothing.
    from mpirt.rsh.stdio.blocking import Reader, is_far  # noqa: PLC0415

    return Reader(fd) if is_far(fd) else None
