"""
What flows through a program: when its first byte comes, and how long many bytes take, either way.

Owns: the pipes at its ends, and that a run counts only if all bytes came through. Must not know what the program
is.

The near ends cost little: what comes is spliced into /dev/null, what goes is one buffer over and over.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.measure import Unmeasured

MIB = 1 << 20

_WITHIN = 300.0
_LAST_CHARACTERS = 500


def first_byte_seconds(argv: Sequence[str], *, env: Mapping[str, str]) -> float:
    """From the program's start to the first byte of its output."""
    with _running(argv, env, stdin=subprocess.DEVNULL) as program:
        got = os.read(program.output, 1)
        took = program.seconds()
    if not got:
        raise Unmeasured(f"{program.name} ended without a byte")
    return took


def received_seconds(argv: Sequence[str], mebibytes: int, *, env: Mapping[str, str]) -> float:
    """From the program's start to its end, when it has written so much."""
    with _running(argv, env, stdin=subprocess.DEVNULL) as program:
        count = _drained(program.output)
        program.wait()
        took = program.seconds()
    if count != mebibytes * MIB:
        raise Unmeasured(f"{count} of {mebibytes * MIB} bytes came through {program.name}")
    return took


def sent_seconds(argv: Sequence[str], mebibytes: int, *, env: Mapping[str, str], receipt: str) -> float:
    """From the program's start to its end, when it has taken so much; what it writes is the far side's receipt."""
    with _running(argv, env, stdin=subprocess.PIPE) as program:
        program.feed(mebibytes)
        said = program.rest()
        program.wait()
        took = program.seconds()
    if receipt not in said:
        raise Unmeasured(f"the far side of {program.name} should have said {receipt!r} but said: {said.strip()}")
    return took


class _Running:
    """A program with pipes at its ends, and a clock that runs since its start."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, began: float) -> None:
        assert process.stdout is not None
        self.output = process.stdout.fileno()
        self.wait = process.wait
        self.name = name
        self._process = process
        self._began = began

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def feed(self, mebibytes: int) -> None:
        """Write so much to its stdin, and end that. A program that closes it earlier has its reason to tell."""
        stdin = self._process.stdin
        assert stdin is not None
        block = bytes(MIB)
        with suppress(BrokenPipeError), stdin:
            for _ in range(mebibytes):
                view = memoryview(block)
                while view:
                    view = view[os.write(stdin.fileno(), view) :]

    def rest(self) -> str:
        """All that it still writes."""
        assert self._process.stdout is not None
        return self._process.stdout.read().decode(errors="replace")


@contextmanager
def _running(argv: Sequence[str], env: Mapping[str, str], *, stdin: int) -> Iterator[_Running]:
    """Start a program. One that hangs is killed, and any end but success is not what was to be measured."""
    with tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        with subprocess.Popen(
            argv, bufsize=0, stdin=stdin, stdout=subprocess.PIPE, stderr=errors, env=env
        ) as process:
            watchdog = threading.Timer(_WITHIN, process.kill)
            watchdog.start()
            running = _Running(process, Path(argv[0]).name, began)
            try:
                yield running
                code = process.wait()
            finally:
                watchdog.cancel()
                process.kill()
        if code != 0:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
            raise Unmeasured(f"{running.name} ended with {code}: {said[-_LAST_CHARACTERS:] or 'it said nothing'}")


def _drained(source: int) -> int:
    """How many bytes came, when there are no more."""
    count = 0
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        while moved := os.splice(source, sink, MIB):
            count += moved
    finally:
        os.close(sink)
    return count
