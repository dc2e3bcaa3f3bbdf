"""
Switchboards and commands as `mpirt ps` gets them, with what a test is about changed.

Owns: one ordinary command and one ordinary switchboard.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mpirt.cli.ps.boards import Board, Row, Usage
from mpirt.rsh.switchboard.status import BoardStatus, CommandStatus, WatchStatus

UNKNOWN = Usage()
COMMAND = CommandStatus(
    pod="w-0", node="node-1", namespace="ml", container="worker", command="orted -mca a b", agent=71,
    state="running", started=1700000000.5, age=192.04, stdout=1500, stderr=36, stdin=0, silence=2.5, held=True,
    generation=0, waiting=0, cpu=75.3, memory=3 * 1024**3, processes=5, measured=(100.0, 100.25),
)  # fmt: skip
STATUS = BoardStatus(
    pid=9, started=1700000000.0, version="0.1", sessions=1, queued=0,
    watches=(WatchStatus("ml", "mpirt.dev/job=train", "watching", 4),), buffered=0, descriptors=12,
    descriptor_limit=1024,
)  # fmt: skip


def row(*, agent: Usage = UNKNOWN, **changes: Any) -> Row:
    return Row(replace(COMMAND, **changes), agent)


def board(*rows: Row, usage: Usage = UNKNOWN, **changes: Any) -> Board:
    return Board("/dev/shm/x", replace(STATUS, **changes), usage, rows)
