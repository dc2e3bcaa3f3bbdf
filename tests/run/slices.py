"""
The slices of the full tier: what a run does in turn beyond the merge tier, so that all of it is run now and then.

Owns: which slice is next. The longest is as long as a quarter of an hour.
"""

from __future__ import annotations

from tests.run.tiers import Choice, Tier

SHARES = 4
"""Of what the merge tier leaves out. The fifth slice is the oldest Kubernetes."""

BEGINS_WITHIN = 3600
"""Seconds of a run. Where everything was built anew, there may be no time left."""


def following(number: int, merge: Choice) -> tuple[str, Choice | None]:
    """The target of the Makefile, and the tier to make it in, that a number of commits comes to."""
    share = number % (SHARES + 1)
    if share == SHARES:
        return "oldest", None
    return "rest", Choice(Tier.REST, merge.seed, merge.tools, share + 1, SHARES)
