"""Waiting for a condition with a deadline: the only place of the test cluster that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.kube.errors import ClusterError

# A question is mostly a kubectl, which takes a processor for a tenth of a second. So a pause is longer than the
# question took, and on a busy machine it is asked less often.
_STEP, _LONGEST_STEP = 0.05, 1.0
_PAUSE_PER_QUESTION = 2.0

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
    asked = time.monotonic()
    deadline = asked + within
    while not (answer := question()):
        now = time.monotonic()
        if now > deadline:
            found = "" if instead is None else f"; there is {instead()}"
            raise ClusterError(f"waited {within:g} s for {what}{found}", remedy=remedy)
        time.sleep(min(max(_STEP, (now - asked) * _PAUSE_PER_QUESTION), _LONGEST_STEP))
        asked = time.monotonic()
    return answer
