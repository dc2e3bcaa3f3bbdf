"""
Other processes of this container: how old they are, what started them, and what they use.

Owns: reading that with psutil. A process that has ended, or that may not be looked at, reads as nothing.
"""

from __future__ import annotations

import time
from contextlib import suppress

import psutil


def age(pid: int | None) -> float:
    """For how many seconds it has run; 0 where that can't be read."""
    with suppress(psutil.Error):
        # Both are counted from a moment that is known to the second only; their difference is exact.
        since_boot = _process(pid).create_time() - psutil.boot_time()
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)
    return 0.0


def parent(pid: int | None) -> int:
    """The process that started it, or has adopted it since; 0 where that can't be read."""
    with suppress(psutil.Error):
        return int(_process(pid).ppid())
    return 0


def owner(pid: int | None) -> int | None:
    """The user that it runs as."""
    with suppress(psutil.Error):
        return int(_process(pid).uids().effective)
    return None


def cpu_seconds(pid: int | None) -> float | None:
    """How much CPU time it has used."""
    with suppress(psutil.Error):
        times = _process(pid).cpu_times()
        return float(times.user + times.system)
    return None


def memory(pid: int | None) -> int | None:
    """
    Its memory in bytes, with its share of what it shares with others (Pss).

    Without the permission to read that, all that it has in memory (RSS).
    """
    with suppress(psutil.Error):
        process = _process(pid)
        try:
            return int(process.memory_full_info().pss)
        except psutil.AccessDenied:
            return int(process.memory_info().rss)
    return None


def _process(pid: int | None) -> psutil.Process:
    """Raises psutil.Error."""
    if not pid:
        raise psutil.NoSuchProcess(0)
    return psutil.Process(pid)
