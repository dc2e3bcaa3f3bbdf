"""
How a switchboard and its commands are, as values and as the document that STATUS carries.

Owns: the fields, their names in the document, and reading it back. docs/switchboard.md has the list. No I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mpirt.errors import PeerError

_T = TypeVar("_T")

QUEUED = "queued"
"""The state of a command that waits for its turn to dial."""
WAITING = "waiting"
"""The state of a command that begins when its pod is Ready."""
LOOKUP = "lookup"
"""The state of a command whose pod is looked up by its address."""


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """One command."""

    pod: str
    node: str
    namespace: str
    container: str
    command: str
    agent: int | None
    """The agent's pid."""
    state: str
    started: float
    """Unix time."""
    age: float
    """Seconds."""
    stdout: int
    """Bytes that have come from the pod, written or not."""
    stderr: int
    stdin: int
    """Bytes that were passed on to the pod."""
    silence: float | None
    """Seconds since the last sign of life from the pod."""
    held: bool
    """Whether a keeper in the pod holds it."""
    generation: int
    """How many times another switchboard has taken it over."""
    waiting: int
    """Bytes of output that the readers in the launcher have not taken yet."""
    cpu: float | None
    """Seconds of CPU time that its processes in the pod have used."""
    memory: int | None
    """Bytes of memory that they use."""
    processes: int | None
    """How many they are."""
    measured: tuple[float, float] | None
    """Between which moments of CLOCK_MONOTONIC the keeper has measured them."""


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """The watch on the pods of one job."""

    namespace: str
    selector: str
    """Empty: all pods of the namespace, or not known yet."""
    state: str
    pods: int
    """How many are followed."""


@dataclass(frozen=True, slots=True)
class BoardStatus:
    """The switchboard itself."""

    pid: int
    started: float
    """Unix time."""
    version: str
    sessions: int
    queued: int
    watches: tuple[WatchStatus, ...]
    buffered: int
    """Bytes of all commands that wait in the switchboard, in either direction."""
    descriptors: int
    descriptor_limit: int


def document(board: BoardStatus, commands: Sequence[CommandStatus]) -> bytes:
    """All of it as JSON."""
    watches = [fields(watch) for watch in board.watches]
    rows = [fields(command) for command in commands]
    return json.dumps({**fields(board), "watches": watches, "commands": rows}).encode()


def read_document(text: str | bytes) -> tuple[BoardStatus, list[CommandStatus]]:
    """The same back. Raises PeerError."""
    try:
        return read_board(json.loads(text))
    except ValueError as error:
        raise PeerError("the switchboard's status is not JSON") from error


def read_board(found: object) -> tuple[BoardStatus, list[CommandStatus]]:
    """The document, as a part of another one. Raises PeerError."""
    if not isinstance(found, Mapping):
        raise PeerError("the switchboard's status is not an object")
    watches = tuple(_made(WatchStatus, row) for row in _rows(found, "watches"))
    commands = [_made(CommandStatus, _with_interval(row)) for row in _rows(found, "commands")]
    return _made(BoardStatus, {**found, "watches": watches}), commands


def fields(status: CommandStatus | WatchStatus | BoardStatus) -> dict[str, object]:
    """Names and values. dataclasses.asdict() takes ten times as long."""
    return {name: getattr(status, name) for name in status.__slots__}


def _rows(found: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    rows = found.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise PeerError(f"the switchboard's status has no {name}: it is of another version of mpirt")
    return rows


def _with_interval(row: Mapping[str, object]) -> Mapping[str, object]:
    match row:
        case {"measured": [int() | float() as begin, int() | float() as end]}:
            return {**row, "measured": (begin, end)}
        case {"measured": None}:
            return row
    return {name: found for name, found in row.items() if name != "measured"}


def _made(kind: type[_T], row: Mapping[str, object]) -> _T:
    """What a later version has added is left out."""
    names: Mapping[str, object] = kind.__annotations__
    missing = [name for name in names if name not in row]
    if missing:
        raise PeerError(f"the switchboard's status has no {missing[0]}: it is of another version of mpirt")
    return kind(**{name: row[name] for name in names})
