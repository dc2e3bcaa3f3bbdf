"""Which pod died and how, in the conditions of a job that has failed, or whose success may be false."""

from __future__ import annotations

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at
from tests.unit.controller.messages.launchers import (
    LOST,
    OOM,
    end_of,
    gives_up,
    loses_launcher,
    oom,
    tolerant,
)
from tests.unit.controller.world import ONCE, World, started

ENDED = "launcher pod train-launcher-1 ended with code"


class TestWhenTheJobHasFailed:
    @pytest.mark.parametrize(
        ("died", "worker"),
        [pytest.param(17, f"train-worker-1: {OOM}; ", id="before"), pytest.param(40, "", id="after")],
    )
    def test_a_worker_that_died_before_is_named_if_its_node_reports_it_later(
        self, died: float, worker: str
    ) -> None:
        world = started(runPolicy=ONCE)
        world.launcher_is(end_of(1, "last words", since=12, at=18), failed=1)
        gives_up(world)
        assert world.condition("Failed")[2] == f"Limit; {ENDED} 1: last words"

        world.workers_are(pods.worker(0), oom(1, at=died))
        world.later(15)

        message = f"Limit; {worker}{ENDED} 1: last words"
        assert world.condition("Failed")[2] == world.condition("Running")[2] == message
        assert world.later(60) == []

    def test_a_launcher_that_was_lost_with_its_node_is_named_and_stays_named(self) -> None:
        world = loses_launcher(runPolicy=ONCE)

        world.launcher_is()
        gives_up(world)
        world.later(15)

        assert world.condition("Failed")[2] == world.condition("Running")[2] == f"Limit; {LOST}"
        assert world.later(60) == []

    @pytest.mark.parametrize(
        ("reason", "said"),
        [
            pytest.param("BackoffLimitExceeded", "Limit; launcher pod train-launcher-1 was deleted", id="named"),
            pytest.param("DeadlineExceeded", "Limit", id="not named where the job took too long"),
        ],
    )
    def test_a_launcher_that_was_deleted(self, reason: str, said: str) -> None:
        world = started(runPolicy=ONCE)
        world.launcher_is(pods.launcher(deleted=50), active=0)
        world.later(5)

        world.launcher_is()
        gives_up(world, reason=reason)
        world.later(15)

        assert world.condition("Failed")[2] == said

    def test_a_worker_that_is_no_longer_needed_by_then_is_named(self) -> None:
        world = started(runPolicy={"cleanPodPolicy": "Running", **ONCE})
        world.launcher_is(end_of(1, since=12, at=18), failed=1)
        gives_up(world)
        assert "StatefulSet" not in world.kinds()

        world.put(pods.worker(1, deleted=60, containers=[pods.ended("worker", 137, "OOMKilled", at=17)]))
        world.later(15)

        assert world.condition("Failed")[2] == f"Limit; train-worker-1: {OOM}; {ENDED} 1"

    def test_the_failure_is_reported_when_the_launchers_pod_is_seen_to_have_failed(self) -> None:
        world = started(runPolicy=ONCE)
        gives_up(world)
        assert world.state() == "Running"
        assert (world.plan().actions, world.plan().again) == ((), at(world.seconds + 5))

        world.launcher_is(end_of(3), **world.get("Job")["status"])
        world.settle()

        assert world.condition("Failed")[2] == f"Limit; {ENDED} 3"
        assert world.events[-1][2] == world.condition("Failed")[2]

    def test_no_restart_is_reported_when_the_last_attempt_has_failed(self) -> None:
        world = started(runPolicy=ONCE)
        world.launcher_is(end_of(3, since=12, at=18))
        assert (world.plan().actions, world.plan().again) == ((), at(33))

        gives_up(world)

        assert world.state() == "Failed"
        assert "MPIJobRestarting" not in world.told()

    def test_a_restart_is_reported_if_the_launcher_job_does_not_end_for_long(self) -> None:
        world = started(runPolicy=ONCE)
        world.launcher_is(end_of(3, since=12, at=18))

        world.later(20)

        assert world.state() == "Restarting"

    def test_a_cause_that_is_not_seen_in_time_is_reported_later(self) -> None:
        world = started(runPolicy=ONCE)
        gives_up(world)
        world.later(5)
        assert world.condition("Failed")[2] == "Limit"

        world.launcher_is(end_of(3), **world.get("Job")["status"])
        world.later(15)

        assert world.condition("Failed")[2] == f"Limit; {ENDED} 3"

    def test_a_worker_that_is_deleted_afterwards_is_not_named(self) -> None:
        world = started(runPolicy=ONCE)
        world.launcher_is(end_of(1), failed=1)
        gives_up(world)
        said = world.condition("Failed")

        world.workers_are(pods.worker(0), pods.worker(1, deleted=60))
        world.later(15)

        assert world.condition("Failed") == said


class TestASuccessThatMayBeFalse:
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

    @pytest.mark.parametrize(("died", "is_named"), [(11, False), (12, True), (22, True), (23, False)])
    def test_a_worker_that_died_right_before_is_named(self, died: int, *, is_named: bool) -> None:
        world = tolerant()
        world.workers_are(pods.worker(0), self.killed(died))
        world.later(5)

        self.ends(world, at=22)

        _, reason, message = world.condition("Succeeded")
        assert reason == "MPIJobSucceeded"
        cause = f" But right before, train-worker-1: {OOM}. {self.CHECK}" if is_named else ""
        assert message == f"{self.DONE}{cause}"
        assert world.condition("Running") == (False, reason, message)

    def test_a_worker_whose_death_is_reported_after_the_end_is_named_then(self) -> None:
        world = started()
        self.ends(world, at=18)
        assert world.condition("Succeeded")[2] == self.DONE

        world.workers_are(pods.worker(0), self.killed(18))
        world.later(15)

        assert "But right before, train-worker-1: container worker ended" in world.condition("Succeeded")[2]
