"""
What `mpirt ps` knows: switchboards, their commands, what these use, and how busy they are.

Owns: the document of `mpirt ps --json`, both ways; the order of commands; and the rate of `mpirt ps --watch`: CPU
time per time, and which command of an earlier look is which. No I/O, no clock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from mpirt.errors import PeerError
from mpirt.objects import rows as table_rows
from mpirt.rsh.switchboard.status import BoardStatus, CommandStatus, fields, read_board

NOTHING = "-"
# Longer numbers are none.
_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process uses, where it could be seen."""

    cpu: float | None = None
    """Seconds of CPU time."""
    memory: int | None = None
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Row:
    """A command, and what its agent uses."""

    command: CommandStatus
    agent: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Board:
    """A switchboard, what it uses, and its commands."""

    place: str
    """Its folder."""
    status: BoardStatus
    usage: Usage
    rows: tuple[Row, ...]


def rows_of(boards: Iterable[Board]) -> list[Row]:
    """The commands of all switchboards."""
    return [row for board in boards for row in board.rows]


def write(boards: Iterable[Board]) -> str:
    """The document, on one line: a command may hold any text."""
    return json.dumps({"switchboards": [_board(board) for board in boards]})


def read(text: str) -> list[Board]:
    """The same back. Raises PeerError."""
    try:
        found = json.loads(text)["switchboards"]
        return [_read_board(body) for body in found]
    except (ValueError, KeyError, TypeError) as error:
        raise PeerError("it is not the document of `mpirt ps --json`") from error


def ordered(rows: Iterable[Row], by: str) -> list[Row]:
    """By pod; or the oldest, the busiest or the most silent first."""
    return sorted(sorted(rows, key=lambda row: _natural(row.command.pod)), key=ORDERS[by])


def _by_silence(row: Row) -> float:
    silence = row.command.silence
    return 1.0 if silence is None else -silence


def _by_bytes(row: Row) -> float:
    command = row.command
    return -(command.stdout + command.stderr + command.stdin)


ORDERS: Mapping[str, Callable[[Row], float]] = {
    "pod": lambda _row: 0.0,
    "age": lambda row: -row.command.age,
    "bytes": _by_bytes,
    "silence": _by_silence,
}


def _natural(name: str) -> list[tuple[str, int]]:
    """w-2 before w-10."""
    parts = re.findall(r"([^0-9]*)([0-9]*)", name)
    return [(text, int(digits[:_DIGITS] or -1)) for text, digits in parts]


def _board(board: Board) -> dict[str, object]:
    status = fields(board.status)
    status["watches"] = [fields(watch) for watch in board.status.watches]
    commands = [
        {**fields(row.command), "agent_cpu": row.agent.cpu, "agent_memory": row.agent.memory} for row in board.rows
    ]
    usage = {"cpu": board.usage.cpu, "memory": board.usage.memory}
    return {"folder": board.place, **status, **usage, "commands": commands}


def _read_board(body: Mapping[str, object]) -> Board:
    status, commands = read_board(body)
    rows = [
        Row(command, _usage(one, "agent_cpu", "agent_memory"))
        for command, one in zip(commands, table_rows(body, "commands"), strict=True)
    ]
    return Board(str(body.get("folder", "")), status, _usage(body, "cpu", "memory"), tuple(rows))


def _usage(body: Mapping[str, object], cpu: str, memory: str) -> Usage:
    seconds, size = body.get(cpu), body.get(memory)
    return Usage(
        seconds if isinstance(seconds, int | float) else None,
        size if isinstance(size, int) else None,
    )


class Rates:
    """How busy each command was between the last two measurements of it."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, tuple[float, float]]] = {}
        self._rates: dict[Hashable, float] = {}

    def look(self, rows: Iterable[Row]) -> None:
        """Take a new answer."""
        earlier, rates, self._last, self._rates = self._last, self._rates, {}, {}
        for row in rows:
            key, cpu, measured = _key(row), row.command.cpu, row.command.measured
            if cpu is None or measured is None:
                continue
            self._last[key] = cpu, measured
            before, when = earlier.get(key, (cpu, measured))
            if when == measured:
                # The keeper was not asked again.
                self._rates |= {key: rates[key]} if key in rates else {}
            elif cpu >= before:
                # From the earliest moment of the one to the latest of the other: no command gets more than there
                # is.
                self._rates[key] = (cpu - before) / (measured[1] - when[0])

    def text(self, row: Row) -> str:
        """Its rate: 100% is one processor."""
        rate = self._rates.get(_key(row))
        return NOTHING if rate is None else f"{rate:.0%}"


def _key(row: Row) -> Hashable:
    command = row.command
    return command.agent, command.namespace, command.pod, command.command
