"""
A layer in three parts. Two run at once: tests that don't disturb each other, several at a time, and tests that
break their cluster, each on one that it has for itself. Then, with nothing beside them, those that judge a speed.

The tests of a file stay in one process and in their order, so that its fixtures are made once. Files are started
in the order in which pytest finds them, so that those with the fixtures of one package follow each other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tests.kube.paths import CLUSTER
from tests.run import selection
from tests.run.processes import background, call
from tests.run.records import NO_TESTS, OK
from tests.run.selection import Part

AT_ONCE = 4
"""More than processors: tests of a cluster wait for pods most of their time."""

_WITH_ANOTHER = 3
"""Of each of two folders."""

_FOR_THEMSELVES = (2, 3)
"""The clusters of those that break theirs; the first one is for all the others."""

_YOURS = "MPIRT_TEST_KUBECONFIG"
"""The variable that names somebody's cluster, who has no others."""


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
    folder: str, words: Sequence[str], variables: Mapping[str, str], *, at_once: int = AT_ONCE, meanwhile: str = ""
) -> int:
    """
    Run all parts of a folder, with words for pytest. One that breaks off is the last one.

    `meanwhile` is another folder, all of whose tests run side by side during the first parts. What runs beside the
    first part is shown when it has ended.
    """
    at_once = min(at_once, _WITH_ANOTHER) if meanwhile else at_once
    together = _Pytest(folder, Part.SIDE_BY_SIDE, (*_distributed(f"-n{at_once}"), *words), variables)
    alone = _Pytest(folder, Part.ALONE, words, variables)
    quiet = _Pytest(folder, Part.QUIET, words, variables)
    beside = []
    if meanwhile:
        beside.append(_Pytest(meanwhile, None, _distributed(f"-n{at_once}"), variables))
    if os.environ.get(_YOURS):
        return _in_turn(_at_once(together, beside), alone, quiet)
    beside.append(_Pytest(folder, Part.ALONE, (*_distributed(*_on_clusters()), *words), variables))
    return _in_turn(_at_once(together, beside), quiet)


def _at_once(first: _Pytest, others: Sequence[_Pytest]) -> int:
    with ExitStack() as beside:
        for other in others:
            print(f"==> {other.name}, meanwhile")
        started = [beside.enter_context(background(other.argv, other.environment)) for other in others]
        code = _call(first)
    return _worst(code, *(one.code for one in started))


def _in_turn(code: int, *rest: _Pytest) -> int:
    for one in rest:
        if code not in (OK, NO_TESTS):
            break
        code = _worst(code, _call(one))
    return code


def _call(one: _Pytest) -> int:
    print(f"==> {one.name}")
    return call(one.argv, one.environment)


def _worst(*codes: int) -> int:
    """No tests in one of them is fine."""
    return next((code for code in codes if code not in (OK, NO_TESTS)), min(codes))


def _distributed(*processes: str) -> tuple[str, ...]:
    # A crashed worker makes the run red, so it is not replaced.
    return *processes, "--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=0"


def _on_clusters() -> list[str]:
    """A process of pytest for each of them."""
    return [f"--tx=popen//env:{CLUSTER}={number}" for number in _FOR_THEMSELVES]
