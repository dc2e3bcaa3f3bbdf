"""
What people see while it takes longer, on stderr.

Owns: one line that is written over and over where somebody looks at a terminal, one plain line where nobody does.
"""

from __future__ import annotations

import os

from mpirt import names

_STDERR = 2
_NARROWEST = 40
# Of a terminal that does not say how wide it is.
_USUAL = 80
_CLEAR = "\r\x1b[K"


def say(line: str) -> None:
    """Write a line of our own at once; nobody may be there to read it."""
    try:  # noqa: SIM105  contextlib costs half a millisecond
        os.write(_STDERR, f"{names.DISCOVER}: {line}\n".encode("utf-8", "replace"))
    except OSError:
        pass


class Progress:
    """The state of the waiting."""

    __slots__ = ("_every", "_shown", "_width")

    def __init__(self, *, every: bool) -> None:
        """With `every`, one plain line for each thing that there is to tell."""
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
    try:  # noqa: SIM105  contextlib costs half a millisecond
        os.write(_STDERR, text.encode("utf-8", "replace"))
    except OSError:
        pass
