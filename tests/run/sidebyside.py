"""
A layer in three parts. Two run at once: tests that don't disturb each other, several at a time, and tests that
break their cluster, each on one that it has for itself. Then, with nothing beside them, those that judge a speed.

More at once would not be sooner: tests that wait for a processor ask, give up and begin anew instead.

The tests of a file stay in one process and in their order, so that its fixtures are made once. Files are started
in the order in which pytest finds them, so that those with the fixtures of one package follow each other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.kube.paths import CLUSTER, OWN_CLUSTER
from tests.run import selection
from tests.run.processes import background, call
from tests.run.records import NO_TESTS, OK
from tests.run.selection import Part

AT_ONCE = 3
"""More than processors: tests of a cluster wait for pods most of their time."""

_FOR_THEMSELVES = (2, 3)
"""The clusters of those that break theirs; the first one is for all the others."""


@dataclass(frozen=True)
class _Pytest:
    """One of them: some tests of a folder, with words for pytest."""

    folder: str
    part: Part | None
    words: Sequence[str]
    variables: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.folder if self.part is None else f"{self.folder}, {self.part.value}"

    @property
    def argv(self) -> list[str]:
        return [sys.executable, "-m", "pytest", self.folder, "-p", selection.MODULE, *self.words]

    @property
    def environment(self) -> dict[str, str]:
        return {**self.variables, selection.PART: "" if self.part is None else self.part.value}


def run(
    folder: str, words: Sequence[str], variables: Mapping[str, str], *, at_once: int = AT_ONCE, then: str = ""
) -> int:
    """
    Run all parts of a folder, with words for pytest. One that breaks off is the last one.

    `then` is another folder, all of whose tests run side by side after the folder's own that do. What runs beside
    them is shown when it has ended.
    """
    together = [_Pytest(folder, Part.SIDE_BY_SIDE, (*_distributed(f"-n{at_once}"), *words), variables)]
    if then:
        # One more: by then most of those that run beside them have ended.
        together.append(_Pytest(then, None, _distributed(f"-n{at_once + 1}"), variables))
    quiet = _Pytest(folder, Part.QUIET, words, variables)
    if os.environ.get(OWN_CLUSTER):
        return _in_turn(*together, _Pytest(folder, Part.ALONE, words, variables), quiet)
    # With -n0 among the words there is one process, which has the first of these clusters.
    on_its_own = {**variables, CLUSTER: str(_FOR_THEMSELVES[0])}
    alone = _Pytest(folder, Part.ALONE, (*_distributed(*_on_clusters()), *words), on_its_own)
    print(f"==> {alone.name}, meanwhile")
    with background(alone.argv, alone.environment) as beside:
        code = _in_turn(*together)
    code = _worst(code, beside.code)
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


def _distributed(*processes: str) -> tuple[str, ...]:
    # A crashed worker makes the run red, so it is not replaced.
    return *processes, "--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=0"


def _on_clusters() -> list[str]:
    """A process of pytest for each of them."""
    return [f"--tx=popen//env:{CLUSTER}={number}" for number in _FOR_THEMSELVES]
