"""
The switchboard that agents start by themselves: where it is, and which process it is.

Owns: a folder for it, and that it does not outlive the block. docs/switchboard.md has what is said on its socket.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crowd import cpu_seconds, pss_bytes
from benchmarks.measure import Unmeasured
from testbed.kube import paths

_BUILT = paths.PROJECT / "mpirt/agent"
_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}
_PATIENCE = 60.0
_WELCOME = struct.Struct("<I12xII")
_WELCOME_TYPE = 1


@dataclass(frozen=True, slots=True)
class Board:
    """A place for a switchboard; the first agent starts one."""

    folder: Path

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        """What leads an agent there."""
        return {**env, "MPIRT_SWITCHBOARD": str(self.folder)}

    def pid(self) -> int:
        """The switchboard that there is now."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_PATIENCE)
                connection.connect(str(self.folder / "socket"))
                welcome = connection.recv(_WELCOME.size, socket.MSG_WAITALL)
        except OSError as error:
            raise Unmeasured(f"there is no switchboard in {self.folder}: {error}; {self.said()}") from error
        if len(welcome) != _WELCOME.size or welcome[0] != _WELCOME_TYPE:
            raise Unmeasured(f"the switchboard in {self.folder} says {welcome!r} instead of WELCOME")
        pid: int = _WELCOME.unpack(welcome)[2]
        return pid

    def cpu_seconds(self) -> float:
        """What it has used since its start."""
        return cpu_seconds(self.pid())

    def pss_bytes(self) -> int:
        """What it holds in memory."""
        return pss_bytes(self.pid())

    def said(self) -> str:
        """Its log, which is empty if all is well."""
        try:
            return (self.folder / "log").read_text(errors="replace").strip()
        except OSError:
            return "it has no log"


@contextmanager
def board() -> Iterator[Board]:
    """A place of its own; the switchboard there is ended with the block, when all agents have."""
    with tempfile.TemporaryDirectory(prefix="mpirt-board-") as name:
        made = Board(Path(name))
        try:
            yield made
        finally:
            with suppress(Unmeasured, ProcessLookupError):
                pid = made.pid()
                handle = os.pidfd_open(pid)
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                os.close(handle)


def argv(pod: str, command: str) -> list[str]:
    """The agent as pip's console script becomes it."""
    built = sorted(_BUILT.glob(f"agent-*-{_ARCHITECTURES.get(platform.machine(), '')}"))
    if not built:
        raise Unmeasured(f"there is no agent in {_BUILT}; run: make programs")
    return [str(built[-1]), "--python", sys.executable, str(paths.PROJECT), "mpirt-rsh", pod, command]
