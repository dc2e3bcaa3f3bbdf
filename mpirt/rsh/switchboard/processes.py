"""
Other processes of this container: how old they are, and what started them.

Owns: reading that in /proc. A process that has ended, or that may not be looked at, reads as nothing. Each command
asks, and psutil would take 10 ms of a launcher's first one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

# Fields of /proc/PID/stat behind the name of the program, which may hold anything.
_PARENT, _STARTED = 1, 19


def age(pid: int | None) -> float:
    """For how many seconds it has run; 0 where that can't be read."""
    fields = _stat(pid)
    if not fields:
        return 0.0
    since_boot = int(fields[_STARTED]) / os.sysconf("SC_CLK_TCK")
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)


def parent(pid: int | None) -> int:
    """The process that started it, or has adopted it since; 0 where that can't be read."""
    fields = _stat(pid)
    return int(fields[_PARENT]) if fields else 0


def _stat(pid: int | None) -> list[bytes]:
    try:
        return Path(f"/proc/{pid or 0}/stat").read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return []
