"""
A pytest plugin that leaves out the tests of the other part of a layer.

A test that is marked `alone` needs the cluster for itself. TEST_RUN_PART names the part whose tests are run;
without it all are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum

import pytest

MODULE = __name__
PART = "TEST_RUN_PART"
MARK = "alone"


class Part(Enum):
    """How the tests of a part are run."""

    SIDE_BY_SIDE = "side by side"
    ALONE = "alone"


def part_of(environ: Mapping[str, str]) -> Part | None:
    """The part that is asked for; None if that is the whole."""
    name = environ.get(PART)
    return Part(name) if name else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = part_of(os.environ)
    if part is not None:
        alone = [item for item in items if item.get_closest_marker(MARK) is not None]
        others = [item for item in items if item not in alone]
        items[:], left = (alone, others) if part is Part.ALONE else (others, alone)
        config.hook.pytest_deselected(items=left)
