"""
What runs of two programs cost, quantity by quantity.

Owns: the units. Must not know what was run, nor the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.comparison import Comparison, Quantity
from benchmarks.measure import Cost

MB = 1e6

_MS = 1e-3


def compared(
    ours: Sequence[Cost], theirs: Sequence[Cost], quantities: tuple[Quantity, Quantity, Quantity]
) -> list[Comparison]:
    """Wall time, CPU time and peak memory."""
    wall, cpu, peak = quantities
    return [
        wall_compared(ours, theirs, wall),
        Comparison(cpu, [cost.cpu_seconds / _MS for cost in ours], [cost.cpu_seconds / _MS for cost in theirs]),
        Comparison(peak, [cost.peak_bytes / MB for cost in ours], [cost.peak_bytes / MB for cost in theirs]),
    ]


def wall_compared(ours: Sequence[Cost], theirs: Sequence[Cost], quantity: Quantity) -> Comparison:
    """Wall time alone."""
    return Comparison(
        quantity, [cost.wall_seconds / _MS for cost in ours], [cost.wall_seconds / _MS for cost in theirs]
    )
