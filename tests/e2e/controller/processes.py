"""
The controller's processes, and what can be done to one.

A process in a pod has a pid on this machine, too. It is found by the pod's address, and killed or stopped without
asking anybody: neither an API server that is away nor a kubelet that is behind is in the way.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.kube.wait import until

_PROGRAM = b"/mpirt-controller\0"
_WITHIN = 10.0


@dataclass(frozen=True)
class Process:
    """One process, which is never mixed up with the next one of its pod."""

    address: str
    pid: int
    container: str
    """What the kubelet calls it: a pod's next process runs in another."""

    @property
    def is_over(self) -> bool:
        try:
            process = psutil.Process(self.pid)
            # Whoever has to reap it may be busy; its sockets are closed when its last thread is gone.
            return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
        except psutil.NoSuchProcess:
            return True

    def kill(self) -> None:
        """End it by SIGKILL; returns when nothing of it is left."""
        os.kill(self.pid, signal.SIGKILL)
        until(lambda: self.is_over, within=_WITHIN, what=f"the end of the controller at {self.address}")

    def freeze(self) -> None:
        """Stop it by SIGSTOP; returns when it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        until(self._stands_still, within=_WITHIN, what=f"the controller at {self.address} to stand still")

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def _stands_still(self) -> bool:
        threads = (path.read_text() for path in Path("/proc", str(self.pid), "task").glob("*/stat"))
        return all(text.rpartition(")")[2].split()[0] == "T" for text in threads)


def at(address: str) -> Process:
    """The controller whose pod has this address."""
    [found] = _at(address)
    return found


def _at(address: str) -> Iterator[Process]:
    for place in Path("/proc").glob("[0-9]*"):
        # Processes come and go meanwhile.
        with suppress(OSError):
            is_ours = _PROGRAM in (place / "cmdline").read_bytes()
            if is_ours and f"|-- {address}\n" in (place / "net/fib_trie").read_text():
                yield Process(address, int(place.name), _container((place / "cgroup").read_text()))


def _container(cgroups: str) -> str:
    """The container that a process's control group is that of."""
    return f"containerd://{cgroups.splitlines()[0].rpartition('/')[2]}"
