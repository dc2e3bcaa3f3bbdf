"""
What processes that run hold in memory: proportional set size, in which a shared page counts by its share.

Owns: reading the kernel's account of it, for a process and everything below it.
"""

from __future__ import annotations

import re
from pathlib import Path

import psutil

from benchmarks.measure import Unmeasured

_PSS = re.compile(r"^Pss: +(\d+) kB$", re.MULTILINE)
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def pss_bytes(smaps_rollup: str) -> int:
    """The sum in a /proc/PID/smaps_rollup."""
    found = _PSS.search(smaps_rollup)
    if found is None:
        raise Unmeasured("the kernel tells no proportional set size; Linux 4.14 and later do")
    return int(found[1]) * 1024


def tree_bytes(pid: int) -> int:
    """Of a process and all its descendants."""
    try:
        family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        return sum(pss_bytes(Path(f"/proc/{member}/smaps_rollup").read_text()) for member in family)
    except (psutil.NoSuchProcess, OSError) as error:
        raise Unmeasured(f"process {pid} can't be looked at while it runs: {error}") from error


def peak_bytes(pid: int) -> int:
    """Return the most that a process has had in memory so far."""
    try:
        found = _PEAK.search(Path(f"/proc/{pid}/status").read_text())
    except OSError as error:
        raise Unmeasured(f"process {pid} can't be looked at while it runs: {error}") from error
    if found is None:
        raise Unmeasured(f"the kernel tells no peak of the memory of process {pid}")
    return int(found[1]) * 1024
