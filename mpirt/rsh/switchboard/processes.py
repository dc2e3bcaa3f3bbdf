"""
What the kernel tells about other processes.

Owns: what /proc has on one process. A process that is gone, or that /proc does not show, reads as nothing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_KIB = 1024
# In /proc/PID/stat, counted from the field behind the name, which may hold spaces and parentheses.
_PARENT, _USER_TICKS, _SYSTEM_TICKS, _START_TICKS = 1, 11, 12, 19


def age(pid: int | None) -> float:
    """For how many seconds it has run; 0 where that can't be read."""
    fields = _stat(pid)
    if fields is None:
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - _seconds(fields[_START_TICKS]))


def parent(pid: int | None) -> int:
    """The process that started it, or has adopted it since; 0 where that can't be read."""
    fields = _stat(pid)
    return 0 if fields is None else int(fields[_PARENT])


def cpu_seconds(pid: int | None) -> float | None:
    """How much CPU time it has used."""
    fields = _stat(pid)
    return None if fields is None else _seconds(fields[_USER_TICKS]) + _seconds(fields[_SYSTEM_TICKS])


def memory(pid: int | None) -> int | None:
    """
    Its memory in bytes, with its share of what it shares with others (Pss).

    Without the right to know that, all that it has in memory (RSS).
    """
    for file, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        found = [line.split()[1] for line in _text(pid, file).splitlines() if line.startswith(field)]
        if found:
            return int(found[0]) * _KIB
    return None


def _stat(pid: int | None) -> list[str] | None:
    fields = _text(pid, "stat").rpartition(")")[2].split()
    return fields if len(fields) > _START_TICKS else None


def _seconds(ticks: str) -> float:
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def _text(pid: int | None, file: str) -> str:
    if pid is None:
        return ""
    try:
        return Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
