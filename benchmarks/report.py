"""
What a benchmark prints: a table for people, and one line of JSON for programs.

Owns: the words and the columns. Decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.comparison import By, Comparison
from testbed.kube.status import table

_LEGEND = """\
Shown are medians, with minimum and maximum in brackets. The ratio with a star counts: that of pairs (the median of
each pair's ratio) where the load of the machine changes the quantity, for both runs of a pair meet the same load;
that of medians where load does not change it. A figure with a plus sign is a difference."""


def rendered(comparisons: Sequence[Comparison], *, ours: str, theirs: str) -> str:
    """The table, its heading and its legend."""
    heading = ["MEASURED", ours.upper(), theirs.upper(), "OF MEDIANS", "OF PAIRS", "BOUND", "MET"]
    return "\n".join([*table([heading, *map(_row, comparisons)]), "", _LEGEND])


def figures(comparisons: Sequence[Comparison]) -> Mapping[str, float]:
    """What counts, by key."""
    return {each.quantity.key: each.figure for each in comparisons}


def json_line(figures: Mapping[str, float]) -> str:
    return json.dumps({key: round(value, 4) for key, value in figures.items()})


def _row(comparison: Comparison) -> list[str]:
    quantity = comparison.quantity
    sign = "+" if quantity.by is By.DIFFERENCE else ""
    return [
        f"{quantity.what}, {quantity.unit}",
        _spread(comparison.ours),
        _spread(comparison.theirs),
        *_figures(comparison),
        f"<= {sign}{quantity.bound:.2f}",
        "yes" if comparison.is_met else "no",
    ]


def _figures(comparison: Comparison) -> tuple[str, str]:
    """The columns of medians and of pairs."""
    if comparison.of_medians is None:
        return f"{comparison.figure:+.2f}*", "-"
    if comparison.of_pairs is None:
        return f"{comparison.of_medians:.3f}*", "-"
    return f"{comparison.of_medians:.3f}", f"{comparison.of_pairs:.3f}*"


def _spread(samples: Sequence[float]) -> str:
    return f"{median(samples):.1f} ({min(samples):.1f}-{max(samples):.1f})"
