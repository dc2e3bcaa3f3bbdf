"""A job whose launcher runs, and how the conditions say so."""

from __future__ import annotations

from typing import Any

from tests.unit.controller.jobs import mpi_job
from tests.unit.controller.world import World

RUNS = "Launcher pod train-launcher-1 runs on node node-1; "


def started(**spec: Any) -> World:
    world = World(mpi_job(**spec))
    world.start()
    return world
