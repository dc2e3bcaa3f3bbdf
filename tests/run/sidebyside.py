"""
A layer in two parts: tests that don't disturb each other, several at a time, and then those that run alone.

The tests of a file stay in one process and in their order, so that its fixtures are made once. Files are started
in the order in which pytest finds them, so that those with the fixtures of one package follow each other.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.run import selection
from tests.run.processes import background, call
from tests.run.records import NO_TESTS, OK
from tests.run.selection import Part

AT_ONCE = 4
"""More than processors: tests of a cluster wait for pods most of their time."""

_WITH_ANOTHER = 3
"""Of each of two folders."""


def run(
    folder: str, words: Sequence[str], variables: dict[str, str], *, at_once: int = AT_ONCE, meanwhile: str = ""
) -> int:
    """
    Run both parts of a folder, with words for pytest. A part that breaks off is the last one.

    `meanwhile` is another folder, all of whose tests run side by side during the first part, and are shown when
    they have ended. Those that run alone have nothing beside them.
    """
    if meanwhile:
        how = _distributed(min(at_once, _WITH_ANOTHER))
        print(f"==> {meanwhile}, meanwhile")
        with background([*_pytest(meanwhile), *how], {**variables, selection.PART: ""}) as other:
            code = _part(folder, Part.SIDE_BY_SIDE, (*how, *words), variables)
        code = _worst(code, other.code)
    else:
        code = _part(folder, Part.SIDE_BY_SIDE, (*_distributed(at_once), *words), variables)
    if code not in (OK, NO_TESTS):
        return code
    return _worst(code, _part(folder, Part.ALONE, words, variables))


def _part(folder: str, part: Part, words: Sequence[str], variables: dict[str, str]) -> int:
    print(f"==> {folder}, {part.value}")
    return call([*_pytest(folder), *words], {**variables, selection.PART: part.value})


def _pytest(folder: str) -> list[str]:
    return [sys.executable, "-m", "pytest", folder, "-p", selection.MODULE]


def _worst(*codes: int) -> int:
    """No tests in one of them is fine."""
    return next((code for code in codes if code not in (OK, NO_TESTS)), min(codes))


def _distributed(at_once: int) -> tuple[str, ...]:
    # A crashed worker makes the run red, so it is not replaced.
    return f"-n{at_once}", "--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=0"
