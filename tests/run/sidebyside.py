"""
A layer in two parts: tests that don't disturb each other, several at a time, and then those that run alone.

The tests of a file stay in one process and in their order, so that its fixtures are made once. Files are started
in the order in which pytest finds them, so that those with the fixtures of one package follow each other.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.run import selection
from tests.run.processes import call
from tests.run.records import NO_TESTS, OK
from tests.run.selection import Part

AT_ONCE = 3
"""More than processors: tests of a cluster wait for pods most of their time."""


def run(folder: str, words: Sequence[str], variables: dict[str, str], *, at_once: int = AT_ONCE) -> int:
    """Run both parts of a folder, with words for pytest. A part that breaks off is the last one."""
    codes = []
    for part in Part:
        how = _distributed(at_once) if part is Part.SIDE_BY_SIDE else ()
        argv = [sys.executable, "-m", "pytest", folder, "-p", selection.MODULE, *how, *words]
        print(f"==> {folder}, {part.value}")
        codes.append(call(argv, {**variables, selection.PART: part.value}))
        if codes[-1] not in (OK, NO_TESTS):
            return codes[-1]
    return min(codes)


def _distributed(at_once: int) -> tuple[str, ...]:
    # A crashed worker makes the run red, so it is not replaced.
    return f"-n{at_once}", "--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=0"
