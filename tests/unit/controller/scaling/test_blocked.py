"""Workers that can't be created: a pod of another owner has the name, or the API server refuses their pods."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.actions import Rejection
from tests.unit.controller.jobs import Body
from tests.unit.controller.trainings import TrainingWorld, pods_of, running_job

QUOTA = "exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4"


def stranger(world: TrainingWorld, number: int, owner: str = "", **metadata: Any) -> Body:
    """A pod that has the name of a worker, and belongs to a GPUTask of that name, or has no owner."""
    name = f"elastic-worker-{number}"
    reference = {"kind": owner, "name": name, "uid": f"uid-of-{owner}", "controller": True}
    owners = {"ownerReferences": [reference]} if owner else {}
    head = {
        "name": name,
        "namespace": "ml",
        "uid": f"uid-of-stranger-{number}",
        "labels": {},
        **owners,
        **metadata,
    }
    return world.put({"kind": "Pod", "metadata": head, "spec": {}, "status": {"phase": "Running"}})


@pytest.fixture
def world() -> TrainingWorld:
    """A job that runs with two workers, and a pod that has the name of the next one."""
    world = running_job(2)
    stranger(world, 2)
    return world


class TestAPodThatHasTheNameOfAWorker:
    def test_is_reported_with_its_owner_and_the_other_workers_are_created(self) -> None:
        world = running_job(2)
        stranger(world, 2, "GPUTask")

        done = world.scale(4)
        world.ready("elastic-worker-3")
        world.later(10)

        assert pods_of(done) == ["create elastic-worker-3"]
        assert world.condition("Running")[:2] == (True, "ErrResourceExists")
        assert world.condition("Running")[2] == (
            "3 of 4 workers are Ready: elastic-worker-2 can't be created: "
            "pod elastic-worker-2 exists and belongs to GPUTask elastic-worker-2"
        )
        assert ("Warning", "ErrResourceExists") in [event[:2] for event in world.events]

    def test_is_reported_before_the_launcher_starts(self) -> None:
        world = TrainingWorld()
        stranger(world, 0)

        world.settle()

        assert world.workers() == ["elastic-worker-1"]
        assert world.condition("Running")[:2] == (False, "ErrResourceExists")
        assert world.condition("Running")[2] == (
            "0 of 2 workers are Ready: elastic-worker-0 can't be created: "
            "pod elastic-worker-0 exists and has no owner; elastic-worker-1 is waiting for a node"
        )

    def test_is_reported_though_it_has_the_labels_of_the_jobs_workers(self) -> None:
        world = running_job(2)
        stranger(world, 2, labels=dict(world.pod("elastic-worker-1")["metadata"]["labels"]))

        world.scale(3)

        assert world.condition("Running")[1] == "ErrResourceExists"

    def test_does_not_hide_the_end_of_another_worker(self, world: TrainingWorld) -> None:
        world.scale(3)

        world.vanishes("elastic-worker-1")
        world.settle()

        assert "1 of 3 workers are Ready" in world.condition("Running")[2]
        assert "elastic-worker-1 was deleted" in world.condition("Running")[2]

    def test_keeps_no_scale_in_from_its_end(self) -> None:
        world = running_job(3)
        stranger(world, 3)
        world.scale(4)
        world.scale_in(podNames=["elastic-worker-1"])
        world.idle("elastic-worker-1")

        world.settle()

        assert world.outcome("in") == ("ScaleSucceeded", "removed elastic-worker-1")
        assert world.wanted() == ["0", "2", "3"]

    def test_is_no_matter_any_more_when_the_job_is_scaled_back(self) -> None:
        world = running_job(2)
        pod = stranger(world, 2)
        world.scale(3)

        world.scale(2)
        world.later(10)

        assert world.wanted() == ["0", "1"]
        assert "pending" not in world.status["scaling"]
        assert world.condition("Running")[1] == "TrainingJobRunning"
        assert world.pod("elastic-worker-2") is pod
        assert world.later(3600) == []

    def test_is_named_by_a_scale_out_that_fails_because_of_it_and_its_worker_is_never_created(
        self, world: TrainingWorld
    ) -> None:
        world.scale_out(2, timeout=30)

        world.later(31)

        assert world.outcome("out")[0] == "ScaleFailed"
        assert world.outcome("out")[1] == (
            "after 30 s not Ready: elastic-worker-2, elastic-worker-3; elastic-worker-2 can't be created: "
            "pod elastic-worker-2 exists and has no owner; removed again"
        )
        del world.objects["Pod", "elastic-worker-2"]
        assert pods_of(world.later(60)) == []

    def test_is_followed_by_the_worker_when_it_is_gone(self, world: TrainingWorld) -> None:
        world.scale(3)

        del world.objects["Pod", "elastic-worker-2"]

        assert pods_of(world.settle()) == ["create elastic-worker-2"]
        assert world.condition("Running")[1] == "TrainingJobRunning"

    def test_is_only_waited_for_while_it_is_being_deleted(self) -> None:
        world = running_job(2)
        stranger(world, 2, deletionTimestamp="2026-05-04T12:00:00Z")

        world.scale(3)
        world.later(10)

        assert world.condition("Running")[1:] == (
            "TrainingJobRunning",
            "Launcher pod elastic-launcher-1 runs on node node-2; 2 of 3 workers are Ready",
        )

    def test_with_the_name_of_no_worker_is_no_matter(self) -> None:
        world = running_job(2)
        for name in ("elastic-worker-02", "elastic-worker-x", "other-worker-2"):
            stranger(world, 2)["metadata"]["name"] = name
            world.objects["Pod", name] = world.objects.pop(("Pod", "elastic-worker-2"))

        assert pods_of(world.scale(3)) == ["create elastic-worker-2"]


@pytest.mark.uncounted
class TestAQuotaThatRefusesWorkers:
    @staticmethod
    def refusing(world: TrainingWorld) -> None:
        world.refuse["Pod"] = Rejection("Pod", "", QUOTA, final=False)

    def test_a_refusal_is_reported_while_the_launcher_runs(self) -> None:
        world = running_job(2)
        self.refusing(world)

        done = world.scale(9)

        assert pods_of(done) == ["create elastic-worker-2"]
        assert world.condition("Running") == (
            True,
            "TrainingJobRefused",
            f"2 of 9 workers are Ready: elastic-worker-2 and 6 more can't be created: {QUOTA}",
        )

    def test_workers_of_another_template_are_tried(self) -> None:
        world = running_job(2)
        self.refusing(world)
        world.scale(3)
        world.refuse.clear()
        container = world.job["spec"]["etReplicaSpecs"]["worker"]["template"]["spec"]["containers"][0]

        container["image"] = "smaller"

        assert "create elastic-worker-2" in pods_of(world.settle())

    def test_those_of_a_scale_out_are_tried_though_others_were_refused(self) -> None:
        world = running_job(2)
        self.refusing(world)
        world.scale(3)
        world.refuse.clear()

        done = world.scale_out(1)

        assert pods_of(done) == ["create elastic-worker-3"]

    def test_a_scale_out_that_a_quota_prevents_names_it(self) -> None:
        world = running_job(2)
        self.refusing(world)
        world.scale_out(2, timeout=30)

        world.later(31)

        assert world.outcome("out")[1] == (
            "after 30 s not Ready: elastic-worker-2, elastic-worker-3; "
            f"elastic-worker-2 and 1 more can't be created: {QUOTA}; removed again"
        )
