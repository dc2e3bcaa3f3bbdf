"""
The switchboard that tests have commands use, and what it holds at a moment: memory, descriptors, threads.

Owns: where it listens, that it has had nothing to complain of, and reading its figures from outside, in /proc.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

SWITCHBOARD = "MPIRT_SWITCHBOARD"
PRIVATE = "off"
"""The variable's value for commands that each have a switchboard of their own."""
_WELCOME = struct.Struct("<I12xII")
_KIB = 1024


def place(folder: Path) -> Iterator[Path]:
    """A folder for a switchboard. At the end its log must be empty: what it writes there are defects."""
    folder.chmod(0o700)
    yield folder
    log = folder / "log"
    assert not log.exists() or log.read_text() == ""


@contextmanager
def used(folder: Path) -> Iterator[Path]:
    """Have commands of this process use the switchboard in that folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCHBOARD, str(folder))
        yield folder


@contextmanager
def connection(folder: Path) -> Iterator[int]:
    """A connection to the switchboard that listens there, which has accepted it; its process id."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / "socket"))
        _, _, pid = _WELCOME.unpack(client.recv(_WELCOME.size, socket.MSG_WAITALL))
        yield int(pid)


def pid_of(folder: Path) -> int:
    """The process id of the switchboard that listens there."""
    with connection(folder) as pid:
        return pid


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
    with connection(folder) as figures.switchboard:
        process = Path(f"/proc/{figures.switchboard}")
        # Without this connection. Once it is closed, the switchboard may have its end of it a little longer.
        figures.descriptors = len(list((process / "fd").iterdir())) - 1
    figures.memory = _pss_bytes(figures.switchboard) // _KIB
    figures.agents = sum(map(_pss_bytes, agents)) // _KIB
    figures.threads = len(list((process / "task").iterdir()))


def _pss_bytes(pid: int) -> int:
    """The proportional set size of one process."""
    return int(psutil.Process(pid).memory_full_info().pss)
