"""
Programs that are all started at once and stay: when the last of them is up, and what all have cost by then.

Owns: the processes and that none is left. Must not know what the programs are.

Thousands of them can't have a descriptor of ours each: all write to the same two files, whose lines are counted.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks import memory
from benchmarks.measure import Unmeasured

_UP_WITHIN = 300.0
_ENDED_WITHIN = 120.0
_LOOK_EVERY = 0.005
_ALL_THERE_EVERY = 5.0
_LAST_CHARACTERS = 500
# From <linux/posix-timers.h>: the clock of a process's CPU time has the complement of its id, and these bits.
_PID_BITS, _CPU_CLOCK = 3, 2


@dataclass(frozen=True, slots=True)
class Crowd:
    """All of them, and up."""

    pids: Sequence[int]
    up_seconds: float
    """From the start of the first to the word of the last."""
    cpu_seconds: float
    """Of all, at that moment."""
    errors: Path

    def said(self) -> list[str]:
        """What they have written to their stderr."""
        return self.errors.read_text(errors="replace").splitlines()

    def pss_bytes(self) -> int:
        """What all of them hold in memory now."""
        return sum(pss_bytes(pid) for pid in self.pids)


@contextmanager
def crowd(argvs: Sequence[Sequence[str]], *, env: Mapping[str, str], sign: str) -> Iterator[Crowd]:
    """
    A process of each, for as long as the block lasts; TERM ends them.

    One is up when it has written the line `sign`; each writes it once.
    """
    with tempfile.TemporaryDirectory(prefix="mpirt-crowd-") as name:
        output, errors = Path(name, "output"), Path(name, "errors")
        pids: list[int] = []
        try:
            began = time.monotonic()
            with _appended(output) as out, _appended(errors) as err:
                pids.extend(_spawn(argv, env, out, err) for argv in argvs)
            _wait_until_up(pids, output, errors, f"{sign}\n".encode())
            took = time.monotonic() - began
            yield Crowd(pids, took, sum(cpu_seconds(pid) for pid in pids), errors)
        finally:
            _end(pids)


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, with all its threads; finer than the ticks of /proc/PID/stat."""
    try:
        return time.clock_gettime(~pid << _PID_BITS | _CPU_CLOCK)
    except OSError as error:
        raise Unmeasured(f"process {pid} has ended, or its CPU time is not told: {error}") from error


def pss_bytes(pid: int) -> int:
    """The proportional set size of one process."""
    try:
        return memory.pss_bytes(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError as error:
        raise Unmeasured(f"process {pid} can't be looked at while it runs: {error}") from error


def _spawn(argv: Sequence[str], env: Mapping[str, str], output: int, errors: int) -> int:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, errors, 2),
    ]
    # Python ignores SIGPIPE, and what is ignored is inherited.
    return os.posix_spawn(
        argv[0], list(argv), env, file_actions=actions, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ]
    )


@contextmanager
def _appended(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        yield fd
    finally:
        os.close(fd)


def _wait_until_up(pids: Sequence[int], output: Path, errors: Path, line: bytes) -> None:
    until = time.monotonic() + _UP_WITHIN
    look_for_all = time.monotonic() + _ALL_THERE_EVERY
    count = 0
    with output.open("rb") as said:
        while (count := count + said.read().count(line)) < len(pids):
            now = time.monotonic()
            gone = [pid for pid in pids if _has_ended(pid)] if now >= look_for_all else []
            if gone or now >= until:
                why = errors.read_text(errors="replace")[-_LAST_CHARACTERS:].strip()
                raise Unmeasured(
                    f"{count} of {len(pids)} are up, {len(gone)} have ended: {why or 'they said nothing'}"
                )
            look_for_all = now + _ALL_THERE_EVERY if now >= look_for_all else look_for_all
            time.sleep(_LOOK_EVERY)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(pids: Sequence[int]) -> None:
    """TERM for all, and KILL for who does not listen."""
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + _ENDED_WITHIN
    while any(not _has_ended(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
