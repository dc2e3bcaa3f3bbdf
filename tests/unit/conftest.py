"""How many examples a property gets, and what several folders of unit tests need."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support import sizes

# The same examples every time, on machines of any speed: a failure can be repeated, and a slow one is none.
settings.register_profile(
    "repeatable",
    database=None,
    derandomize=True,
    deadline=None,
    max_examples=sizes.of(merge=50, full=200),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


@pytest.fixture
def root() -> None:
    """Skip where the test can't be root: it mounts something, or is another user."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it mounts a file system or becomes another user")
