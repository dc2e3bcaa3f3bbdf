"""
Commands as a table that fits a terminal.

Owns: the columns, how numbers are written for people, and what is cut. No I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from mpirt.cli.ps.boards import Board, Row

COLUMNS = ("POD", "NODE", "STATE", "AGE", "CPU", "MEM", "OUT", "IN", "SILENT", "COMMAND")
NUMBERS = frozenset({"AGE", "CPU", "MEM", "OUT", "IN", "SILENT"})
_GAP = "  "
_CUT = "..."
# Of a command so much is shown even where the rest of the line is full.
_LEAST = 12

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_KIB = 1024
# From here on a size has no decimal place.
_ROUND = 10
NOTHING = "-"


def cells(row: Row) -> list[str]:
    """One command's, in the order of the columns."""
    command = row.command
    return [
        printable(command.pod) or NOTHING,
        printable(command.node) or NOTHING,
        printable(command.state),
        duration(command.age),
        NOTHING if command.cpu is None else cpu_time(command.cpu),
        NOTHING if command.memory is None else size(command.memory),
        size(command.stdout + command.stderr),
        size(command.stdin),
        NOTHING if command.silence is None else duration(command.silence),
        printable(command.command),
    ]


def table(rows: Sequence[Row], width: int | None = None) -> str:
    """All of them, one a line, below a heading. Lines are cut to `width`, if there is one."""
    lines = [list(COLUMNS), *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS) - 1)]
    return "".join(f"{_line(line, widths, width)}\n" for line in lines)


def summary(board: Board) -> str:
    """The switchboard itself, in a line."""
    status, usage = board.status, board.usage
    watches = ", ".join(f"{printable(watch.selector) or 'all pods'} {watch.state}" for watch in status.watches)
    parts = [
        f"switchboard {status.pid}: {status.sessions} command{'' if status.sessions == 1 else 's'}",
        f"{status.queued} queued",
        f"watch: {watches or 'none'}",
        f"{size(status.buffered)} buffered",
        f"{status.descriptors} of {status.descriptor_limit} descriptors",
    ]
    if usage.cpu is not None:
        parts.append(f"{usage.cpu:.1f} s CPU")
    if usage.memory is not None:
        parts.append(f"{size(usage.memory)} memory")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """At most two units: 45s, 3m12s, 2h05m, 3d04h."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d{whole % _DAY // _HOUR:02}h"


def cpu_time(seconds: float) -> str:
    """Below a minute with tenths: 3.2s, 1m12s."""
    # Rounded down, so that there is no 60.0s.
    tenths = int(seconds * 10)
    return f"{tenths // 10}.{tenths % 10}s" if tenths < _MINUTE * 10 else duration(seconds)


def size(count: float) -> str:
    """Bytes in powers of 1024: 512, 1.5K, 20M."""
    if count < _KIB:
        return str(int(count))
    unit = -1
    while count >= _KIB and unit < len("KMGTP") - 1:
        count, unit = count / _KIB, unit + 1
    return f"{count:.1f}{'KMGTP'[unit]}" if count < _ROUND else f"{count:.0f}{'KMGTP'[unit]}"


def printable(text: str) -> str:
    """One line, without what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def cut(text: str, width: int) -> str:
    """Its beginning, where it is too long."""
    return text if len(text) <= width else f"{text[: max(0, width - len(_CUT))]}{_CUT}"[:width]


def _line(line: Sequence[str], widths: Sequence[int], width: int | None) -> str:
    *before, command = (
        text if wide is None else text.rjust(wide) if name in NUMBERS else text.ljust(wide)
        for name, text, wide in zip_longest(COLUMNS, line, widths)
    )
    front = _GAP.join([*before, ""])
    if width is None:
        return f"{front}{command}"
    return f"{front}{cut(command, max(_LEAST, width - len(front)))}"[:width]
