"""A controller that ends between any two writes: the next one brings the job to the same state."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import container, template, time
from tests.unit.controller.world import World, started


def ends(world: World, kind: str = "Complete") -> None:
    code = 0 if kind == "Complete" else 1
    ended = pods.ended("mpi", code, at=world.seconds)
    row = {"type": kind, "status": "True", "lastTransitionTime": time(world.seconds)}
    phase = "Succeeded" if code == 0 else "Failed"
    world.launcher_is(pods.launcher(phase=phase, containers=[ended]), conditions=[row], succeeded=1 - code)
    world.seconds += 10


def fails(world: World) -> None:
    ends(world, "Failed")


def is_suspended(world: World) -> None:
    world.change(runPolicy={"suspend": True})


def gets_another_launcher(world: World) -> None:
    launcher = template(container("mpi", command=["other"]))
    world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = launcher


def outcome(world: World) -> tuple[object, ...]:
    """What people see in the end: conditions, events, how many launchers were made, and what is left."""
    told = [
        (row["type"], row["status"], row["reason"], row["message"]) for row in world.job["status"]["conditions"]
    ]
    return sorted(told), sorted(set(world.told())), world.made["Job"], world.kinds()


@pytest.mark.parametrize("happens", [ends, fails, is_suspended, gets_another_launcher])
@pytest.mark.parametrize("policy", ["None", "Running", "All"])
def test_the_job_comes_to_the_same_end(happens: Callable[[World], None], policy: str) -> None:
    world = started(runPolicy={"cleanPodPolicy": policy, "backoffLimit": 0})
    happens(world)
    peaceful = copy.deepcopy(world)
    writes = len(peaceful.settle())

    for number in range(1, writes):
        disturbed = copy.deepcopy(world)
        left = number
        while left:
            actions = disturbed.plan().actions[:left]
            for action in actions:
                disturbed.carry_out(action)
            left -= len(actions)
        disturbed.settle()

        assert outcome(disturbed) == outcome(peaceful), f"cut off after {number} of {writes} writes"
