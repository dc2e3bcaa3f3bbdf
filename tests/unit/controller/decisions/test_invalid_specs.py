"""A job whose spec has become invalid: its run policy is still carried out, wherever that is valid itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpirt.controller.model.actions import Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import SETTINGS, Body, at, container, mpi_job, template
from tests.unit.controller.trainings import TrainingWorld, pods_of, training_job
from tests.unit.controller.world import World, settled, started, writes

INVALID: Body = {"slotsPerWorker": "two"}
PROBLEM = "spec.slotsPerWorker: expected a whole number, got 'two'"


def running(**policy: Any) -> World:
    """A job that runs with the previous spec; the present one is invalid."""
    world = started(runPolicy=policy)
    world.change(**INVALID)
    world.settle()
    return world


def waiting(**policy: Any) -> World:
    """A job that waits for its workers; its spec has become invalid."""
    world = settled(mpi_job(runPolicy=policy))
    world.change(**INVALID)
    world.settle()
    return world


def suspend(world: World) -> list[str]:
    world.change(runPolicy={"suspend": True})
    return writes(world.settle())


def invalid_training() -> TrainingWorld:
    """A TrainingJob that runs, and whose spec is invalid now."""
    world = TrainingWorld()
    world.settle()
    world.ready()
    world.settle()
    world.launcher_starts()
    world.change(slotsPerWorker="two")
    return world


class TestSuspension:
    def test_removes_launcher_and_workers_and_keeps_the_problem_in_the_status(self) -> None:
        world = running()

        done = suspend(world)

        assert {"delete StatefulSet", "delete Job"} <= set(done)
        assert world.state() == "Suspended"
        assert world.condition("Running") == (False, "MPIJobFailedValidation", PROBLEM)
        assert "startTime" not in world.job["status"]
        assert world.attempts()[-1]["stopped"] == "Suspended"
        assert world.later(60) == []

    def test_counts_pods_as_active_until_they_have_left_their_nodes(self) -> None:
        world = running()
        suspend(world)

        world.put(pods.worker(0, deleted=60))
        world.later(10)

        assert world.job["status"]["replicaStatuses"]["Worker"]["active"] == 1

    def test_ends_without_anything_being_created(self) -> None:
        world = running()
        suspend(world)

        world.change(runPolicy={"suspend": False})
        done = writes(world.later(60))

        assert done == ["tell MPIJobResumed", "status"]
        assert world.condition("Suspended") == (False, "MPIJobResumed", "The job is resumed.")
        assert world.condition("Running") == (False, "MPIJobFailedValidation", PROBLEM)

    def test_is_carried_out_where_another_field_of_the_policy_is_what_is_invalid(self) -> None:
        world = started()

        world.change(runPolicy={"suspend": True, "ttlSecondsAfterFinished": "soon", "cleanPodPolicy": "Some"})

        assert {"delete StatefulSet", "delete Job"} <= set(writes(world.settle()))

    @pytest.mark.parametrize(
        "spec",
        [
            pytest.param({"runPolicy": {"suspend": "yes"}}, id="suspend"),
            pytest.param({"runPolicy": "none"}, id="the policy"),
            pytest.param({"mpiReplicaSpecs": {}}, id="the launcher"),
        ],
    )
    def test_that_is_not_valid_suspends_nothing(self, spec: Body) -> None:
        world = started()

        world.change(**spec)

        assert writes(world.settle()) == ["tell MPIJobFailedValidation", "status"]

    def test_deletes_the_workers_of_a_training_job(self) -> None:
        world = invalid_training()

        world.job["metadata"]["annotations"] = {"job-supervisor.kube-ai.io/job-suspended": "true"}

        assert pods_of(world.settle()) == ["delete elastic-worker-0", "delete elastic-worker-1"]
        assert world.state() == "Suspended"

    def test_deletes_the_group_of_a_gang(self) -> None:
        world = settled(settings=replace(SETTINGS, gang="volcano"))
        world.change(**INVALID)

        assert "delete PodGroup" in suspend(world)


class TestAFinishedJob:
    @pytest.mark.parametrize(
        ("policy", "kept"),
        [
            ("None", {"StatefulSet", "train-launcher-1"}),
            ("Running", {"train-launcher-1"}),
            ("All", set[str]()),
        ],
    )
    def test_is_cleaned_up_by_its_policy(self, policy: str, kept: set[str]) -> None:
        world = running(cleanPodPolicy=policy)

        world.finish(succeeded=1)

        assert world.state() == "Succeeded"
        left = {*world.kinds(), *(name for kind, name in world.objects if kind == "Pod")}
        assert {"StatefulSet", "train-launcher-1"} & left == kept
        world.later(60)
        assert world.later(60) == []

    def test_is_not_cleaned_up_before_the_cause_of_its_end_is_known(self) -> None:
        world = running(cleanPodPolicy="Running", backoffLimit=0)
        failed = pods.ended("mpi", 1, since=12, at=14)

        world.launcher_is(pods.launcher(phase="Failed", conditions={}, containers=[failed]), failed=1)

        assert world.settle() == []
        assert world.plan().again == at(14 + 15)

    def test_is_deleted_after_its_ttl(self) -> None:
        world = running(ttlSecondsAfterFinished=100)
        world.finish(succeeded=1)
        assert world.plan().again == at(world.seconds - 3 + 100)

        done = world.later(100)

        assert writes(done) == ["delete MPIJob"]

    def test_of_training_gives_back_its_workers_by_default(self) -> None:
        world = invalid_training()

        world.finish(succeeded=1)

        assert world.workers() == []


class TestADeadline:
    def test_that_is_changed_is_the_launcher_jobs_too(self) -> None:
        world = running(activeDeadlineSeconds=100)

        world.job["spec"]["runPolicy"]["activeDeadlineSeconds"] = 50

        assert writes(world.settle()) == ["patch Job"]
        assert world.get("Job")["spec"]["activeDeadlineSeconds"] == 45
        assert world.later(60) == []

    def test_leaves_alone_a_launcher_job_that_is_being_deleted(self) -> None:
        world = running(activeDeadlineSeconds=100)
        world.get("Job")["metadata"]["deletionTimestamp"] = "2026-05-04T12:01:00Z"

        assert "patch Job" not in writes(world.later(100))

    def test_that_is_over_fails_a_job_without_a_launcher_and_names_the_problem(self) -> None:
        world = waiting(activeDeadlineSeconds=100, cleanPodPolicy="Running")

        world.later(100)

        assert world.condition("Failed") == (
            True,
            "DeadlineExceeded",
            f"the job was active longer than activeDeadlineSeconds=100; {PROBLEM}",
        )
        assert "StatefulSet" not in world.kinds()

    def test_holds_for_a_running_job_whose_changed_template_is_rejected(self) -> None:
        world = started(runPolicy={"activeDeadlineSeconds": 100})
        world.refuse["Job"] = Rejection("Job", "", "denied", final=False)
        world.change(
            mpiReplicaSpecs=mpi_job(launcher=template(container("mpi", image="mpi:5")))["spec"]["mpiReplicaSpecs"]
        )
        world.settle()
        world.job["spec"]["runPolicy"]["activeDeadlineSeconds"] = 50

        world.settle()

        assert world.get("Job")["spec"]["activeDeadlineSeconds"] == 45

    def test_of_a_training_job_that_waits_for_its_workers_is_its_patience(self) -> None:
        annotations = {"job-supervisor.kube-ai.io/max-wait-time": "600"}
        world = TrainingWorld(training_job(annotations=annotations))
        world.settle()
        world.change(slotsPerWorker="two")

        world.later(600)

        assert world.condition("Failed")[1] == "MaxWaitTimeExceeded"

    def test_of_a_training_job_is_none_where_its_patience_is_what_is_invalid(self) -> None:
        world = TrainingWorld(training_job(annotations={"job-supervisor.kube-ai.io/max-wait-time": "long"}))

        world.later(6000)

        assert world.condition("Running")[1] == "TrainingJobFailedValidation"
