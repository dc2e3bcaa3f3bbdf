"""A job whose CRD, that of another operator, drops what the status has of the history."""

from __future__ import annotations

from mpirt.controller.model.actions import Action, WriteStatus
from tests.unit.controller import pods
from tests.unit.controller.jobs import mpi_job, time
from tests.unit.controller.world import World, writes


class Pruned(World):
    """A cluster whose CRD has no such fields."""

    lost_writes = 0
    """How many of the next writes of the status fail."""

    def carry_out(self, action: Action) -> bool:
        if isinstance(action, WriteStatus) and self.lost_writes:
            self.lost_writes -= 1
            return False
        done = super().carry_out(action)
        for name in ("attempts", "attemptsForgotten", "rerun", "failedLauncher"):
            self.job.get("status", {}).pop(name, None)
        return done


class TestWhereTheCrdDropsIt:
    def test_a_launcher_that_is_not_believed_is_replaced(self) -> None:
        world = Pruned()
        world.start()
        world.workers_are(pods.worker(0), pods.worker(1, containers=[pods.restarted("worker", 0, at=18)]))
        world.launcher_is(
            pods.launcher(phase="Succeeded", conditions={}, containers=[pods.ended("mpi", 0, at=19)])
        )

        world.finish(succeeded=1)

        assert world.condition("Restarting")[1] == "WorkerLost"
        assert world.get("Job")["metadata"]["uid"] == "uid-of-Job-2"

    def test_an_attempt_that_failed_while_nobody_looked_is_followed_by_the_next_one(self) -> None:
        world = Pruned()
        world.start()
        failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Limit"}
        world.launcher_is(failed=1, conditions=[{**failed, "lastTransitionTime": time(world.seconds)}])

        assert "create Job" in writes(world.later(60))

    def test_an_attempt_that_failed_is_followed_by_the_next_one_when_the_status_has_been_written(self) -> None:
        world = Pruned()
        world.start()
        world.launcher_is(pods.failed_launcher())
        world.lost_writes = 2

        done = writes(world.settle())

        assert world.lost_writes == 0
        assert (done.count("delete Job"), done.count("create Job")) == (1, 1)
        assert world.state() == "Restarting"

    def test_what_died_is_told_still_when_it_shows_no_more(self) -> None:
        world = Pruned()
        world.start()
        evicted = pods.worker(1, phase="Failed", conditions={}, reason="Evicted", message="low on disk")
        world.workers_are(pods.worker(0), evicted)
        world.settle()

        world.workers_are(pods.worker(0), pods.worker(1, created=30))
        world.launcher_is(pods.failed_launcher(code=205), failed=1)
        world.later(15)

        assert world.condition("Restarting")[2] == (
            "train-worker-1 was evicted: low on disk; launcher pod train-launcher-1 ended with code 205"
        )

    def test_nothing_is_written_again_and_again(self) -> None:
        world = Pruned()
        world.start()
        world.launcher_is(pods.failed_launcher(), failed=1)
        world.later(15)

        assert world.later(60) == []
        assert world.later(3600) == []

    def test_a_job_without_trouble_costs_no_write_more(self) -> None:
        world, other = World(), Pruned()
        for each in (world, other):
            each.start()
            done = pods.ended("mpi", 0, "Completed")
            each.launcher_is(pods.launcher(phase="Succeeded", conditions={}, containers=[done]), succeeded=1)
            each.finish(succeeded=1)
            each.later(60)

        assert other.writes == world.writes

    def test_a_finished_job_runs_again_once_for_a_value(self) -> None:
        world = Pruned(mpi_job(runPolicy={"cleanPodPolicy": "Running"}))
        world.start()
        world.finish(succeeded=1)
        world.job["metadata"]["annotations"] = {"mpirt.dev/rerun": "1"}
        world.later(15)
        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()
        world.finish(succeeded=1)
        world.later(15)

        assert world.later(60) == []
