"""
The format string of `mpirt ps -o`.

Owns: the names that may stand in it and their values. Names only: no attributes, indices, conversions. No I/O.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

from mpirt.cli.ps.boards import Row
from mpirt.cli.ps.table import NOTHING, printable
from mpirt.errors import UsageError

Text = str | int | float

# Each name with a value of its type.
NAMES: Mapping[str, Text] = {
    "pod": "", "node": "", "namespace": "", "container": "", "command": "", "agent": 0, "state": "", "started": 0,
    "age": 0.0, "stdout": 0, "stderr": 0, "stdin": 0, "silence": 0.0, "held": "", "generation": 0, "waiting": 0,
    "cpu": 0.0, "memory": 0, "processes": 0, "agent_cpu": 0.0, "agent_memory": 0,
}  # fmt: skip
_EXAMPLE = "as in: -o '{pod} {state} {age:.0f}'"
_SPEC = re.compile(r"(?P<place>[<>^]?\d{0,3})(\.\d{1,2})?[dfs]?")


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
