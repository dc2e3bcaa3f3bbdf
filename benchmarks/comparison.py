"""
Two programs compared in one quantity: medians, ratios, differences, and the bound that ours was given.

Owns: the arithmetic. Must not know how anything was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median


class By(Enum):
    """The figure that counts, and that the bound is for."""

    PAIRS = "the median of each pair's ratio"
    """For what changes with the load of the machine: only two runs compare that were made back to back."""
    MEDIANS = "the ratio of medians"
    """For what load does not change."""
    DIFFERENCE = "the difference of medians"
    """For what is counted, and theirs may have none of."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that both programs have in some amount."""

    key: str
    what: str
    unit: str
    bound: float
    by: By


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity's samples of ours and of theirs, in the quantity's unit; of a pair, each has the same place."""

    quantity: Quantity
    ours: Sequence[float]
    theirs: Sequence[float]

    def __post_init__(self) -> None:
        if not self.ours or not self.theirs:
            raise ValueError(f"{self.quantity.key}: no samples")
        if self.quantity.by is not By.DIFFERENCE and min(self.theirs) <= 0:
            raise ValueError(f"{self.quantity.key}: a sample of {min(self.theirs):g} has no ratio to it")
        if self.quantity.by is By.PAIRS and len(self.ours) != len(self.theirs):
            raise ValueError(f"{self.quantity.key}: {len(self.ours)} and {len(self.theirs)} samples are no pairs")

    @property
    def of_medians(self) -> float | None:
        """The ratio of medians."""
        if self.quantity.by is By.DIFFERENCE:
            return None
        return median(self.ours) / median(self.theirs)

    @property
    def of_pairs(self) -> float | None:
        """The median of each pair's ratio."""
        if self.quantity.by is not By.PAIRS:
            return None
        return median(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))

    @property
    def figure(self) -> float:
        """The one that counts."""
        counts = self.of_medians if self.of_pairs is None else self.of_pairs
        return median(self.ours) - median(self.theirs) if counts is None else counts

    @property
    def is_met(self) -> bool:
        return self.figure <= self.quantity.bound
