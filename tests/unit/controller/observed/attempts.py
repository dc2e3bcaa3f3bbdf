"""The attempts of a job."""

from __future__ import annotations

from typing import Any

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body
from tests.unit.controller.world import World


def attempts(world: World) -> list[Body]:
    found: list[Body] = world.job["status"]["attempts"]
    return found


def failed(
    name: str = "train-launcher-1", code: int = 137, *, since: float = 12, at: float = 18, **end: Any
) -> Body:
    """A launcher's pod that has failed."""
    done = pods.ended("mpi", code, since=since, at=at, **end)
    return pods.launcher(name, created=since - 2, phase="Failed", conditions={}, containers=[done])
