"""
Two programs compared in one quantity: medians, ratios, and the bound that ours was given.

Owns: the arithmetic. Must not know how anything was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Quantity:
    """
    Something that both programs have in some amount.

    `paired`: it changes with the load of the machine, so that only two runs compare that were made back to back.
    """

    key: str
    what: str
    unit: str
    bound: float
    paired: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity's samples of ours and of theirs, in the quantity's unit; of a pair, each has the same place."""

    quantity: Quantity
    ours: Sequence[float]
    theirs: Sequence[float]

    def __post_init__(self) -> None:
        if not self.ours or not self.theirs:
            raise ValueError(f"{self.quantity.key}: no samples")
        if min(self.theirs) <= 0:
            raise ValueError(f"{self.quantity.key}: a sample of {min(self.theirs):g} has no ratio to it")
        if self.quantity.paired and len(self.ours) != len(self.theirs):
            raise ValueError(f"{self.quantity.key}: {len(self.ours)} and {len(self.theirs)} samples are no pairs")

    @property
    def of_medians(self) -> float:
        return median(self.ours) / median(self.theirs)

    @property
    def of_pairs(self) -> float | None:
        """The median of each pair's ratio."""
        if not self.quantity.paired:
            return None
        return median(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        """The one that counts."""
        return self.of_medians if self.of_pairs is None else self.of_pairs

    @property
    def is_met(self) -> bool:
        return self.ratio <= self.quantity.bound
