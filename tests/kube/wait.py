"""Waiting for a condition with a deadline: the only place of the test cluster that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.kube.errors import ClusterError

_STEP = 0.05

Answer = TypeVar("Answer")


def until(
    question: Callable[[], Answer],
    *,
    within: float,
    what: str,
    instead: Callable[[], object] | None = None,
    remedy: str = "",
) -> Answer:
    """
    Ask until the answer is true, and return it; after `within` seconds raise ClusterError.

    Its message tells what there is `instead` at that moment.
    """
    deadline = time.monotonic() + within
    while not (answer := question()):
        if time.monotonic() > deadline:
            found = "" if instead is None else f"; there is {instead()}"
            raise ClusterError(f"waited {within:g} s for {what}{found}", remedy=remedy)
        time.sleep(_STEP)
    return answer
