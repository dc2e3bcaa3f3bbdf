"""
A suspended job: nothing is created for it, and its pods are active until they are gone.

Those who admit jobs by a quota go by the second, and may have thousands of such jobs in a queue.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import SETTINGS, Body, mpi_job, time
from tests.unit.controller.world import World, settled, started, writes


def suspended(*left: Body) -> World:
    """A job that ran and was suspended; of its pods these are left."""
    world = started()
    world.change(runPolicy={"suspend": True})
    world.settle()
    leave(world, *left)
    world.later(10)
    return world


def leave(world: World, *left: Body) -> None:
    for name in [name for kind, name in world.objects if kind == "Pod"]:
        del world.objects["Pod", name]
    for body in left:
        world.put(body)


def active(world: World) -> tuple[Any, Any]:
    counts = world.job["status"]["replicaStatuses"]
    return tuple(counts.get(role, {}).get("active", 0) for role in ("Launcher", "Worker"))


@pytest.mark.parametrize(
    ("left", "counted"),
    [
        pytest.param(
            [pods.worker(0, deleted=60), pods.worker(1, deleted=60)], (0, 2), id="workers that terminate"
        ),
        pytest.param([pods.launcher(deleted=60)], (1, 0), id="a launcher that terminates"),
        pytest.param([pods.launcher(phase="Pending", deleted=60)], (1, 0), id="one that waited on its node"),
        pytest.param([pods.worker(0, deleted=60, phase="Failed")], (0, 0), id="pods that have ended"),
        pytest.param([pods.worker(0, node="", phase="Pending", deleted=60)], (0, 0), id="pods without a node"),
        pytest.param([], (0, 0), id="none"),
    ],
)
def test_pods_are_active_until_they_have_left_their_nodes(left: list[Body], counted: tuple[int, int]) -> None:
    assert active(suspended(*left)) == counted


def test_a_previous_launcher_that_still_runs_is_active_when_the_job_is_not_suspended() -> None:
    world = started()

    world.put(pods.launcher("train-launcher-old", owner="gone", deleted=60))
    world.later(10)

    assert active(world)[0] == 2


def test_that_the_last_one_is_gone_is_written_at_once() -> None:
    world = suspended(pods.worker(0, deleted=60))

    leave(world)
    world.settle()

    assert active(world) == (0, 0)


class TestAJobThatIsCreatedSuspended:
    def test_has_no_objects_and_gets_all_of_them_complete_when_it_is_resumed(self) -> None:
        settings = replace(SETTINGS, keepers={"keeper": "AAAA"})
        world = World(mpi_job(runPolicy={"suspend": True}), settings=settings)
        assert writes(world.settle()) == ["tell MPIJobCreated", "tell MPIJobSuspended", "status"]
        assert world.kinds() == []
        assert world.later(60) == []

        world.change(runPolicy={"suspend": False})
        done = writes(world.settle())

        assert done[:6] == [
            "try Job",
            "try StatefulSet",
            "create ConfigMap",
            "create ServiceAccount",
            "create Service",
            "create StatefulSet",
        ]
        assert "patch ConfigMap" not in done
        assert world.get("ConfigMap")["binaryData"] == {"keeper": "AAAA"}


class TestTheObjectsOfAJobThatRanBefore:
    def test_stay_and_edits_of_them_are_reverted(self) -> None:
        world = suspended()
        before = set(world.kinds())

        world.get("Role")["rules"] = []

        assert before == {"ConfigMap", "Role", "RoleBinding", "Service", "ServiceAccount"}
        assert writes(world.settle()) == ["patch Role"]

    def test_are_not_created_again_before_the_job_is_resumed(self) -> None:
        world = suspended()
        del world.objects["Service", "train"]
        assert world.settle() == []

        world.change(runPolicy={"suspend": False})

        assert "create Service" in writes(world.settle())


class TestSuspension:
    def test_removes_what_runs_and_says_so(self) -> None:
        world = started()

        world.change(runPolicy={"suspend": True})
        done = world.settle()

        released = ["delete StatefulSet", "delete Job", "patch Role"]
        # The second status says that the pods are gone.
        assert writes(done) == ["tell MPIJobSuspended", "status", *released, "status"]
        assert world.state() == "Suspended"
        assert world.condition("Running") == (False, "MPIJobSuspended", "MPIJob ml/train is suspended.")
        assert "startTime" not in world.job["status"]
        assert world.later(60) == []

    def test_ends_and_the_job_runs_anew(self) -> None:
        world = settled(mpi_job(runPolicy={"suspend": True}))

        world.change(runPolicy={})
        world.later(60)

        assert world.state() == "Created"
        assert world.condition("Suspended") == (False, "MPIJobResumed", "The job is resumed.")
        assert world.told() == ["MPIJobCreated", "MPIJobSuspended", "MPIJobResumed"]
        assert world.job["status"]["startTime"] == time(60)

    def test_of_a_finished_job_means_nothing(self) -> None:
        world = started()
        world.finish(succeeded=1)

        world.change(runPolicy={"suspend": True})

        assert world.later(60) == []
