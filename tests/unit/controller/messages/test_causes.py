"""Which pod died and how, in the conditions of a job: told while it shows, and known when it shows no more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at, container, mpi_job, template
from tests.unit.controller.started import RUNS, started
from tests.unit.controller.world import World


def tolerant() -> World:
    """A job that says that it copes with the loss of workers."""
    job = mpi_job()
    job["metadata"]["annotations"] = {"mpirt.dev/tolerates-lost-workers": "true"}
    world = World(job)
    world.start()
    return world


def end_of(code: int, message: str = "", **more: Any) -> Body:
    """A launcher's pod that has failed."""
    return pods.launcher(
        phase="Failed", conditions={}, containers=[pods.ended("mpi", code, message=message, **more)]
    )


def started_again() -> tuple[World, Body, Body]:
    """A job whose first launcher has failed; its pod is still there, and another runs."""
    world = started()
    first = end_of(137, reason="OOMKilled", since=12, at=18)
    world.launcher_is(first, failed=1)
    world.later(5)
    second = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=31)])
    world.launcher_is(first, second, failed=1, active=1)
    world.later(15)
    return world, first, second


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
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 3
        world.settle()

        world.workers_are(pods.worker(0), pods.worker(1), pods.worker(2, created=30))
        world.later(15)

        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}3 of 3 workers are Ready")

    def test_a_worker_that_goes_because_the_job_was_scaled_down_has_not_failed(self) -> None:
        world = started()
        assert world.job is not None
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
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))
        world.settle()

        world.workers_are(pods.worker(0), pods.worker(1, deleted=30), revision="train-worker-new")
        world.later(15)

        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}0 of 2 workers are Ready")

    def test_nor_one_that_goes_before_the_statefulset_says_that_it_knows_of_the_change(self) -> None:
        world = started(elastic={"minReplicas": 1})
        assert world.job is not None
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
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))
        world.get("Job")["metadata"]["deletionTimestamp"] = "2026-05-04T12:00:30Z"
        world.launcher_is(end_of(143), failed=1)

        world.settle()

        assert world.condition("Restarting")[2] == "the workers' template was changed"

    def test_one_of_which_nothing_was_ever_told(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(phase="Pending", conditions={}, containers=[]), failed=1)
        assert world.job is not None
        world.job["status"]["conditions"] = []

        world.later(15)

        assert world.condition("Restarting")[2] == "the launcher's pod is gone"


class TestWhenTheJobHasFailed:
    @pytest.mark.parametrize(
        ("died", "told"),
        [
            pytest.param(17, "train-worker-1: container worker ended with code 137 (OOMKilled); ", id="before"),
            pytest.param(40, "", id="after"),
        ],
    )
    def test_a_worker_that_died_before_it_is_named_if_its_node_says_so_later(self, died: float, told: str) -> None:
        world = started()
        world.launcher_is(end_of(1, "last words", since=12, at=18), failed=1)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
        assert world.condition("Failed")[2] == "Limit; launcher pod train-launcher-1 ended with code 1: last words"

        dead = pods.worker(1, containers=[pods.restarted("worker", 137, "OOMKilled", at=died)])
        world.workers_are(pods.worker(0), dead)
        world.later(15)

        message = f"Limit; {told}launcher pod train-launcher-1 ended with code 1: last words"
        assert world.condition("Failed")[2] == world.condition("Running")[2] == message
        assert world.later(60) == []

    def test_a_launcher_that_was_lost_with_its_node_is_named_and_stays_named(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(conditions=pods.lost(30)), active=1)
        world.later(50)

        world.launcher_is()
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
        world.later(15)

        told = "Limit; launcher pod train-launcher-1 was lost with its node node-1"
        assert world.condition("Failed")[2] == world.condition("Running")[2] == told
        assert world.later(60) == []

    @pytest.mark.parametrize(
        ("reason", "told"),
        [
            pytest.param("BackoffLimitExceeded", "Limit; launcher pod train-launcher-1 was deleted", id="named"),
            pytest.param("DeadlineExceeded", "Limit", id="not named where the job took too long"),
        ],
    )
    def test_a_launcher_that_was_deleted(self, reason: str, told: str) -> None:
        world = started()
        world.launcher_is(pods.launcher(deleted=50), active=0)
        world.later(5)

        world.launcher_is()
        world.finish("Failed", reason=reason, message="Limit", failed=1)
        world.later(15)

        assert world.condition("Failed")[2] == told

    def test_the_last_launcher_is_named_instead_of_one_that_had_failed_before(self) -> None:
        world, first, _ = started_again()

        world.launcher_is(first)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=2)
        world.later(15)

        assert world.condition("Failed")[2] == "Limit; launcher pod train-launcher-2 is gone"

    def test_so_is_one_that_is_no_more_wanted_by_then(self) -> None:
        world = started(runPolicy={"cleanPodPolicy": "Running"})
        dead = pods.worker(1, deleted=60, containers=[pods.ended("worker", 137, "OOMKilled", at=17)])
        world.launcher_is(end_of(1, since=12, at=18), failed=1)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
        assert "StatefulSet" not in world.kinds()

        world.put(dead)
        world.later(15)

        assert world.condition("Failed")[2] == (
            "Limit; train-worker-1: container worker ended with code 137 (OOMKilled); "
            "launcher pod train-launcher-1 ended with code 1"
        )

    def test_none_is_where_it_is_not_known_when_the_job_ended(self) -> None:
        world = started()
        world.launcher_is(end_of(1, since=12, at=18), failed=1)
        row = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Limit"}
        world.get("Job")["status"] = {"conditions": [row], "failed": 1}
        world.settle()
        said = world.condition("Failed")

        dead = pods.worker(1, containers=[pods.restarted("worker", 137, "OOMKilled", at=17)])
        world.workers_are(pods.worker(0), dead)
        world.later(15)

        assert world.condition("Failed") == said

    def test_a_worker_that_another_pod_has_replaced_is_named(self) -> None:
        world = started()
        world.seconds += 10
        world.worker_went(pods.worker(1, phase="Failed", conditions={}, reason="Evicted", message="low on disk"))
        world.launcher_is(end_of(205, "ORTE has lost communication"), failed=1)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)

        assert world.condition("Failed")[2] == (
            "Limit; train-worker-1 was evicted: low on disk; "
            "launcher pod train-launcher-1 ended with code 205: ORTE has lost communication"
        )

    def test_nothing_is_told_before_the_launchers_pod_is_seen_to_have_failed(self) -> None:
        world = started()
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
        assert world.state() == "Running"
        assert (world.plan().actions, world.plan().again) == ((), at(world.seconds + 5))

        world.launcher_is(end_of(3), **world.get("Job")["status"])
        world.settle()

        assert world.condition("Failed")[2] == "Limit; launcher pod train-launcher-1 ended with code 3"
        assert world.events[-1][2] == world.condition("Failed")[2]

    def test_nor_that_it_starts_again_when_its_last_attempt_has_failed(self) -> None:
        world = started(runPolicy={"backoffLimit": 0})
        world.launcher_is(end_of(3, since=12, at=18))
        assert (world.plan().actions, world.plan().again) == ((), at(33))

        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)

        assert world.state() == "Failed"
        assert "MPIJobRestarting" not in world.told()

    def test_unless_the_job_says_nothing_for_long(self) -> None:
        world = started(runPolicy={"backoffLimit": 0})
        world.launcher_is(end_of(3, since=12, at=18))

        world.later(20)

        assert world.state() == "Restarting"

    def test_what_is_not_seen_in_time_is_told_later(self) -> None:
        world = started()
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
        world.later(5)
        assert world.condition("Failed")[2] == "Limit"

        world.launcher_is(end_of(3), **world.get("Job")["status"])
        world.later(15)

        assert world.condition("Failed")[2] == "Limit; launcher pod train-launcher-1 ended with code 3"

    def test_a_worker_that_is_deleted_afterwards_is_not(self) -> None:
        world = started()
        world.launcher_is(end_of(1), failed=1)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
        said = world.condition("Failed")

        world.workers_are(pods.worker(0), pods.worker(1, deleted=60))
        world.later(15)

        assert world.condition("Failed") == said

    def test_a_long_list_of_workers_is_cut(self) -> None:
        world = started(elastic={"minReplicas": 2}, replicas=5)
        dead = [pods.restarted("worker", 137, "OOMKilled")]
        world.workers_are(*(pods.worker(n, containers=dead, conditions=pods.not_ready()) for n in range(5)))
        world.later(5)
        told = world.condition("Running")[2]

        world.later(30)

        assert world.condition("Running")[2] == told
        assert told.endswith("train-worker-2: container worker ended with code 137 (OOMKilled); and 2 more")


def test_a_restart_that_nobody_has_seen_is_told_afterwards() -> None:
    world = started()
    second = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=31)])

    world.launcher_is(end_of(137, reason="OOMKilled", at=18), second, failed=1, active=1)
    world.later(15)

    told = "The launcher had to start again: launcher pod train-launcher-1 ended with code 137 (OOMKilled)"
    assert world.condition("Restarting") == (False, "MPIJobRunning", told)


class TestASuccessThatMayBeNone:
    """mpirun of Open MPI 5 ends with 0 when a worker is killed under it."""

    DONE = "MPIJob ml/train successfully completed."
    CHECK = "A shell pipe, or mpirun of Open MPI 5, may have dropped a code other than 0: check the job's results."

    @staticmethod
    def ends(world: World, *, at: int) -> None:
        done = pods.ended("mpi", 0, "Completed", at=at)
        world.launcher_is(pods.launcher(phase="Succeeded", conditions={}, containers=[done]), succeeded=1)
        world.finish(succeeded=1)

    @staticmethod
    def killed(at: int) -> Body:
        dead = pods.ended("worker", 137, "OOMKilled", at=at)
        return pods.worker(1, conditions=pods.not_ready(), containers=[dead])

    @pytest.mark.parametrize("died", [12, 22])
    def test_a_worker_that_died_right_before_is_named(self, died: int) -> None:
        world = tolerant()
        world.workers_are(pods.worker(0), self.killed(died))
        world.later(5)

        self.ends(world, at=22)

        _, reason, message = world.condition("Succeeded")
        death = "train-worker-1: container worker ended with code 137 (OOMKilled)"
        assert reason == "MPIJobSucceeded"
        assert message == f"{self.DONE} But right before, {death}. {self.CHECK}"
        assert world.condition("Running") == (False, reason, message)

    @pytest.mark.parametrize("died", [11, 23])
    def test_one_that_died_long_before_or_later_is_not(self, died: int) -> None:
        world = tolerant()
        world.workers_are(pods.worker(0), self.killed(died))
        world.later(5)

        self.ends(world, at=22)

        assert world.condition("Succeeded")[2] == self.DONE

    def test_one_that_is_reported_after_the_end_is_named_then(self) -> None:
        world = started()
        self.ends(world, at=18)
        assert world.condition("Succeeded")[2] == self.DONE

        world.workers_are(pods.worker(0), self.killed(18))
        world.later(15)

        assert "But right before, train-worker-1: container worker ended" in world.condition("Succeeded")[2]

    def test_without_a_time_of_the_launchers_end_nothing_is_said(self) -> None:
        world = tolerant()
        world.workers_are(pods.worker(0), self.killed(18))
        world.later(5)
        world.launcher_is(pods.launcher(phase="Succeeded", conditions={}, containers=[]), succeeded=1)

        world.finish(succeeded=1)

        assert world.condition("Succeeded")[2] == self.DONE
