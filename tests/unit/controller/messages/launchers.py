"""Launchers that have ended, one that is started again, and workers that were killed."""

from __future__ import annotations

from typing import Any

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, mpi_job
from tests.unit.controller.world import World, started

OOM = "container worker ended with code 137 (OOMKilled)"
LOST = "launcher pod train-launcher-1 was lost with its node node-1"
AGAIN = "The launcher had to start again: "


def tolerant() -> World:
    """A job that says that it copes with the loss of workers."""
    job = mpi_job()
    job["metadata"]["annotations"] = {"mpirt.dev/tolerates-lost-workers": "true"}
    world = World(job)
    world.start()
    return world


def end_of(code: int, message: str = "", *, number: int = 1, created: float = 10, **more: Any) -> Body:
    """A launcher's pod that has failed."""
    ended = pods.ended("mpi", code, message=message, **more)
    name = f"train-launcher-{number}"
    return pods.launcher(name, created=created, phase="Failed", conditions={}, containers=[ended])


def oom(number: int, **at: float) -> Body:
    """A worker whose container was killed, and runs again."""
    return pods.worker(number, containers=[pods.restarted("worker", 137, "OOMKilled", **at)])


def retried(number: int = 2, *, created: float) -> Body:
    """The pod of a launcher's next attempt, which runs."""
    runs = pods.running("mpi", since=created + 1)
    return pods.launcher(f"train-launcher-{number}", created=created, containers=[runs])


def started_again() -> tuple[World, Body, Body]:
    """A job whose first launcher has failed; its pod is still there, and another runs, which is the last."""
    world = started(runPolicy={"backoffLimit": 1})
    first, second = end_of(137, reason="OOMKilled", since=12, at=18), retried(created=30)
    world.launcher_is(first)
    world.later(5)
    world.launcher_is(second, active=1)
    world.later(15)
    return world, first, second


def loses_launcher(**spec: Any) -> World:
    """A job whose launcher's node is lost."""
    world = started(**spec)
    world.launcher_is(pods.launcher(conditions=pods.lost(30)), active=1)
    world.later(50)
    return world


def gives_up(world: World, *, reason: str = "BackoffLimitExceeded", failed: int = 1) -> None:
    """The launcher Job has failed."""
    world.finish("Failed", reason=reason, message="Limit", failed=failed)
