"""Jobs of a controller that was started with a gang scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.spec import Settings
from tests.unit.controller import pods
from tests.unit.controller.jobs import container, mpi_job, template
from tests.unit.controller.world import World, settled, writes

PLUGIN = Settings(runtime_image="mpirt-runtime:1", gang="co")
VOLCANO = Settings(runtime_image="mpirt-runtime:1", gang="volcano")


def test_the_group_comes_before_the_pods_and_the_launcher_at_once() -> None:
    """Even if the job asks to wait: the workers would wait for a member that is created when they are Ready."""
    done = writes(World(mpi_job(launcherCreationPolicy="WaitForWorkersReady"), settings=PLUGIN).settle())

    assert done[:8] == [
        *("try Job", "try StatefulSet"),
        *("create ConfigMap", "create ServiceAccount", "create Service", "create PodGroup", "create StatefulSet"),
        "create Job",
    ]  # fmt: skip


def test_a_job_of_another_scheduler_has_no_group_and_its_launcher_waits() -> None:
    worker = template(container("worker"), schedulerName="default-scheduler")

    assert not {"PodGroup", "Job"} & set(settled(mpi_job(worker=worker), settings=PLUGIN).kinds())


def test_the_group_goes_when_the_job_is_suspended_and_comes_back() -> None:
    world = settled(settings=PLUGIN)

    world.change(runPolicy={"suspend": True})
    world.settle()
    assert not {"PodGroup", "StatefulSet", "Job"} & set(world.kinds())

    world.change(runPolicy={"suspend": False})
    world.settle()
    assert {"PodGroup", "StatefulSet", "Job"} <= set(world.kinds())


def test_the_group_goes_when_the_job_is_over() -> None:
    world = World(settings=PLUGIN)
    world.start()

    world.finish()

    assert "PodGroup" not in world.kinds()


class TestScaling:
    def least_after(self, world: World, replicas: int) -> int:
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = replicas
        world.settle()
        return int(world.get("PodGroup")["spec"]["minMember"])

    def test_before_the_launcher_runs_the_group_follows(self) -> None:
        world = settled(settings=PLUGIN)

        assert (self.least_after(world, 4), self.least_after(world, 1)) == (5, 2)

    @pytest.mark.parametrize(
        ("replicas", "least"), [pytest.param(4, 3, id="it does not grow"), pytest.param(1, 2, id="it shrinks")]
    )
    def test_while_the_launcher_runs_the_group_only_shrinks(self, replicas: int, least: int) -> None:
        """A member that is recreated would have to wait for those with which the job is scaled up."""
        world = World(settings=PLUGIN)
        world.start()

        assert self.least_after(world, replicas) == least

    @pytest.mark.parametrize("is_emptied", [True, False], ids=["it was emptied", "a worker is recreated"])
    def test_a_group_keeps_its_number_of_members(self, *, is_emptied: bool) -> None:
        world = World(settings=PLUGIN)
        world.start()

        if is_emptied:
            world.get("PodGroup")["spec"] = {}
        else:
            world.workers_are(pods.worker(0))
        world.settle()

        assert world.get("PodGroup")["spec"]["minMember"] == 3


def test_what_volcano_fills_in_stays() -> None:
    world = settled(settings=VOLCANO)
    world.get("PodGroup")["spec"] |= {"queue": "default", "minTaskMember": {}}

    assert "patch PodGroup" not in writes(world.later(60))


def test_what_the_job_asks_for_is_restored() -> None:
    world = settled(mpi_job(runPolicy={"schedulingPolicy": {"queue": "gpu"}}), settings=VOLCANO)
    world.get("PodGroup")["spec"] |= {"queue": "other"}

    assert "patch PodGroup" in writes(world.settle())
    assert world.get("PodGroup")["spec"]["queue"] == "gpu"


def test_a_group_of_somebody_else_is_left_alone_and_reported() -> None:
    world = World(settings=PLUGIN)
    world.put({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": 9},
        "metadata": {
            "name": "train", "namespace": "ml", "uid": "theirs",
            "labels": {"training.kubeflow.org/job-name": "train"},
        },
    })  # fmt: skip

    world.settle()

    assert world.condition("Running")[1] == "ErrResourceExists"
    assert "PodGroup train exists and has no owner" in world.condition("Running")[2]
    assert world.get("PodGroup")["spec"] == {"minMember": 9}


class TestNotices:
    POLICY = {"minAvailable": 3, "queue": "gpu", "minResources": {"cpu": "1"}, "scheduleTimeoutSeconds": 30}  # noqa: RUF012  a literal

    def told(self, settings: Settings, **job: Any) -> list[str]:
        world = settled(mpi_job(runPolicy={"schedulingPolicy": self.POLICY}, **job), settings=settings)
        return [
            message.removeprefix("spec.runPolicy.schedulingPolicy.")
            for _, reason, message in world.events
            if reason == "MPIJobFieldNotHonoured"
        ]

    def test_without_a_gang_scheduler_none_of_it_has_an_effect(self) -> None:
        why = "has no effect: the controller runs without --gang-scheduling"

        assert self.told(Settings(runtime_image="mpirt-runtime:1")) == [
            f"{name}: {why}" for name in ("minAvailable", "queue", "minResources", "scheduleTimeoutSeconds")
        ]

    @pytest.mark.parametrize(
        ("settings", "told"),
        [
            pytest.param(
                PLUGIN,
                "queue: has no effect: only Volcano has queues, and the job is scheduled by co",
                id="plugin",
            ),
            pytest.param(VOLCANO, "scheduleTimeoutSeconds: has no effect: volcano does not read it", id="Volcano"),
        ],
    )
    def test_what_this_gang_scheduler_does_not_use(self, settings: Settings, told: str) -> None:
        assert self.told(settings) == [told]

    def test_a_job_of_another_scheduler(self) -> None:
        worker = template(container("worker"), schedulerName="default-scheduler")

        told = self.told(PLUGIN, worker=worker)

        assert told[0] == "minAvailable: has no effect: the workers are not scheduled by co"
        assert len(told) == len(self.POLICY)
