"""How much of the same a test does: less in the tier that every change must pass."""

from __future__ import annotations

import os

from tests.run.selection import TIER
from tests.run.tiers import Tier


def of(*, merge: int, full: int) -> int:
    """The number for the tier that runs; that of the full tier where a test is run by hand."""
    return merge if os.environ.get(TIER) == Tier.MERGE.value else full
