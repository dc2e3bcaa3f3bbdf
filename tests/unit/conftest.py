"""How many examples a property gets."""

from __future__ import annotations

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
