"""
A pytest plugin that leaves out the tests of another tier, and of the other part of a layer.

A test that is marked `alone` breaks its cluster, so it needs one for itself; a `quiet` one judges a speed.
TEST_RUN_PART names the part whose tests are run, and TEST_RUN_TIER the tier; without them all are. TEST_RUN_SEED
draws the samples; it is the commit if nothing is said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from enum import Enum

import pytest

from tests.run import history
from tests.run.tiers import Case, Choice, Tier, changed_tools, chosen, file_of, longest_first

MODULE = __name__
PART = "TEST_RUN_PART"
TIER, SEED, TOOLS = "TEST_RUN_TIER", "TEST_RUN_SEED", "TEST_RUN_TOOLS"
FULL, SAMPLE, ONE_IN, LAST = "full", "sample", "one_in", "last"

_REST = re.compile(r"rest (\d+)/(\d+)")


class Part(Enum):
    """How the tests of a part are run. The last two are named as the mark of their tests."""

    SIDE_BY_SIDE = "side by side"
    ALONE = "alone"
    QUIET = "quiet"


def part_of(environ: Mapping[str, str]) -> Part | None:
    """The part that is asked for; None if that is the whole."""
    name = environ.get(PART)
    return Part(name) if name else None


def choice_of(environ: Mapping[str, str]) -> Choice | None:
    """
    The tier that is asked for; None if that is all there is.

    Where the seed or the tools are not said, they are those of the checkout.
    """
    name = environ.get(TIER)
    if not name:
        return None
    seed = environ.get(SEED) or history.head()
    if (said := environ.get(TOOLS)) is not None:
        tools = frozenset(said.split())
    else:
        tools = changed_tools(history.changed_since(history.last_full().commit))
    if rest := _REST.fullmatch(name):
        return Choice(Tier.REST, seed, tools, int(rest[1]), int(rest[2]))
    return Choice(Tier(name), seed, tools)


def variables(choice: Choice | None) -> dict[str, str]:
    """What makes every pytest below this process run that tier; of None, all."""
    if choice is None:
        return {TIER: ""}
    return {TIER: str(choice), SEED: choice.seed, TOOLS: " ".join(sorted(choice.tools))}


def pytest_configure() -> None:
    # Workers of pytest-xdist inherit it, so that all of them draw the same.
    os.environ.update(variables(choice_of(os.environ)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    # When every conftest has set its marks.
    yield
    part, choice = part_of(os.environ), choice_of(os.environ)
    kept, took = items[:], history.last_full().seconds
    if part is not None:
        kept = [item for item in kept if _part(item) is part]
    if choice is not None:
        names = chosen([_case(item) for item in kept], choice, took)
        kept = [item for item in kept if item.nodeid in names]
    order = {file: place for place, file in enumerate(longest_first((item.nodeid for item in kept), took))}
    kept.sort(key=lambda item: (item.get_closest_marker(LAST) is not None, order[file_of(item.nodeid)]))
    left = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = kept


def pytest_report_header() -> list[str]:
    choice = choice_of(os.environ)
    return [f"tier: {choice}, drawn by {SEED}={choice.seed}"] if choice is not None else []


def _part(item: pytest.Item) -> Part:
    marked = (part for part in (Part.QUIET, Part.ALONE) if item.get_closest_marker(part.value) is not None)
    return next(marked, Part.SIDE_BY_SIDE)


def _case(item: pytest.Item) -> Case:
    sample, one_in = item.get_closest_marker(SAMPLE), item.get_closest_marker(ONE_IN)
    return Case(
        item.nodeid,
        only_full=item.get_closest_marker(FULL) is not None,
        sample=None if sample is None else int(sample.args[0]),
        kind="" if sample is None else str(sample.kwargs.get("of", "")),
        one_in=1 if one_in is None else int(one_in.args[0]),
    )
