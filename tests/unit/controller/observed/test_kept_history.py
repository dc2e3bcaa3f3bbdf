"""What happened in a job where the CRD drops it, and where another version of the controller wrote it down."""

from __future__ import annotations

from typing import Any

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, mpi_job, time
from tests.unit.controller.observed.attempts import attempts, failed
from tests.unit.controller.started import started
from tests.unit.controller.world import World, writes


class Pruned(World):
    """A cluster whose CRD has no such fields."""

    def carry_out(self, action: Any) -> bool:
        done = super().carry_out(action)
        if self.job is not None:
            for name in ("attempts", "attemptsForgotten", "rerun", "disbelieved"):
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
        assert world.get("Job")["spec"]["backoffLimit"] == 5

    def test_what_died_is_told_still_when_it_shows_no_more(self) -> None:
        world = Pruned()
        world.start()
        evicted = pods.worker(1, phase="Failed", conditions={}, reason="Evicted", message="low on disk")
        world.workers_are(pods.worker(0), evicted)
        world.settle()

        world.workers_are(pods.worker(0), pods.worker(1, created=30))
        world.launcher_is(failed(code=205), failed=1)
        world.later(15)

        assert world.condition("Restarting")[2] == (
            "train-worker-1 was evicted: low on disk; launcher pod train-launcher-1 ended with code 205"
        )

    def test_nothing_is_written_again_and_again(self) -> None:
        world = Pruned()
        world.start()
        world.launcher_is(failed(), failed=1)
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
        assert world.job is not None
        world.job["metadata"]["annotations"] = {"mpirt.dev/rerun": "1"}
        world.later(15)
        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()
        world.finish(succeeded=1)
        world.later(15)

        assert world.later(60) == []


def earlier_version(world: World, **conditions: Body) -> World:
    """The same, with a status as the version wrote it that kept no history, and these fields of its conditions."""
    assert world.job is not None
    for row in world.job["status"]["conditions"]:
        row.update(conditions.get(row["type"], {}))
    for name in ("attempts", "attemptsForgotten", "rerun"):
        world.job["status"].pop(name, None)
    return world


class TestAnUpgradeOfTheController:
    TOLD = "train-worker-1 was evicted: low on disk; launcher pod train-launcher-1 ended with code 205"

    def restarting(self) -> World:
        world = started()
        world.launcher_is(failed(code=205), failed=1)
        world.settle()
        return earlier_version(world, Restarting={"message": self.TOLD})

    def test_in_the_middle_of_a_restart_keeps_what_was_told(self) -> None:
        world = self.restarting()

        world.later(15)

        assert world.condition("Restarting") == (True, "MPIJobRestarting", self.TOLD)
        assert world.told().count("MPIJobRestarting") == 1

    def test_tells_it_still_when_the_launcher_runs_again(self) -> None:
        world = self.restarting()
        world.seconds = 40
        second = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=35)])

        world.launcher_is(failed(code=205), second, failed=1, active=1)
        world.settle()

        assert world.state() == "Running"
        assert world.condition("Restarting")[2] == f"The launcher had to start again: {self.TOLD}"

    def test_tells_it_still_though_the_failed_pod_is_gone(self) -> None:
        world = self.restarting()
        world.seconds = 40
        second = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=35)])

        world.launcher_is(second, failed=1, active=1)
        world.settle()

        assert world.condition("Restarting")[2] == f"The launcher had to start again: {self.TOLD}"
        assert world.later(60) == []

    def test_tells_nothing_twice_that_shows_still(self) -> None:
        world = self.restarting()
        dead = pods.restarted("worker", 137, "OOMKilled", at=17)
        world.workers_are(pods.worker(0), pods.worker(1, containers=[dead]))
        world.seconds = 40
        second = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=35)])

        world.launcher_is(failed(code=205), second, failed=1, active=1)
        world.settle()

        assert world.condition("Restarting")[2] == f"The launcher had to start again: {self.TOLD}"

    def test_while_a_launcher_runs_keeps_what_died_beside_it(self) -> None:
        world = started()
        told = "Launcher pod train-launcher-1 runs on node node-1; train-worker-1 was evicted: low on disk"
        earlier_version(world, Running={"reason": "MPIJobWorkerFailed", "message": told})

        world.later(15)
        assert world.condition("Running") == (True, "MPIJobWorkerFailed", told)
        world.launcher_is(failed(code=205), failed=1)
        world.later(15)

        assert world.condition("Restarting")[2] == f"{told}; launcher pod train-launcher-1 ended with code 205"

    def test_and_its_launcher_is_gone_meanwhile(self) -> None:
        world = started()
        told = "Launcher pod train-launcher-1 was lost with its node node-1"
        earlier_version(world, Running={"reason": "MPIJobLauncherFailed", "message": told})

        world.launcher_is(failed=1)
        world.later(15)

        assert world.condition("Restarting")[2].startswith(told)

    def test_leaves_a_job_that_is_over_as_it_is(self) -> None:
        world = started()
        world.launcher_is(failed(), failed=1)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
        assert world.job is not None
        for row in world.job["status"]["conditions"]:
            row["message"] = "as an earlier version said it"
        world.later(15)
        earlier_version(world)

        assert world.later(60) == []

    def test_disturbs_no_job_that_runs_well(self) -> None:
        world = earlier_version(started())

        assert writes(world.later(60)) == []

    def test_from_one_that_did_not_record_when_a_pod_was_created_writes_nothing_for_that(self) -> None:
        world = started()
        del attempts(world)[0]["creationTime"]

        assert writes(world.later(60)) == []
        world.launcher_is(failed(), failed=1)
        world.later(15)
        assert attempts(world)[0]["creationTime"] == time(10)
