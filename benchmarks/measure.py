"""
One program, run and accounted for: how long it took, what it cost, how large it grew.

Owns: the start, the clock and the account. Must not know what is measured, nor why.

Linux begins a program's peak memory with the size of the process that it was forked from, whether by fork, vfork
or posix_spawn, and a Python process is larger than much of what it measures. So a shell of one megabyte starts the
program and leaves; the orphan becomes our child, which can be waited for. It stands at a gate until the clock
runs, so that nobody pays for the shell.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks import linux

# Its stdin is the gate, its stdout tells the process id, its stderr is for all that the program writes.
_GATE = 'exec 3<&0; { read -r go <&3 && exec "$@" 3<&-; } </dev/null >&2 & echo $!'

_WITHIN = 120.0
_LAST_CHARACTERS = 500


class Unmeasured(Exception):
    """What could not be measured, and why."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took. CPU time is that of all processes of the run, the peak that of the largest of them."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs; `began` is the moment, by the monotonic clock, when it was let go."""

    argv: Sequence[str]
    pid: int
    handle: int
    output: int
    began: float

    @property
    def name(self) -> str:
        return Path(self.argv[0]).name

    def has_ended(self, *, within: float = 0) -> bool:
        """Whether it ends within so many seconds."""
        end = select.poll()
        end.register(self.handle, select.POLLIN)
        return bool(end.poll(within * 1000))

    def terminate(self) -> None:
        """Ask it to end, by TERM."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGTERM)

    def said(self) -> str:
        """The last of what it wrote, without moving the place where it writes next."""
        size = os.fstat(self.output).st_size
        text = os.pread(self.output, _LAST_CHARACTERS, max(0, size - _LAST_CHARACTERS))
        return text.decode(errors="replace").strip()

    def cost(self, *, within: float = _WITHIN) -> Cost:
        """Wait for its end; any end but success is not what was to be measured."""
        ended = self.has_ended(within=within)
        wall = time.monotonic() - self.began
        if not ended:
            raise Unmeasured(f"{self.name} did not end within {within:g} s")
        _, status, usage = os.wait4(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            raise Unmeasured(f"{self.name} ended with {code}: {self.said() or 'it said nothing'}")
        return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def run(argv: Sequence[str], *, env: Mapping[str, str], within: float = _WITHIN) -> Cost:
    """Run a program to its end."""
    with started(argv, env=env) as program:
        return program.cost(within=within)


@contextmanager
def started(argv: Sequence[str], *, env: Mapping[str, str]) -> Iterator[Program]:
    """Start a program without a stdin; if it still runs at the end of the block, it is killed."""
    with tempfile.TemporaryFile() as output:
        gate, opener = os.pipe()
        try:
            pid = _orphan(argv, env=env, gate=gate, output=output.fileno())
            handle = os.pidfd_open(pid)
            began = time.monotonic()
            os.write(opener, b"go\n")
        finally:
            os.close(gate)
            os.close(opener)
        try:
            yield Program(argv, pid, handle, output.fileno(), began)
        finally:
            # One that was waited for has no process left to end.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                os.waitpid(pid, 0)
            os.close(handle)


def _orphan(argv: Sequence[str], *, env: Mapping[str, str], gate: int, output: int) -> int:
    """The process id of a child of ours that a small shell has made."""
    with linux.taking_orphans():
        shell = subprocess.run(
            ["/bin/sh", "-c", _GATE, "gate", *argv],
            check=True,
            stdin=gate,
            stdout=subprocess.PIPE,
            stderr=output,
            env=env,
        )
    return int(shell.stdout)
