"""The order of runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from benchmarks import pairs


def test_each_warms_up_and_then_they_take_turns() -> None:
    order: list[str] = []

    pairs.alternate(2, lambda: order.append("ours"), lambda: order.append("theirs"))

    assert order == ["ours", "theirs", "ours", "theirs", "ours", "theirs"]


def test_the_results_are_apart_and_in_step_and_without_the_first_ones() -> None:
    ours, theirs = _numbers(0), _numbers(100)

    assert pairs.alternate(3, ours, theirs) == ([1, 2, 3], [101, 102, 103])


def _numbers(start: int) -> Callable[[], int]:
    numbers = count(start)
    return lambda: next(numbers)
