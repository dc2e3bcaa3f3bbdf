"""Which pod died and how, in the conditions of a job: reported at once, and remembered when it no longer shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import REVISION, Body, container, mpi_job, template
from tests.unit.controller.messages.launchers import (
    AGAIN,
    LOST,
    OOM,
    end_of,
    gives_up,
    loses_launcher,
    oom,
    retried,
    started_again,
)
from tests.unit.controller.world import RUNS, started

EVICTED = {"phase": "Failed", "conditions": {}, "reason": "Evicted"}
OTHER = template(container("worker", image="mpi:5"))


@pytest.mark.uncounted
class TestWhileTheLauncherRuns:
    def test_the_end_of_a_worker_is_reported_while_another_pod_has_its_name(self) -> None:
        world = started()
        world.workers_are(pods.worker(0), pods.worker(1, **EVICTED, message="low on memory"))
        world.later(5)

        world.workers_are(pods.worker(0), pods.worker(1, created=30))
        world.later(15)

        said = f"{RUNS}train-worker-1 was evicted: low on memory"
        assert world.condition("Running") == (True, "MPIJobWorkerFailed", said)

    @pytest.mark.parametrize(
        ("went", "said"),
        [
            ({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}, "was evicted: low on disk"),
            ({}, "was deleted"),
            ({"conditions": pods.lost(12)}, "was lost with its node node-1"),
        ],
        ids=["evicted", "deleted by force", "lost"],
    )
    def test_a_worker_that_was_replaced_between_two_looks_is_reported(
        self, went: dict[str, Any], said: str
    ) -> None:
        world = started()
        world.seconds += 10
        world.worker_went(pods.worker(1, **went))
        world.workers_are(pods.worker(0), pods.worker(1, created=30, conditions=pods.not_ready()))
        world.settle()
        assert world.condition("Running") == (True, "MPIJobWorkerFailed", f"{RUNS}train-worker-1 {said}")

        world.departed.clear()
        world.workers_are(pods.worker(0), pods.worker(1, created=30))
        world.later(60)

        assert world.condition("Running") == (True, "MPIJobWorkerFailed", f"{RUNS}train-worker-1 {said}")

    def test_another_worker_that_dies_is_added(self) -> None:
        world = started()
        world.workers_are(pods.worker(0), pods.worker(1, deleted=30))
        world.later(5)

        world.workers_are(oom(0), pods.worker(1, deleted=30))
        world.later(15)

        assert world.condition("Running")[2] == f"{RUNS}train-worker-1 was deleted; train-worker-0: {OOM}"

    @pytest.mark.parametrize(
        ("change", "workers", "counted", "is_behind"),
        [
            pytest.param(
                {"replicas": 3},
                [pods.worker(0), pods.worker(1), pods.worker(2, created=30)],
                "3 of 3",
                False,
                id="scaled up",
            ),
            pytest.param(
                {"replicas": 1}, [pods.worker(0), pods.worker(1, deleted=30)], "1 of 1", False, id="scaled down"
            ),
            pytest.param(
                {"worker": OTHER}, [pods.worker(0), pods.worker(1, deleted=30)], "0 of 2", False, id="new template"
            ),
            pytest.param(
                {"worker": OTHER},
                [pods.worker(0), pods.worker(1, deleted=30)],
                "0 of 2",
                True,
                id="new template that the StatefulSet has not observed",
            ),
        ],
    )
    def test_a_worker_that_comes_or_goes_because_the_job_was_changed_has_not_died(
        self, change: dict[str, Any], workers: list[Body], counted: str, *, is_behind: bool
    ) -> None:
        elastic: dict[str, Any] = {"elastic": {"minReplicas": 1}} if "worker" in change else {}
        world = started(**elastic)
        world.change(**mpi_job(**elastic, **change)["spec"])
        world.settle()

        world.workers_are(*workers, revision="train-worker-new" if "worker" in change else REVISION)
        world.get("StatefulSet")["status"]["observedGeneration"] -= is_behind
        world.later(15)

        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}{counted} workers are Ready")

    def test_a_launcher_whose_node_is_unreachable_is_reported(self) -> None:
        said = "Launcher pod train-launcher-1 was lost with its node node-1"
        assert ("Warning", "MPIJobLauncherFailed", said) in loses_launcher().events


class TestWhenTheLauncherStartsAgain:
    def test_a_launcher_that_was_deleted_is_named_until_there_is_another(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(deleted=50), active=0)
        world.later(5)
        said = world.condition("Restarting")

        world.launcher_is(
            pods.launcher(deleted=50, phase="Failed", conditions={}, containers=[pods.ended("mpi", 143)]), failed=1
        )
        world.later(15)
        assert world.condition("Restarting") == said
        world.launcher_is()
        world.later(15)

        assert world.condition("Restarting") == said
        assert said[2] == "launcher pod train-launcher-1 was deleted"

    def test_the_last_launcher_is_named_instead_of_one_that_had_failed_before(self) -> None:
        world, _, second = started_again()
        second["status"] |= pods.launcher(conditions=pods.lost(40))["status"]
        world.later(60)
        said = "launcher pod train-launcher-2 was lost with its node node-1"

        world.launcher_is()
        world.later(15)
        assert world.condition("Restarting") == (True, "MPIJobRestarting", said)
        assert world.later(60) == []

        gives_up(world)
        world.later(15)
        assert world.condition("Failed")[1:] == ("BackoffLimitExceeded", f"Limit; {said}")

    def test_workers_that_were_lost_with_the_launcher_are_named(self) -> None:
        world = started()
        world.workers_are(pods.worker(0), pods.worker(1, conditions=pods.lost(30)))
        world.launcher_is(pods.launcher(conditions=pods.lost(30)), active=1)
        world.later(50)
        worker = "train-worker-1 was lost with its node node-1"
        assert world.events[-1][2] == f"{LOST.replace('l', 'L', 1)}; {worker}"

        world.launcher_is(active=0)
        world.later(15)

        assert world.condition("Restarting")[2] == f"{worker}; {LOST}"

    def test_a_worker_whose_loss_is_known_after_the_launchers_end_is_named_and_stays_named(self) -> None:
        world = started()
        world.launcher_is(end_of(249, "mpirt-rsh: node node-2 is unreachable"), failed=1)
        world.later(5)
        world.workers_are(pods.worker(0), pods.worker(1, node="node-2", conditions=pods.lost(50)))
        world.later(60)
        said = world.condition("Restarting")

        world.workers_are(pods.worker(0), pods.worker(1, created=60))
        world.later(15)

        assert world.condition("Restarting") == said
        assert said[2] == (
            "train-worker-1 was lost with its node node-2; "
            "launcher pod train-launcher-1 ended with code 249: mpirt-rsh: node node-2 is unreachable"
        )

    def test_a_cause_that_is_known_a_second_later_is_reported_at_once(self) -> None:
        world = started()
        world.launcher_is(end_of(205, "ORTE has lost communication", since=12, at=18), failed=1)
        world.later(5)
        assert world.condition("Restarting")[2].startswith("launcher pod")

        world.workers_are(pods.worker(0), oom(1, at=17))
        world.later(1)

        assert world.condition("Restarting")[2] == (
            f"train-worker-1: {OOM}; "
            "launcher pod train-launcher-1 ended with code 205: ORTE has lost communication"
        )
        assert world.told().count("MPIJobRestarting") == 1

    @pytest.mark.parametrize(
        ("died", "worker"),
        [pytest.param(17, f"train-worker-1: {OOM}; ", id="before"), pytest.param(33, "", id="after")],
    )
    @pytest.mark.parametrize("state", ["Running", "Succeeded"])
    def test_a_cause_that_is_known_when_the_launcher_runs_again_is_still_reported(
        self, died: float, worker: str, state: str
    ) -> None:
        world = started()
        failed = end_of(137, "rank 1 was killed", since=12, at=18)
        world.launcher_is(failed)
        world.settle()
        world.seconds = 30
        world.launcher_is(retried(created=28), active=1)
        world.settle()
        said = "launcher pod train-launcher-1 ended with code 137 (SIGKILL): rank 1 was killed"
        assert world.condition("Restarting") == (False, "MPIJobRunning", f"{AGAIN}{said}")
        if state == "Succeeded":
            world.finish(succeeded=1)
        assert world.state() == state

        world.workers_are(pods.worker(0), oom(1, at=died))
        world.later(15)

        assert world.condition("Restarting") == (False, "MPIJobRunning", f"{AGAIN}{worker}{said}")
        assert world.later(60) == []

    def test_the_cause_of_the_last_of_several_attempts_is_reported(self) -> None:
        world = started(runPolicy={"backoffLimit": 6})
        world.launcher_is(end_of(1, since=12, at=18))
        world.settle()
        world.seconds = 42
        world.launcher_is(end_of(2, number=2, created=28, since=30, at=40))
        world.settle()
        world.later(10)
        world.launcher_is(retried(3, created=50), active=1)
        world.settle()

        world.workers_are(oom(0, at=17), oom(1, at=39))
        world.later(15)

        assert world.condition("Restarting")[2] == (
            f"{AGAIN}train-worker-1: {OOM}; launcher pod train-launcher-2 ended with code 2"
        )

    def test_the_cause_stays_when_the_job_is_suspended(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(deleted=50), active=0)
        world.later(5)

        world.change(runPolicy={"suspend": True})
        world.settle()

        said = f"{AGAIN}launcher pod train-launcher-1 was deleted"
        assert world.condition("Restarting") == (False, "MPIJobRunning", said)

    @pytest.mark.parametrize(
        ("change", "pod", "said"),
        [
            pytest.param({}, pods.launcher(deleted=50), "the launcher Job was deleted", id="deleted"),
            pytest.param({"worker": OTHER}, end_of(143), "the workers' template was changed", id="changed"),
        ],
    )
    def test_the_reason_why_a_launcher_job_is_being_deleted_is_the_cause(
        self, change: dict[str, Any], pod: Body, said: str
    ) -> None:
        world = started()
        world.change(**mpi_job(**change)["spec"])
        world.launcher_is(pod, active=1)
        world.get("Job")["metadata"]["deletionTimestamp"] = "2026-05-04T12:00:30Z"

        world.later(5)

        assert world.condition("Restarting")[2] == said

    def test_a_launcher_that_came_after_the_launcher_job_was_deleted_is_named(self) -> None:
        world = started()
        world.launcher_is()
        world.lose_launcher_job()
        world.later(5)
        assert world.condition("Restarting")[2] == "the launcher Job was deleted"

        world.launcher_is(end_of(2, number=2, created=22, since=23), failed=1)
        world.later(15)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-2 ended with code 2"

    def test_a_launcher_of_which_nothing_was_ever_reported_is_gone(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(phase="Pending", conditions={}, containers=[]), failed=1)
        world.job["status"]["conditions"] = []

        world.later(15)

        assert world.condition("Restarting")[2] == "the launcher's pod is gone"
