"""
Programs, run and accounted for: one to its end, or many that are held at once.

Owns: the start, the clock and the account, and that no process is left. Must not know what the programs are.

Thousands of programs can't have a descriptor of ours each: all of a crowd write to the same two files, whose lines
are counted.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from benchmarks.frame import Unmeasured

MIB = 1 << 20

_ENDS_WITHIN = 300.0
_UP_WITHIN = 900.0
_ENDED_WITHIN = 120.0
_LOOK_EVERY = 0.005
_CHECK_EVERY = 5.0
_LAST_CHARACTERS = 500
# From <linux/posix-timers.h>: the clock of a process's CPU time has the complement of its id, and these bits.
_PID_BITS, _CPU_CLOCK = 3, 2


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took. CPU time is that of all processes of the run that it has waited for."""

    wall_seconds: float
    cpu_seconds: float
    bytes: int
    """How many it wrote."""


def run(argv: Sequence[str], *, env: Mapping[str, str], feed: int = 0) -> Cost:
    """
    Run a program to its end; so many MiB go to its stdin.

    Any end but success is not what was to be measured. The near ends of the pipes cost little: output is spliced
    into /dev/null, input is one buffer over and over.
    """
    with tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        stdin = subprocess.PIPE if feed else subprocess.DEVNULL
        with subprocess.Popen(
            argv, bufsize=0, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, env=env
        ) as process:
            watchdog = threading.Timer(_ENDS_WITHIN, process.kill)
            watchdog.start()
            try:
                if process.stdin is not None:
                    _feed(process.stdin, feed)
                assert process.stdout is not None
                count = _drained(process.stdout.fileno())
                _, status, usage = os.wait4(process.pid, 0)
                wall = time.monotonic() - began
                process.returncode = os.waitstatus_to_exitcode(status)
            finally:
                watchdog.cancel()
                process.kill()
        if process.returncode != 0:
            errors.seek(0)
            raise Unmeasured(f"{Path(argv[0]).name} ended with {process.returncode}: {_end_of(errors.read())}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, count)


@dataclass(frozen=True, slots=True)
class Crowd:
    """All programs of a crowd, when the last is up."""

    programs: Sequence[subprocess.Popen[bytes]]
    up_seconds: float
    """From the start of the first to the line of the last."""
    cpu_seconds: float
    """Of all, at that moment."""
    errors: Path

    def messages(self) -> list[str]:
        """What they have written to their stderr."""
        return self.errors.read_text(errors="replace").splitlines()

    def pss_bytes(self) -> int:
        """What all of them hold in memory now."""
        return sum(pss_bytes(program.pid) for program in self.programs)

    def codes(self) -> Counter[int]:
        """How they end by themselves: how many with which exit code."""
        until = time.monotonic() + _ENDS_WITHIN
        try:
            return Counter(program.wait(max(0.0, until - time.monotonic())) for program in self.programs)
        except subprocess.TimeoutExpired as error:
            raise Unmeasured(f"some programs have not ended: {_end_of(self.errors.read_bytes())}") from error


@contextmanager
def crowd(argvs: Sequence[Sequence[str]], *, env: Mapping[str, str], sign: str) -> Iterator[Crowd]:
    """
    A process of each, for as long as the block lasts; TERM ends them.

    One is up when it has written the line `sign`; each writes it once.
    """
    with tempfile.TemporaryDirectory(prefix="mpirt-crowd-") as name:
        output, errors = Path(name, "output"), Path(name, "errors")
        programs: list[subprocess.Popen[bytes]] = []
        try:
            began = time.monotonic()
            # With close_fds Python would fork, which takes longer.
            with output.open("ab") as out, errors.open("ab") as err:
                programs.extend(
                    subprocess.Popen(
                        argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, close_fds=False
                    )
                    for argv in argvs
                )
            _wait_until_up(programs, output, errors, f"{sign}\n".encode())
            took = time.monotonic() - began
            yield Crowd(programs, took, sum(cpu_seconds(program.pid) for program in programs), errors)
        finally:
            _end(programs)


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, with all its threads; finer than the ticks of /proc/PID/stat."""
    try:
        return time.clock_gettime(~pid << _PID_BITS | _CPU_CLOCK)
    except OSError as error:
        raise Unmeasured(f"the CPU time of process {pid} can't be read: {error}") from error


def pss_bytes(pid: int) -> int:
    """The proportional set size of one process, in which a shared page counts by its share."""
    try:
        return int(psutil.Process(pid).memory_full_info().pss)
    except psutil.Error as error:
        raise Unmeasured(f"the memory of process {pid} can't be read: {error}") from error


def _feed(stdin: IO[bytes], mebibytes: int) -> None:
    """A program that closes its stdin earlier says why by its exit code."""
    block = bytes(MIB)
    with suppress(BrokenPipeError), stdin:
        for _ in range(mebibytes):
            view = memoryview(block)
            while view:
                view = view[os.write(stdin.fileno(), view) :]


def _drained(source: int) -> int:
    """How many bytes came, when there are no more."""
    with Path(os.devnull).open("wb") as sink:
        return sum(iter(lambda: os.splice(source, sink.fileno(), MIB), 0))


def _wait_until_up(programs: Sequence[subprocess.Popen[bytes]], output: Path, errors: Path, line: bytes) -> None:
    until = time.monotonic() + _UP_WITHIN
    check_at, count = time.monotonic() + _CHECK_EVERY, 0
    with output.open("rb") as written:
        while (count := count + written.read().count(line)) < len(programs):
            if (now := time.monotonic()) >= check_at:
                check_at = now + _CHECK_EVERY
                ended = sum(program.poll() is not None for program in programs)
                if ended or now >= until:
                    why = _end_of(errors.read_bytes())
                    raise Unmeasured(f"{count} of {len(programs)} are up, {ended} have ended: {why}")
            time.sleep(_LOOK_EVERY)


def _end(programs: Sequence[subprocess.Popen[bytes]]) -> None:
    """TERM for all, and KILL for those that ignore it."""
    for program in programs:
        program.terminate()
    until = time.monotonic() + _ENDED_WITHIN
    for program in programs:
        try:
            program.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def _end_of(output: bytes) -> str:
    return output.decode(errors="replace").strip()[-_LAST_CHARACTERS:] or "it wrote nothing"
