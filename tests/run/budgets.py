"""
How long the parts of a run may last on two processors, and what is said of one that lasts longer.

Owns: the budgets, and which tests have grown. A machine may be slow, so a budget makes no run red.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.run.verdict import Stage

CHECK, MERGE, SLICE, FULL = "make check", "merge tier", "slice", "full tier"
BUDGETS = {CHECK: 60.0, MERGE: 1200.0, SLICE: 900.0, FULL: 5400.0}
"""In seconds."""

_OF_TARGETS = {"check": CHECK, "rest": SLICE, "oldest": SLICE}
_GROWN = 5
# Less than this is the machine's mood.
_BY_SECONDS, _BY_RATIO = 3.0, 1.5


def spent(stages: Iterable[Stage], *, is_full: bool) -> dict[str, float]:
    """What each budget was charged."""
    found: dict[str, float] = {}
    for stage in stages:
        budget = FULL if is_full else _OF_TARGETS.get(stage.name, MERGE)
        found[budget] = found.get(budget, 0.0) + stage.seconds
    return found


def lines(stages: Sequence[Stage], known: Mapping[str, float], *, is_full: bool) -> Iterator[str]:
    """What each of them took of its budget, and if one took more, which tests last longer than was known."""
    over = False
    for budget, seconds in spent(stages, is_full=is_full).items():
        most = BUDGETS[budget]
        more = f", {seconds - most:.0f} s more than it may" if seconds > most else ""
        over = over or bool(more)
        yield f"{seconds:9.1f}  {budget}, of {most:.0f}{more}"
    if over:
        yield from (
            f"           grown from {then:.0f} to {now:.0f} s: {test}" for test, then, now in _grown(stages, known)
        )


def _grown(stages: Iterable[Stage], known: Mapping[str, float]) -> list[tuple[str, float, float]]:
    took = {test.name: test.seconds for stage in stages for test in stage.results}
    found = [
        (test, known.get(test, 0.0), now)
        for test, now in took.items()
        if now > known.get(test, 0.0) + _BY_SECONDS and now > known.get(test, 0.0) * _BY_RATIO
    ]
    return sorted(found, key=lambda grown: grown[1] - grown[2])[:_GROWN]
