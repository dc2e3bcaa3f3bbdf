"""
Our programs in a launcher, as pip's console scripts become them, and the folder of their switchboard.

Owns: where the built file is, and that no switchboard is left.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.frame import Unmeasured
from images import build
from testbed.kube import paths
from tests.support.switchboards import pid_of


@contextmanager
def switchboard_folder() -> Iterator[Path]:
    """A folder for a switchboard, which its first agent starts; it is ended with the block."""
    with tempfile.TemporaryDirectory(prefix="mpirt-board-") as name:
        try:
            yield Path(name)
        finally:
            with suppress(OSError, struct.error):
                os.kill(pid_of(Path(name)), signal.SIGKILL)


def agent(pod: str, *command: str) -> list[str]:
    """mpirt-rsh with a command for a pod."""
    return _built("--python", "mpirt-rsh", pod, *command)


def discover(*words: str) -> list[str]:
    """mpirt-discover."""
    return _built("--discover", "mpirt-discover", *words)


def _built(kind: str, called: str, *words: str) -> list[str]:
    """The built file, with what a console script hands it."""
    folder = paths.PROJECT / "mpirt/agent"
    built = sorted(folder.glob(f"agent-*-{build.architecture()}"))
    if not built:
        raise Unmeasured(f"there is no agent in {folder}; run: make programs")
    return [str(built[-1]), kind, sys.executable, str(paths.PROJECT), called, *words]
