"""What may run a job again that is over, and what is in the way of it."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.actions import Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import container, mpi_job, template, time
from tests.unit.controller.world import RERUN, RERUN_WHEN_DELETED, World, annotate, started, succeeded, writes


def run_again(world: World) -> None:
    """Its user wants it, and it comes to a good end again."""
    annotate(world, **{RERUN: "1"})
    world.later(10)
    world.workers_are(pods.worker(0), pods.worker(1))
    world.settle()
    world.finish(succeeded=1)
    world.later(15)


class TestItRunsAgain:
    @pytest.mark.parametrize(("policy", "kept"), [("Running", []), ("None", ["delete StatefulSet"])])
    def test_by_an_annotation_with_a_new_value_once_kept_workers_are_gone(
        self, policy: str, kept: list[str]
    ) -> None:
        world = succeeded(policy)

        annotate(world, **{RERUN: "1"})
        done = writes(world.later(10))

        assert done[: len(kept) + 2] == ["delete Job", *kept, "create StatefulSet"]
        assert world.condition("Succeeded") == (False, "MPIJobRunAgain", "The job runs again.")
        assert world.state() == "Created"
        assert world.job["status"]["startTime"] == time(world.seconds)
        assert "completionTime" not in world.job["status"]

    def test_and_comes_to_another_end(self) -> None:
        world = succeeded("Running")
        run_again(world)

        assert world.state() == "Succeeded"
        assert world.told().count("MPIJobSucceeded") == 2
        assert world.later(60) == []

    def test_once_for_each_value(self) -> None:
        world = succeeded("Running")
        run_again(world)
        world.lose_launcher_job()

        assert world.later(60) == []
        annotate(world, **{RERUN: "2"})
        assert "create StatefulSet" in writes(world.later(10))

    def test_by_the_deletion_of_its_launcher_job_where_it_says_so(self) -> None:
        world = succeeded("Running", **{RERUN_WHEN_DELETED: "true"})
        assert world.later(60) == []
        world.lose_launcher_job()

        world.later(10)

        assert "StatefulSet" in world.kinds()
        assert world.condition("Succeeded")[0] is False

    @pytest.mark.parametrize(
        ("name", "value"),
        [(RERUN, "1"), *((RERUN_WHEN_DELETED, said) for said in ("false", "", "yes"))],
    )
    def test_not_by_a_value_from_before_its_end_nor_by_a_deletion_for_any_other_word(
        self, name: str, value: str
    ) -> None:
        world = succeeded("Running", **{name: value})
        world.lose_launcher_job()

        assert world.later(60) == []

    def test_not_before_its_launcher_job_is_gone(self) -> None:
        world = succeeded("Running")
        world.get("Job")["metadata"]["deletionTimestamp"] = time(30)
        annotate(world, **{RERUN: "1"})

        assert world.later(60) == []
        assert world.state() == "Succeeded"

    def test_pods_of_the_run_before_on_lost_nodes_do_not_keep_it_from_running(self) -> None:
        world = succeeded("None")
        world.workers_are(pods.worker(0), pods.worker(1, node="node-2", conditions=pods.given_up(30), deleted=60))
        world.get("StatefulSet")["metadata"]["deletionTimestamp"] = time(40)
        world.get("Job")["metadata"]["deletionTimestamp"] = time(40)
        annotate(world, **{RERUN: "1"})

        assert writes(world.later(60)) == ["delete Pod"]

    def test_not_where_nothing_tells_which_value_is_new(self) -> None:
        world = succeeded("Running")
        del world.job["status"]["attempts"]
        world.objects.clear()
        annotate(world, **{RERUN: "1"})

        assert world.later(60) == []

    def test_what_happened_in_the_run_before_is_not_told_of_this_one(self) -> None:
        world = started(runPolicy={"cleanPodPolicy": "Running", "backoffLimit": 0})
        end: Any = pods.ended("mpi", 3, since=12, at=18)
        world.launcher_is(pods.launcher(phase="Failed", conditions={}, containers=[end]), failed=1)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)

        annotate(world, **{RERUN: "1"})
        world.later(10)

        assert world.job["status"]["attempts"] == []
        assert world.job["status"]["rerun"] == "1"


class TestWhatIsInTheWay:
    """An object that can't be made keeps nothing from being given back."""

    def rejected(self, **spec: Any) -> World:
        """A job that runs, and whose changed template the API server doesn't take."""
        world = started(**spec)
        world.refuse["Job"] = Rejection("Job", "", "denied", final=False)
        world.change(**mpi_job(launcher=template(container("mpi", image="mpi:5")), **spec)["spec"])
        world.settle()
        assert world.condition("Running")[1] == "MPIJobRefused"
        return world

    def test_a_suspension_is_carried_out(self) -> None:
        world = self.rejected()

        world.change(runPolicy={"suspend": True})

        assert {"delete Job", "delete StatefulSet"} <= set(writes(world.settle()))
        assert world.state() == "Suspended"

    def test_a_status_of_a_finished_job_that_somebody_else_has_written_is_no_obstacle_more(self) -> None:
        world = started()
        world.finish(succeeded=1)
        conditions = world.job["status"]["conditions"]
        world.job["status"]["conditions"] = [row for row in conditions if row["type"] == "Succeeded"]
        world.get("Service")["metadata"]["ownerReferences"] = []

        world.settle()

        assert world.condition("Running")[:2] == (False, "ErrResourceExists")

    @pytest.mark.parametrize("is_at_its_end", [False, True], ids=["before its end", "at its end"])
    def test_a_finished_job_gives_back_its_workers(self, *, is_at_its_end: bool) -> None:
        policy = {"cleanPodPolicy": "Running"}
        world = started(runPolicy=policy) if is_at_its_end else self.rejected(runPolicy=policy)
        if is_at_its_end:
            del world.objects["ConfigMap", "train-config"]
            world.refuse["ConfigMap"] = Rejection("ConfigMap", "", "denied", final=False)

        world.finish(succeeded=1)

        assert world.state() == "Succeeded"
        assert "StatefulSet" not in world.kinds()

    def test_a_launcher_job_that_is_held_back_and_refused_is_told(self) -> None:
        world = started()
        world.lose_launcher_job()
        world.refuse["Job"] = Rejection("Job", "", "denied", final=False)

        world.settle()

        assert world.condition("Running")[1] == "MPIJobRefused"


class TestALauncherJobThatSomebodySuspends:
    def test_stays_suspended_and_the_job_says_so(self) -> None:
        world = started()
        world.edit("Job", suspend=True)
        world.launcher_is()

        done = world.later(15)

        assert "patch Job" not in writes(done)
        assert world.condition("Running")[:2] == (False, "MPIJobLauncherNotRunning")
        assert world.condition("Running")[2].startswith("launcher Job train-launcher is suspended")
