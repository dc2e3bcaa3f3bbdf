"""The history of a job where the CRD drops it or a part of it."""

from __future__ import annotations

from typing import Any

from tests.unit.controller import pods
from tests.unit.controller.jobs import mpi_job, time
from tests.unit.controller.observed.attempts import attempts, failed
from tests.unit.controller.world import World, started, writes


class Pruned(World):
    """A cluster whose CRD has no such fields."""

    def carry_out(self, action: Any) -> bool:
        done = super().carry_out(action)
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
        world.job["metadata"]["annotations"] = {"mpirt.dev/rerun": "1"}
        world.later(15)
        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()
        world.finish(succeeded=1)
        world.later(15)

        assert world.later(60) == []


def test_an_attempt_without_the_creation_time_of_its_pod_gets_it_with_the_next_news() -> None:
    world = started()
    del attempts(world)[0]["creationTime"]

    assert writes(world.later(60)) == []
    world.launcher_is(failed(), failed=1)
    world.later(15)
    assert attempts(world)[0]["creationTime"] == time(10)
