"""
The processes of a run: targets of the Makefile, and tests that are run once more.

Owns: starting them, waiting for them, and where their output goes. What their ends mean is for verdict.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.run import recorder, selection
from tests.run.summary import FIRST, SECOND
from tests.run.tiers import Choice
from tests.run.verdict import Outcome, Result, Stage

# No workers, whatever the options of the first run say; and what a test prints is shown even if it passes.
_BY_ITSELF = ("-n0", "-rA")


def make(target: str, folder: Path, choice: Choice | None, *, log: IO[bytes] | None = None) -> Stage:
    """Make a target in a tier. Its pytest processes leave their records in the folder, its output in the log."""
    began = time.monotonic()
    variables = {**recorder.variables(folder, os.environ), **selection.variables(choice)}
    code = call(["make", "--no-print-directory", target], variables, log)
    return Stage(target, time.monotonic() - began, code, recorder.read_all(folder))


def run_again(test: Result, folder: Path) -> bool:
    """Run one test in a process of its own, which leaves its log in the folder. Returns whether it passed."""
    records = folder / "records"
    argv = [sys.executable, "-m", "pytest", *test.options, *_BY_ITSELF, test.name]
    with (folder / SECOND).open("wb") as log:
        variables = {**recorder.variables(records, os.environ), **selection.variables(None), selection.PART: ""}
        code = call(argv, variables, log)
    stage = Stage(test.name, 0.0, code, recorder.read_all(records))
    passed = [result.outcome for result in stage.results if result.name == test.name] == [Outcome.PASSED]
    return passed and not stage.problems


def keep_log(test: Result, folder: Path) -> None:
    """Keep why a test failed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FIRST).write_text(test.text + "\n", encoding="utf-8")


def call(argv: Sequence[str], variables: Mapping[str, str], log: IO[bytes] | None = None) -> int:
    """The exit code of a program. An interrupt from the terminal reaches both, and the program ends first."""
    sys.stdout.flush()
    # Descriptors stay open: a make below another one shares its job slots through them.
    process = subprocess.Popen(
        argv,
        env={**os.environ, **variables},
        stdout=log,
        stderr=None if log is None else subprocess.STDOUT,
        close_fds=False,
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise


@dataclass
class Background:
    """A program beside another one."""

    code: int = 0
    """Its exit code, once it has ended."""


@contextmanager
def background(argv: Sequence[str], variables: Mapping[str, str]) -> Iterator[Background]:
    """
    Run a program during the block, wait for its end, and show what it has said.

    Whatever ends the block early ends the program, too.
    """
    found = Background()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            argv, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield found
            found.code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        finally:
            log.seek(0)
            print(log.read().decode(errors="replace"), end="", flush=True)
