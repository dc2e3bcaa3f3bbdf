"""A launcher that starts beside its workers: its commands wait for them, and it runs once all are Ready."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, container, mpi_job, template, time
from tests.unit.controller.world import World, settled, writes

NEW = template(container("worker", image="mpi:5"))


def job(version: str = "v2beta1", **spec: Any) -> Body:
    body = mpi_job(**spec)
    if "launcherCreationPolicy" not in spec:
        del body["spec"]["launcherCreationPolicy"]
    return {**body, "apiVersion": f"kubeflow.org/{version}"}


def early(*workers: Body) -> World:
    """A job whose launcher's pod runs, and these workers."""
    world = settled(job())
    world.launcher_is(pods.launcher(created=1, containers=[pods.running("mpi", since=2)]), active=1)
    world.workers_are(*workers)
    world.later(10)
    return world


def crashed(at: float) -> Body:
    """Worker 1, whose container has ended and was started again."""
    return pods.worker(1, containers=[pods.restarted("worker", 1, at=at)])


def fails(world: World, *, at: float) -> list[str]:
    """The launcher that runs fails; these are the writes that follow."""
    body = world.objects["Pod", "train-launcher-1"]
    end = pods.ended("mpi", 205, since=2, at=at)
    body["status"] = pods.launcher(phase="Failed", conditions={}, containers=[end])["status"]
    return writes(world.settle())


def deaths(world: World) -> list[str]:
    return [row["pod"] for row in world.attempts()[0].get("deaths", [])]


class TestItsJob:
    def test_is_created_with_the_workers(self) -> None:
        world = settled(job())

        assert {"Job", "StatefulSet"} <= set(world.kinds())

    @pytest.mark.parametrize(
        "late",
        [
            pytest.param(job("v1"), id="v1"),
            pytest.param(job(elastic={"minReplicas": 1}), id="elastic"),
            pytest.param(job(launcherCreationPolicy="WaitForWorkersReady"), id="asked for"),
        ],
    )
    def test_is_created_when_they_are_ready_by_default_of(self, late: Body) -> None:
        assert "Job" not in settled(late).kinds()

    def test_is_created_when_workers_of_the_earlier_template_are_gone(self) -> None:
        world = early(pods.worker(0), pods.worker(1))
        world.change(**job(worker=NEW)["spec"])
        world.settle()
        assert "Job" not in world.kinds()

        world.workers_are()

        assert "create Job" in writes(world.settle())

    def test_is_created_again_beside_a_worker_whose_template_is_unknown(self) -> None:
        """Somebody has removed its annotations."""
        world = early(pods.worker(0), pods.worker(1))
        world.objects["Pod", "train-worker-1"]["metadata"]["annotations"] = {}

        assert "create Job" in fails(world, at=world.seconds)

    def test_has_its_role_before_it_runs_though_a_worker_does_not_exist(self) -> None:
        world = settled(job())
        world.workers_are(pods.worker(0))
        starts = pods.waiting("mpi", "ContainerCreating")

        world.launcher_is(pods.launcher(phase="Pending", conditions={}, containers=[starts]), active=1)

        assert "create Role" in writes(world.settle())

    def test_is_created_when_pods_of_an_earlier_job_have_given_their_names_back(self) -> None:
        world = World(job())
        world.put(pods.worker(1, owner="uid-of-another", deleted=20))
        world.settle()
        assert "Job" not in world.kinds()

        del world.objects["Pod", "train-worker-1"]

        assert "create Job" in writes(world.settle())


class TestTheJob:
    def test_does_not_run_before_all_workers_are_ready(self) -> None:
        world = early(pods.worker(0), pods.worker(1, conditions={}))
        assert world.state() == "Created"
        assert world.condition("Running") == (
            False,
            "MPIJobWorkersNotReady",
            "1 of 2 workers are Ready: train-worker-1 is starting on node node-1",
        )

        world.workers_are(pods.worker(0), pods.worker(1))
        world.later(10)

        assert world.state() == "Running"
        assert world.attempts()[0]["beginTime"] == time(2)

    def test_runs_on_when_a_worker_is_ready_no_more(self) -> None:
        world = early(pods.worker(0), pods.worker(1))

        world.workers_are(pods.worker(0), pods.worker(1, conditions={}))
        world.later(10)

        assert world.state() == "Running"

    def test_that_waits_until_its_time_is_over_names_the_workers_that_are_missing(self) -> None:
        world = early(pods.worker(0), pods.worker(1, conditions={}))

        world.finish("Failed", reason="DeadlineExceeded", message="Too long", failed=1)
        world.later(10)

        assert world.condition("Failed")[2].startswith("Too long; 1 of 2 workers are Ready: train-worker-1 ")


class TestAWorkerThatDies:
    def test_before_all_are_ready_is_no_loss(self) -> None:
        world = early(pods.worker(0, conditions={}), crashed(8))

        world.workers_are(pods.worker(0), crashed(8))
        world.later(10)

        assert (world.state(), deaths(world)) == ("Running", [])

    def test_when_they_are_is_one(self) -> None:
        world = early(pods.worker(0), pods.worker(1))

        world.workers_are(pods.worker(0), crashed(8))
        world.later(10)

        assert deaths(world) == ["train-worker-1"]

    def test_before_the_next_attempt_and_is_reported_late_is_no_loss_of_that(self) -> None:
        world = early(pods.worker(0), pods.worker(1))
        world.later(90)
        died = world.seconds - 1
        fails(world, at=world.seconds)
        world.seconds += 2
        begun = world.seconds
        runs = pods.running("mpi", since=begun)
        world.launcher_is(pods.launcher("train-launcher-2", created=begun, containers=[runs]), active=1)
        world.settle()

        world.seconds += 1
        world.workers_are(pods.worker(0), crashed(died))
        world.settle()
        world.seconds += 3000
        done = pods.ended("mpi", 0, "Completed", since=begun, at=world.seconds)
        world.launcher_is(
            pods.launcher("train-launcher-2", phase="Succeeded", conditions={}, created=begun, containers=[done])
        )
        world.finish(succeeded=1)

        assert world.state() == "Succeeded"

    def test_when_they_are_makes_a_success_a_failure(self) -> None:
        world = early(pods.worker(0), pods.worker(1))
        world.workers_are(pods.worker(0), crashed(8))
        done = pods.ended("mpi", 0, "Completed")

        world.launcher_is(pods.launcher(phase="Succeeded", conditions={}, created=1, containers=[done]), active=1)
        world.finish(succeeded=1)

        assert world.condition("Restarting")[1] == "WorkerLost"
