"""Launchers that have ended, and one that is started again."""

from __future__ import annotations

from typing import Any

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, mpi_job
from tests.unit.controller.started import started
from tests.unit.controller.world import World


def tolerant() -> World:
    """A job that says that it copes with the loss of workers."""
    job = mpi_job()
    job["metadata"]["annotations"] = {"mpirt.dev/tolerates-lost-workers": "true"}
    world = World(job)
    world.start()
    return world


def end_of(code: int, message: str = "", **more: Any) -> Body:
    """A launcher's pod that has failed."""
    return pods.launcher(
        phase="Failed", conditions={}, containers=[pods.ended("mpi", code, message=message, **more)]
    )


def started_again() -> tuple[World, Body, Body]:
    """A job whose first launcher has failed; its pod is still there, and another runs."""
    world = started()
    first = end_of(137, reason="OOMKilled", since=12, at=18)
    world.launcher_is(first, failed=1)
    world.later(5)
    second = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=31)])
    world.launcher_is(first, second, failed=1, active=1)
    world.later(15)
    return world, first, second
