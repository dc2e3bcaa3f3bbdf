"""
Other processes of this container: what started them, and how old they are.

Owns: reading that in /proc. A process that has ended, or that may not be looked at, reads as nothing. Each command
and each call of mpirt-discover asks, and psutil would take 8 ms of a launcher's first one.
"""

from __future__ import annotations

import os
import time

from mpirt.values import Value

# Of /proc/PID/stat, behind the name in brackets, which may hold anything.
_PARENT, _STARTED = 1, 19


class Process(Value):
    """A process as it was found."""

    pid: int
    parent: int
    """The process that started it, or has adopted it since."""
    started: int
    """In ticks since the boot: no other process has both this and the number."""

    @property
    def age(self) -> float:
        """For how many seconds it has run."""
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - self.started / os.sysconf("SC_CLK_TCK"))


def find(pid: int | None, proc: str = "/proc") -> Process | None:
    """The process of that number; None where it can't be read."""
    try:
        with open(f"{proc}/{pid or 0}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Process(pid or 0, int(fields[_PARENT]), int(fields[_STARTED])) if len(fields) > _STARTED else None


def age(pid: int | None) -> float:
    """For how many seconds it has run; 0 where that can't be read."""
    found = find(pid)
    return found.age if found else 0.0


def parent(pid: int | None) -> int:
    """The process that started it, or has adopted it since; 0 where that can't be read."""
    found = find(pid)
    return found.parent if found else 0
