"""The control groups of the nodes: made in every hierarchy, emptied and removed at the end. Knows v1 and v2."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from testbed.kube import layout
from testbed.kube.wait import until

_ROOT = Path("/sys/fs/cgroup")
_CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")


def is_unified() -> bool:
    """Whether the machine has version 2 only."""
    return (_ROOT / "cgroup.controllers").exists()


def create(name: str) -> None:
    """Make a group in every hierarchy. A v1 cpuset without processors and memory would take no process."""
    for hierarchy in _hierarchies():
        folder = hierarchy
        for part in name.split("/"):
            if is_unified():
                _delegate(folder)
            parent, folder = folder, folder / part
            folder.mkdir(exist_ok=True)
            for setting in _CPUSET_FILES:
                if not is_unified() and (folder / setting).exists():
                    (folder / setting).write_text((parent / setting).read_text())


def folders(name: str, controller: str) -> Iterator[Path]:
    """All groups below `name`, the deepest first, in the hierarchy of one controller."""
    top = (_ROOT if is_unified() else _ROOT / controller) / name
    yield from _below(top)


def kill(name: str) -> None:
    """Kill all that runs in the group and below, until nothing does."""

    def is_empty() -> bool:
        pids = {pid for hierarchy in _hierarchies() for pid in _pids(hierarchy / name)}
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    until(is_empty, within=10, what=f"the end of all processes in the control group {name}")


def delete() -> None:
    """Remove the cluster's groups from every hierarchy."""
    for hierarchy in _hierarchies():
        for folder in _below(hierarchy / layout.CGROUP):
            with suppress(FileNotFoundError):
                folder.rmdir()


def leftovers() -> list[Path]:
    return [hierarchy / layout.CGROUP for hierarchy in _hierarchies() if (hierarchy / layout.CGROUP).exists()]


def _hierarchies() -> list[Path]:
    if is_unified():
        return [_ROOT]
    return [folder for folder in sorted(_ROOT.iterdir()) if folder.is_dir() and (folder / "cgroup.procs").exists()]


def _delegate(folder: Path) -> None:
    controllers = (folder / "cgroup.controllers").read_text().split()
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def _below(top: Path) -> Iterator[Path]:
    for folder, _, _ in os.walk(top, topdown=False):
        yield Path(folder)


def _pids(top: Path) -> Iterator[int]:
    for folder in _below(top):
        with suppress(FileNotFoundError, OSError):
            yield from (int(pid) for pid in (folder / "cgroup.procs").read_text().split())
