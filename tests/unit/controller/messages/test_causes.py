"""Which pod died and how, in the conditions of a job: told while it shows, and known when it shows no more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import container, mpi_job, template
from tests.unit.controller.messages.launchers import end_of, started_again
from tests.unit.controller.started import RUNS, started
from tests.unit.controller.world import World


@pytest.mark.uncounted
class TestWhileTheLauncherRuns:
    def test_what_was_told_of_a_worker_stays_when_another_pod_has_its_name(self) -> None:
        world = started()
        evicted = pods.worker(1, phase="Failed", conditions={}, reason="Evicted", message="low on memory")
        world.workers_are(pods.worker(0), evicted)
        world.later(5)

        world.workers_are(pods.worker(0), pods.worker(1, created=30))
        world.later(15)

        assert world.condition("Running") == (
            True,
            "MPIJobWorkerFailed",
            f"{RUNS}train-worker-1 was evicted: low on memory",
        )

    @pytest.mark.parametrize(
        ("went", "told"),
        [
            ({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}, "was evicted: low on disk"),
            ({}, "was deleted"),
            ({"conditions": pods.lost(12)}, "was lost with its node node-1"),
        ],
        ids=["evicted", "deleted by force", "lost"],
    )
    def test_a_worker_that_another_pod_replaced_before_anybody_looked_is_told_of(
        self, went: dict[str, Any], told: str
    ) -> None:
        world = started()
        world.seconds += 10
        world.worker_went(pods.worker(1, **went))
        world.workers_are(pods.worker(0), pods.worker(1, created=30, conditions=pods.not_ready()))
        world.settle()
        assert world.condition("Running") == (True, "MPIJobWorkerFailed", f"{RUNS}train-worker-1 {told}")

        world.departed.clear()
        world.workers_are(pods.worker(0), pods.worker(1, created=30))
        world.later(60)

        assert world.condition("Running") == (True, "MPIJobWorkerFailed", f"{RUNS}train-worker-1 {told}")

    def test_of_one_that_dies_again_the_first_end_is_told(self) -> None:
        world = started()
        world.seconds += 10
        world.worker_went(pods.worker(1, phase="Failed", conditions={}, reason="Evicted"))
        world.workers_are(pods.worker(0), pods.worker(1, created=30, deleted=60))

        world.settle()

        assert world.condition("Running")[2] == f"{RUNS}train-worker-1 was evicted"

    def test_one_that_went_before_this_launcher_began_has_not_harmed_it(self) -> None:
        world = started()
        world.seconds -= 5
        world.worker_went(pods.worker(1, phase="Failed", conditions={}, reason="Evicted"))

        world.later(10)

        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}2 of 2 workers are Ready")

    def test_another_worker_that_dies_is_added(self) -> None:
        world = started()
        world.workers_are(pods.worker(0), pods.worker(1, deleted=30))
        world.later(5)

        world.workers_are(
            pods.worker(0, containers=[pods.restarted("worker", 137, "OOMKilled")]), pods.worker(1, deleted=30)
        )
        world.later(15)

        assert world.condition("Running")[2] == (
            f"{RUNS}train-worker-1 was deleted; train-worker-0: container worker ended with code 137 (OOMKilled)"
        )

    def test_a_worker_that_is_new_because_the_job_was_scaled_up_has_not_died(self) -> None:
        world = started()
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 3
        world.settle()

        world.workers_are(pods.worker(0), pods.worker(1), pods.worker(2, created=30))
        world.later(15)

        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}3 of 3 workers are Ready")

    def test_a_worker_that_goes_because_the_job_was_scaled_down_has_not_failed(self) -> None:
        world = started()
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 1
        world.settle()

        world.workers_are(pods.worker(0), pods.worker(1, deleted=30))
        world.later(15)
        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}1 of 1 workers are Ready")

        world.worker_went(pods.worker(1))
        world.workers_are(pods.worker(0))
        world.later(15)
        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}1 of 1 workers are Ready")

    def test_nor_has_one_whose_template_was_changed(self) -> None:
        world = started(elastic={"minReplicas": 1})
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))
        world.settle()

        world.workers_are(pods.worker(0), pods.worker(1, deleted=30), revision="train-worker-new")
        world.later(15)

        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}0 of 2 workers are Ready")

    def test_nor_one_that_goes_before_the_statefulset_says_that_it_knows_of_the_change(self) -> None:
        world = started(elastic={"minReplicas": 1})
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1, deleted=30))
        world.get("StatefulSet")["status"]["observedGeneration"] -= 1

        world.later(15)

        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}0 of 2 workers are Ready")

    def test_a_launcher_whose_node_is_not_heard_of_is_told_of(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(conditions=pods.lost(30)), active=1)

        world.later(50)

        lost = "Launcher pod train-launcher-1 was lost with its node node-1"
        assert ("Warning", "MPIJobLauncherFailed", lost) in world.events


class TestWhenTheLauncherStartsAgain:
    def test_a_launcher_that_was_deleted_is_named_until_there_is_another(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(deleted=50), active=0)
        world.later(5)
        told = world.condition("Restarting")

        world.launcher_is(
            pods.launcher(deleted=50, phase="Failed", conditions={}, containers=[pods.ended("mpi", 143)]), failed=1
        )
        world.later(15)
        assert world.condition("Restarting") == told
        world.launcher_is()
        world.later(15)

        assert world.condition("Restarting") == told
        assert told[2] == "launcher pod train-launcher-1 was deleted"

    def test_one_that_was_lost_with_its_node_is_named(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(conditions=pods.lost(30)), active=1)
        world.later(50)

        world.launcher_is(active=0)
        world.later(15)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-1 was lost with its node node-1"

    def test_it_is_named_instead_of_one_that_had_failed_before(self) -> None:
        world, first, second = started_again()
        second["status"] |= pods.launcher(conditions=pods.lost(40))["status"]
        world.later(60)
        told = "launcher pod train-launcher-2 was lost with its node node-1"

        world.launcher_is(first, failed=1)
        world.later(15)
        assert world.condition("Restarting") == (True, "MPIJobRestarting", told)
        assert world.later(60) == []

        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=2)
        world.later(15)
        assert world.condition("Failed")[1:] == ("BackoffLimitExceeded", f"Limit; {told}")

    def test_but_not_instead_of_one_that_failed_since(self) -> None:
        world, first, _ = started_again()
        world.launcher_is(first, failed=1)
        world.later(15)
        third = pods.launcher("train-launcher-3", created=40, phase="Failed", conditions={},
                              containers=[pods.ended("mpi", 3, at=world.seconds + 2)])  # fmt: skip

        world.launcher_is(first, third, failed=2)
        world.later(15)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-3 ended with code 3"

    def test_and_so_are_the_workers_that_were_lost_with_it(self) -> None:
        world = started()
        world.workers_are(pods.worker(0), pods.worker(1, conditions=pods.lost(30)))
        world.launcher_is(pods.launcher(conditions=pods.lost(30)), active=1)
        world.later(50)
        assert world.events[-1][2] == (
            "Launcher pod train-launcher-1 was lost with its node node-1; "
            "train-worker-1 was lost with its node node-1"
        )

        world.launcher_is(active=0)
        world.later(15)

        assert world.condition("Restarting")[2] == (
            "train-worker-1 was lost with its node node-1; "
            "launcher pod train-launcher-1 was lost with its node node-1"
        )

    def test_a_worker_whose_loss_is_known_after_the_launchers_end_is_named_and_stays_named(self) -> None:
        world = started()
        world.launcher_is(end_of(249, "mpirt-rsh: node node-2 is not heard of"), failed=1)
        world.later(5)
        world.workers_are(pods.worker(0), pods.worker(1, node="node-2", conditions=pods.lost(50)))
        world.later(60)
        told = world.condition("Restarting")

        world.workers_are(pods.worker(0), pods.worker(1, created=60))
        world.later(15)

        assert world.condition("Restarting") == told
        assert told[2] == (
            "train-worker-1 was lost with its node node-2; "
            "launcher pod train-launcher-1 ended with code 249: mpirt-rsh: node node-2 is not heard of"
        )

    def test_a_cause_that_is_known_a_second_later_is_told_at_once(self) -> None:
        world = started()
        world.launcher_is(end_of(205, "ORTE has lost communication", since=12, at=18), failed=1)
        world.later(5)
        assert world.condition("Restarting")[2].startswith("launcher pod")

        dead = pods.worker(1, containers=[pods.restarted("worker", 137, "OOMKilled", at=17)])
        world.workers_are(pods.worker(0), dead)
        world.later(1)

        assert world.condition("Restarting")[2] == (
            "train-worker-1: container worker ended with code 137 (OOMKilled); "
            "launcher pod train-launcher-1 ended with code 205: ORTE has lost communication"
        )
        assert world.told().count("MPIJobRestarting") == 1

    @pytest.mark.parametrize(
        ("died", "told"),
        [
            pytest.param(17, "train-worker-1: container worker ended with code 137 (OOMKilled); ", id="before"),
            pytest.param(33, "", id="after"),
        ],
    )
    @pytest.mark.parametrize("state", ["Running", "Succeeded"])
    def test_a_cause_that_is_known_when_it_runs_again_is_told_still(
        self, died: float, told: str, state: str
    ) -> None:
        world = started()
        failed = end_of(137, "rank 1 was killed", since=12, at=18)
        world.launcher_is(failed, failed=1)
        world.settle()
        second = pods.launcher("train-launcher-2", created=28, containers=[pods.running("mpi", since=30)])
        world.seconds = 30
        world.launcher_is(failed, second, failed=1, active=1)
        world.settle()
        said = "launcher pod train-launcher-1 ended with code 137 (SIGKILL): rank 1 was killed"
        assert world.condition("Restarting") == (
            False,
            "MPIJobRunning",
            f"The launcher had to start again: {said}",
        )
        if state == "Succeeded":
            world.finish(failed=1, succeeded=1)
        assert world.state() == state

        dead = pods.worker(1, containers=[pods.restarted("worker", 137, "OOMKilled", at=died)])
        world.workers_are(pods.worker(0), dead)
        world.later(15)

        assert world.condition("Restarting") == (
            False,
            "MPIJobRunning",
            f"The launcher had to start again: {told}{said}",
        )
        assert world.later(60) == []

    def test_of_several_attempts_it_is_the_last_ones(self) -> None:
        world = started(runPolicy={"backoffLimit": 6})
        first = end_of(1, since=12, at=18)
        second = pods.launcher("train-launcher-2", created=28, phase="Failed", conditions={},
                               containers=[pods.ended("mpi", 2, since=30, at=40)])  # fmt: skip
        third = pods.launcher("train-launcher-3", created=50, containers=[pods.running("mpi", since=52)])
        world.launcher_is(first, second, failed=2)
        world.settle()
        world.seconds = 52
        world.launcher_is(first, second, third, failed=2, active=1)
        world.settle()

        world.workers_are(
            pods.worker(0, containers=[pods.restarted("worker", 137, "OOMKilled", at=17)]),
            pods.worker(1, containers=[pods.restarted("worker", 137, "OOMKilled", at=39)]),
        )
        world.later(15)

        assert world.condition("Restarting")[2] == (
            "The launcher had to start again: train-worker-1: container worker ended with code 137 (OOMKilled); "
            "launcher pod train-launcher-2 ended with code 2"
        )

    def test_the_cause_stays_when_the_job_runs_no_more(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(deleted=50), active=0)
        world.later(5)

        world.change(runPolicy={"suspend": True})
        world.settle()

        told = "The launcher had to start again: launcher pod train-launcher-1 was deleted"
        assert world.condition("Restarting") == (False, "MPIJobRunning", told)

    def test_a_launcher_job_that_is_being_deleted_was_deleted(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(deleted=50), active=1)
        world.get("Job")["metadata"]["deletionTimestamp"] = "2026-05-04T12:00:30Z"

        world.later(5)

        assert world.condition("Restarting")[2] == "the launcher Job was deleted"

    def test_one_that_had_ended_before_it_was_seen_to_run_is_named(self) -> None:
        world = World(mpi_job())
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1))
        world.later(5)

        world.launcher_is(end_of(1), failed=1)
        world.later(15)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-1 ended with code 1"

    def test_so_is_one_that_came_after_the_launcher_job_was_deleted(self) -> None:
        world = started()
        world.launcher_is()
        world.lose_launcher_job()
        world.later(5)
        assert world.condition("Restarting")[2] == "the launcher Job was deleted"

        world.launcher_is(pods.launcher("train-launcher-2", phase="Failed", conditions={}, created=22,
                                        containers=[pods.ended("mpi", 2, since=23)]), failed=1)  # fmt: skip
        world.later(15)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-2 ended with code 2"

    def test_a_changed_template_is_the_cause_however_the_launcher_ends(self) -> None:
        world = started()
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))
        world.get("Job")["metadata"]["deletionTimestamp"] = "2026-05-04T12:00:30Z"
        world.launcher_is(end_of(143), failed=1)

        world.settle()

        assert world.condition("Restarting")[2] == "the workers' template was changed"

    def test_one_of_which_nothing_was_ever_told(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(phase="Pending", conditions={}, containers=[]), failed=1)
        world.job["status"]["conditions"] = []

        world.later(15)

        assert world.condition("Restarting")[2] == "the launcher's pod is gone"
