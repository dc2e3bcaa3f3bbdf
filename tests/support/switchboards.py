"""
What a switchboard holds at a moment: memory, descriptors, threads.

Owns: reading it from outside, in /proc. The switchboard itself says nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support import forms

_KIB = 1024


@dataclass(slots=True)
class Figures:
    """What the switchboard and its agents hold."""

    switchboard: int = 0
    """Its process id."""
    memory: int = 0
    """KiB, proportional set size of the switchboard."""
    agents: int = 0
    """KiB, of the agents that stay."""
    descriptors: int = 0
    threads: int = 0


def look(figures: Figures, folder: Path, agents: Sequence[int]) -> None:
    """Note what the switchboard and these agents hold."""
    with forms.connection(folder) as figures.switchboard:
        process = Path(f"/proc/{figures.switchboard}")
        # Without this connection. Once it is closed, the switchboard may have its end of it a little longer.
        figures.descriptors = len(list((process / "fd").iterdir())) - 1
    figures.memory = _pss_bytes(figures.switchboard) // _KIB
    figures.agents = sum(map(_pss_bytes, agents)) // _KIB
    figures.threads = len(list((process / "task").iterdir()))


def _pss_bytes(pid: int) -> int:
    """The proportional set size of one process."""
    return int(psutil.Process(pid).memory_full_info().pss)
