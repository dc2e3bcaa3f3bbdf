"""
The processes of a run: targets of the Makefile, tests that are run once more, and the parts of a layer.

Owns: starting them, waiting for them, and where their output goes. What their ends mean is for verdict.

A layer has parts that run at once: tests that don't disturb each other; one after the other, on another cluster,
tests that break theirs; and other folders. Then, with nothing beside them, those that judge a speed. More
processes would not be faster: on a busy machine tests poll for longer, time out and retry, so that each of them
needs more CPU time. The tests of a file stay in one process and in their order, so that its fixtures are made
once. Files are started in the order in which pytest finds them, so that those with the fixtures of one package
follow each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from testbed.kube.paths import CLUSTER, OWN_CLUSTER
from tests.run import recorder, selection
from tests.run.records import NO_TESTS, OK
from tests.run.selection import Part
from tests.run.summary import FIRST, SECOND
from tests.run.tiers import Choice
from tests.run.verdict import Outcome, Result, Stage

# No workers, whatever the options of the first run say; and what a test prints is shown even if it passes.
_BY_ITSELF = ("-n0", "-rA")

AT_ONCE = 2
"""Processes for a folder: tests of a cluster wait for pods half of their time."""

_OF_FAULTS = "2"
"""The cluster of those that break theirs; the first one is for all the others."""


def make(target: str, folder: Path, choice: Choice | None, *, log: IO[bytes] | None = None) -> Stage:
    """Make a target in a tier. Its pytest processes leave their records in the folder, its output in the log."""
    began = time.monotonic()
    variables = {**recorder.variables(folder, os.environ), **selection.variables(choice)}
    code = call(["make", "--no-print-directory", target], variables, log)
    return Stage(target, time.monotonic() - began, code, recorder.read_all(folder))


def run_again(tests: Sequence[Result], folder: Path) -> set[str]:
    """Run tests of one file in a process, which leaves its log in the folder. Returns those that passed."""
    records, names = folder / "records", [test.name for test in tests]
    argv = [sys.executable, "-m", "pytest", *tests[0].options, *_BY_ITSELF, *names]
    with (folder / SECOND).open("wb") as log:
        variables = {**recorder.variables(records, os.environ), **selection.variables(None), selection.PART: ""}
        code = call(argv, variables, log)
    stage = Stage(names[0], 0.0, code, recorder.read_all(records))
    passed = {result.name for result in stage.results if result.outcome is Outcome.PASSED}
    return set() if stage.problems else passed.intersection(names)


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


@dataclass(frozen=True)
class _Pytest:
    """One of them: some tests of a folder, with words for pytest."""

    folder: str
    part: Part | None
    words: Sequence[str]
    variables: Mapping[str, str]
    gives_way: bool = False
    """Whether others come first where there is too little CPU time."""

    @property
    def name(self) -> str:
        return self.folder if self.part is None else f"{self.folder}, {self.part.value}"

    @property
    def argv(self) -> list[str]:
        first = ("nice",) if self.gives_way else ()
        return [*first, sys.executable, "-m", "pytest", self.folder, "-p", selection.MODULE, *self.words]

    @property
    def environment(self) -> dict[str, str]:
        return {**self.variables, selection.PART: "" if self.part is None else self.part.value}


def run_layer(
    folder: str,
    words: Sequence[str],
    variables: Mapping[str, str],
    *,
    at_once: int = AT_ONCE,
    beside: Sequence[str] = (),
) -> int:
    """
    Run all parts of a folder, with words for pytest, and all tests of other folders beside it.

    One that breaks off is the last one. What runs beside the folder's own is shown when it has ended. The other
    folders give way: their tests compute, and have two processes each; the folder's own wait, and end last.
    """
    together = _Pytest(folder, Part.SIDE_BY_SIDE, (*_distributed(at_once), *words), variables)
    others = [_Pytest(other, None, _distributed(AT_ONCE), variables, gives_way=True) for other in beside]
    quiet = _Pytest(folder, Part.QUIET, words, variables)
    if os.environ.get(OWN_CLUSTER):
        return _in_turn(together, *others, _Pytest(folder, Part.ALONE, words, variables), quiet)
    alone = _Pytest(folder, Part.ALONE, (*words, "-n0"), {**variables, CLUSTER: _OF_FAULTS})
    meanwhile = []
    with ExitStack() as stack:
        for one in (alone, *others):
            print(f"==> {one.name}, meanwhile")
            meanwhile.append(stack.enter_context(background(one.argv, one.environment)))
        code = _in_turn(together)
    code = _worst(code, *(each.code for each in meanwhile))
    return code if _is_over(code) else _worst(code, _in_turn(quiet))


def _in_turn(*several: _Pytest) -> int:
    code = NO_TESTS
    for one in several:
        code = _worst(code, _call(one))
        if _is_over(code):
            break
    return code


def _is_over(code: int) -> bool:
    """Whether a pytest has broken off."""
    return code not in (OK, NO_TESTS)


def _call(one: _Pytest) -> int:
    print(f"==> {one.name}")
    return call(one.argv, one.environment)


def _worst(*codes: int) -> int:
    """No tests in one of them is fine."""
    return next(filter(_is_over, codes), min(codes))


def _distributed(processes: int) -> tuple[str, ...]:
    # A crashed worker makes the run red, so it is not replaced.
    return f"-n{processes}", "--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=0"
