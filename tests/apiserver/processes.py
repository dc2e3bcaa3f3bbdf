"""What is left of processes. Owns: reading /proc, and the last resort at the end of a test."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path

MARK = "MPIRT_TEST_OF"
"""The variable by which those are known that leave their session."""


def session_members(session: int) -> list[int]:
    """The living processes of a session, its leader included."""
    return [int(entry.name) for entry in _processes() if _is_member(entry, {session})]


def marked(mark: str) -> list[int]:
    """The living processes with this mark, those that have left their session too."""
    text = f"{MARK}={mark}".encode()
    return [int(entry.name) for entry in _processes() if text in _environ(entry)]


def kill_all(sessions: Collection[int], mark: str = "") -> None:
    """Kill what is in these sessions or has this mark, until nothing is left, however fast it forks."""
    marked = f"{MARK}={mark}".encode()

    def is_of_them(one: Path) -> bool:
        return _is_member(one, sessions) or (bool(mark) and marked in _environ(one))

    while left := [one for one in _processes() if is_of_them(one)]:
        for entry in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)


def _processes() -> Iterator[Path]:
    return (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _environ(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def _is_member(entry: Path, sessions: Collection[int]) -> bool:
    try:
        text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    # "pid (name) state ppid pgrp session ...": the name may hold anything.
    state, _, _, found = text.rpartition(") ")[2].split()[:4]
    return int(found) in sessions and state != "Z"
