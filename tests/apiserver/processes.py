"""What is left of a process's session. Owns: reading /proc, and the last resort at the end of a test."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def session_members(session: int) -> list[int]:
    """The living processes of a session, its leader included."""
    return [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_member(entry, session)
    ]


def kill_session(session: int) -> None:
    """Kill until nothing is left, however fast it forks."""
    while members := session_members(session):
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)


def _is_member(entry: Path, session: int) -> bool:
    try:
        text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    # "pid (name) state ppid pgrp session ...": the name may hold anything.
    state, _, _, found = text.rpartition(") ")[2].split()[:4]
    return int(found) == session and state != "Z"
