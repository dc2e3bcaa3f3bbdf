"""
Commands as text: a table that fits a terminal, or a line for each in the format of `mpirt ps -o`.

Owns: the columns, how numbers are written for people, and what is cut; the names that may stand in a format and
their values. Names only: no attributes, indices, conversions. No I/O.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from mpirt.cli.ps.boards import NOTHING, Board, Row
from mpirt.errors import UsageError

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

Text = str | int | float

# Each name with a value of its type.
NAMES: Mapping[str, Text] = {
    "pod": "", "node": "", "namespace": "", "container": "", "command": "", "agent": 0, "state": "", "started": 0,
    "age": 0.0, "stdout": 0, "stderr": 0, "stdin": 0, "silence": 0.0, "held": "", "generation": 0, "waiting": 0,
    "cpu": 0.0, "memory": 0, "processes": 0, "agent_cpu": 0.0, "agent_memory": 0,
}  # fmt: skip
_EXAMPLE = "as in: -o '{pod} {state} {age:.0f}'"
_SPEC = re.compile(r"(?P<place>[<>^]?\d{0,3})(\.\d{1,2})?[dfs]?")


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


class Format:
    """A format string that has been checked."""

    def __init__(self, text: str) -> None:
        """Raises UsageError."""
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise UsageError(f"-o {text!r}: {error}; {_EXAMPLE}") from error
        self._parts = [
            (literal, name, _checked(name, spec or "", conversion)) for literal, name, spec, conversion in parts
        ]

    def line(self, row: Row) -> str:
        """One command."""
        found = values(row)
        return "".join(
            literal if name is None else literal + _written(found[name], spec)
            for literal, name, spec in self._parts
        )


def values(row: Row) -> dict[str, Text | None]:
    """What the names stand for."""
    command, agent = row.command, row.agent
    own: dict[str, Text | None] = {
        "started": int(command.started),
        "age": round(command.age, 1),
        "silence": None if command.silence is None else round(command.silence, 1),
        "cpu": None if command.cpu is None else round(command.cpu, 2),
        "held": "yes" if command.held else "no",
        "agent_cpu": agent.cpu,
        "agent_memory": agent.memory,
    }
    return {name: own[name] if name in own else getattr(command, name) for name in NAMES}


def _checked(name: str | None, spec: str, conversion: str | None) -> str:
    """The specification of one field. Raises UsageError."""
    if name is None:
        return ""
    if name not in NAMES:
        raise UsageError(f"-o: unknown name {name!r}; the names are: {', '.join(NAMES)}")
    if conversion or not _SPEC.fullmatch(spec):
        field = f"{{{name}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}"
        raise UsageError(f"-o: {field}: expected a width and a precision at most, {_EXAMPLE}")
    try:
        format(NAMES[name], spec)
    except ValueError as error:
        raise UsageError(f"-o: {{{name}:{spec}}}: {error}; {_EXAMPLE}") from error
    return spec


def _written(value: Text | None, spec: str) -> str:
    if value is None:
        found = _SPEC.match(spec)
        return format(NOTHING, found["place"] if found else "")
    return format(printable(value) if isinstance(value, str) else value, spec)
