"""
Runs in turn: what is compared is measured back to back.

Owns: the order. Must not know what a run is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def alternate(
    runs: int, ours: Callable[[], Result], theirs: Callable[[], Result]
) -> tuple[list[Result], list[Result]]:
    """Each once to warm up, which counts for nothing; then so many pairs."""
    ours()
    theirs()
    return in_turn(runs, ours, theirs)


def in_turn(
    runs: int, ours: Callable[[], Result], theirs: Callable[[], Result]
) -> tuple[list[Result], list[Result]]:
    """So many pairs, ours first, and what each run gave."""
    pairs = [(ours(), theirs()) for _ in range(runs)]
    return [first for first, _ in pairs], [second for _, second in pairs]
