"""
Background processes: started, recognised, signalled and stopped.

A process is known by its pid *and* its start time, so that a pid which the kernel gave to somebody else is never
signalled. All carry a mark in their environment; what has the mark and no record is a leftover.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from testbed.kube import layout, paths
from testbed.kube.commandlines import COLLECTED_SELDOM
from testbed.kube.errors import ClusterError
from testbed.kube.wait import until

_TERM_GRACE = 8.0
_KILL_GRACE = 5.0


@dataclass(frozen=True)
class Daemon:
    """A program to run in the background; `argv` must exec, never fork, so that its pid stays its own."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] | None = None

    @property
    def log(self) -> Path:
        return _log(self.name)


def start(daemon: Daemon) -> int:
    """Start it unless it runs, and return its pid. It outlives the caller."""
    running = pid_of(daemon.name)
    if running is not None:
        return running
    daemon.log.parent.mkdir(parents=True, exist_ok=True)
    with daemon.log.open("ab") as log:
        process = subprocess.Popen(
            list(daemon.argv),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **COLLECTED_SELDOM, **(daemon.env or {}), layout.PROCESS_MARK: daemon.name},
            start_new_session=True,
            cwd="/",
        )
    _record(daemon.name, process.pid)
    # The daemon is not waited for: it is meant to outlive this process.
    process.returncode = 0
    return process.pid


def pid_of(name: str) -> int | None:
    """The pid of a running daemon; None when it was never started, or is dead."""
    try:
        record = json.loads(_record_file(name).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    process = _process(record["pid"])
    return process.pid if process and _began(process.pid) == record.get("began") else None


def pid_or_fail(name: str) -> int:
    pid = pid_of(name)
    if pid is None:
        raise ClusterError(f"{name} is not running", remedy="start it: python -m testbed.kube up")
    return pid


def last_line(name: str) -> str:
    """What a daemon has logged last."""
    lines = _log(name).read_text(errors="replace").splitlines()
    return lines[-1] if lines else "nothing"


def is_frozen(name: str) -> bool:
    pid = pid_of(name)
    process = _process(pid) if pid else None
    return process is not None and process.status() == psutil.STATUS_STOPPED


def freeze(name: str) -> None:
    """Stop it as SIGSTOP does; returns when it stands still."""
    os.kill(pid_or_fail(name), signal.SIGSTOP)
    until(lambda: is_frozen(name), within=_KILL_GRACE, what=f"{name} to stand still")


def thaw(name: str) -> None:
    os.kill(pid_or_fail(name), signal.SIGCONT)
    until(lambda: not is_frozen(name), within=_KILL_GRACE, what=f"{name} to go on")


def kill(name: str) -> None:
    """End it with -9 and wait until it is gone; its record stays, so that it counts as dead, not as absent."""
    pid = pid_or_fail(name)
    os.kill(pid, signal.SIGKILL)
    until(lambda: _is_gone(pid), within=_KILL_GRACE, what=f"the end of {name}")


def stop(name: str) -> None:
    """TERM, then KILL, then forget. A daemon that does not run is only forgotten."""
    pid = pid_of(name)
    if pid is not None:
        _end([pid])
    _record_file(name).unlink(missing_ok=True)


def stop_all_marked() -> None:
    """End whatever carries the cluster's mark, recorded or not: nothing of it may be left."""
    _end(list(marked()))
    for record in _records().glob("*.json"):
        record.unlink()


def marked() -> Iterator[int]:
    """Pids of all processes that carry the mark, this one's ancestors excepted."""
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    needle = f"{layout.PROCESS_MARK}=".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            variables = (entry / "environ").read_bytes().split(b"\0")
            if int(entry.name) not in own and any(v.startswith(needle) for v in variables):
                yield int(entry.name)


def names() -> list[str]:
    """Names of all daemons that were started and not stopped, dead ones included."""
    return sorted(record.stem for record in _records().glob("*.json"))


def _end(pids: Sequence[int]) -> None:
    for signum, grace in ((signal.SIGTERM, _TERM_GRACE), (signal.SIGKILL, _KILL_GRACE)):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signum)
                # A frozen process would take its TERM only when thawed.
                os.kill(pid, signal.SIGCONT)
        with suppress(ClusterError):
            until(lambda: all(_is_gone(pid) for pid in pids), within=grace, what="the end of processes")
            return
    left = [pid for pid in pids if not _is_gone(pid)]
    raise ClusterError(f"processes {left} did not end after KILL", remedy="look at them with: ps -f")


def _is_gone(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return _process(pid) is None


def _process(pid: int) -> psutil.Process | None:
    """The process, unless it is gone or only waits to be reaped."""
    try:
        process = psutil.Process(pid)
        # The main thread may be a zombie while others, on their way out, still hold the sockets.
        is_over = process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
    except psutil.NoSuchProcess:
        return None
    return None if is_over else process


def _record(name: str, pid: int) -> None:
    _records().mkdir(parents=True, exist_ok=True)
    _record_file(name).write_text(json.dumps({"pid": pid, "began": _began(pid)}))


def _began(pid: int) -> str:
    """When a process began, in ticks since the machine did, for the clock may be set; empty if it is gone."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _log(name: str) -> Path:
    return paths.LOGS / f"{name}.log"


def _records() -> Path:
    return paths.RUN / "daemons"


def _record_file(name: str) -> Path:
    return _records() / f"{name}.json"
