"""Jobs that are over, and the annotations that run one again."""

from __future__ import annotations

from tests.unit.controller import pods
from tests.unit.controller.jobs import mpi_job
from tests.unit.controller.world import World

RERUN = "mpirt.dev/rerun"
WHEN_DELETED = "mpirt.dev/rerun-when-deleted"


def succeeded(policy: str = "None", **annotations: str) -> World:
    """A job that has come to a good end."""
    world = World(mpi_job(runPolicy={"cleanPodPolicy": policy}))
    annotate(world, **annotations)
    world.start()
    done = pods.ended("mpi", 0, "Completed")
    world.launcher_is(pods.launcher(phase="Succeeded", conditions={}, containers=[done]), succeeded=1)
    world.finish(succeeded=1)
    world.later(15)
    return world


def annotate(world: World, **annotations: str) -> None:
    world.job["metadata"].setdefault("annotations", {}).update(annotations)
