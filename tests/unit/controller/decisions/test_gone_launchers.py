"""A launcher Job that somebody else has deleted: a job that may have succeeded is not run again."""

from __future__ import annotations

import copy

import pytest

from mpirt.controller.model.actions import Find
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, time
from tests.unit.controller.world import World, started, with_workers, writes


def running(**policy: object) -> World:
    return started(runPolicy=policy)


def complete(world: World, kind: str = "Complete") -> Body:
    """The status of a launcher Job that has ended."""
    row = {"type": kind, "status": "True", "reason": "", "lastTransitionTime": time(world.seconds)}
    return {"conditions": [row], "succeeded": 1}


def vanishes(world: World) -> None:
    """Nobody has seen the launcher Job go, nor its pod."""
    world.launcher_is()
    world.lose_launcher_job()
    world.gone_jobs.clear()


class TestOneThatHadEnded:
    @pytest.mark.parametrize("has_succeeded", [True, False])
    def test_before_it_was_deleted_has_the_end_that_it_had(self, *, has_succeeded: bool) -> None:
        world = running()
        if has_succeeded:
            ended = pods.launcher(phase="Succeeded", containers=[pods.ended("mpi", 0, at=world.seconds)])
            world.launcher_is(ended, **complete(world))
        else:
            world.launcher_is(**complete(world, "Failed"))
        world.lose_launcher_job()

        world.later(5)

        assert world.state() == ("Succeeded" if has_succeeded else "Failed")
        assert world.made["Job"] == 1

    def test_after_it_had_lost_a_worker_is_not_believed_and_its_job_runs_again(self) -> None:
        world = running()
        ended = pods.launcher(phase="Succeeded", containers=[pods.ended("mpi", 0, at=world.seconds)])
        world.launcher_is(ended, **complete(world))
        world.workers_are(pods.worker(0), pods.worker(1, containers=[pods.running("worker", since=17)]))
        world.lose_launcher_job()

        done = writes(world.later(5))

        assert world.condition("Restarting")[:2] == (True, "WorkerLost")
        assert done.index("status") < done.index("create Job")

    def test_while_a_deadline_passed_has_the_end_that_it_had(self) -> None:
        world = running(activeDeadlineSeconds=60)
        world.launcher_is(**complete(world))
        world.lose_launcher_job()

        world.later(3600)

        assert world.state() == "Succeeded"


class TestOneThatIsBeingDeleted:
    def test_while_it_ran_has_not_failed_by_the_end_of_its_pod(self) -> None:
        """Its deletion in the foreground waits for the pod, which is ended by that."""
        world = running()
        world.get("Job")["metadata"]["deletionTimestamp"] = time(world.seconds)
        world.gone_jobs = [copy.deepcopy(world.get("Job"))]
        ended = pods.ended("mpi", 143, at=world.seconds)
        world.launcher_is(pods.launcher(phase="Failed", deleted=20, conditions={}, containers=[ended]), active=1)

        world.settle()

        assert "failedLauncher" not in world.job["status"]


class TestOneThatNobodyHasSeenGo:
    def test_is_looked_for_before_anything_else_is_done(self) -> None:
        world = running()
        vanishes(world)

        [action] = world.plan().actions

        assert isinstance(action, Find)
        assert (action.kind, action.name) == ("Job", "train-launcher")

    def test_is_not_started_again_and_the_job_says_what_to_do(self) -> None:
        world = running()
        vanishes(world)

        done = world.settle()

        assert writes(done)[:3] == ["find Job", "tell LauncherGone", "status"]
        is_failed, reason, message = world.condition("Failed")
        assert (is_failed, reason) == (True, "LauncherGone")
        assert (
            "unknown how it ended; to run the job again, annotate it with a new value of mpirt.dev/rerun"
            in message
        )
        assert world.job["status"]["completionTime"] == time(world.seconds)
        assert world.later(3600) == []

    def test_is_started_again_if_that_is_asked_for(self) -> None:
        world = running()
        vanishes(world)
        world.settle()

        world.job["metadata"]["annotations"] = {"mpirt.dev/rerun": "1"}
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()

        assert world.made["Job"] == 2

    @pytest.mark.parametrize(("phase", "code"), [("Failed", 1), ("Succeeded", 0)])
    def test_and_whose_pod_is_left_is_started_again_unless_it_has_succeeded(self, phase: str, code: int) -> None:
        world = running()
        left = pods.launcher(phase=phase, containers=[pods.ended("mpi", code, at=world.seconds)])
        vanishes(world)
        world.objects["Pod", "train-launcher-1"] = left

        assert ("create Job" in writes(world.settle())) is (phase == "Failed")
        assert phase == "Failed" or world.condition("Failed")[1] == "LauncherGone"

    def test_is_told_though_the_spec_is_invalid(self) -> None:
        world = running()
        vanishes(world)
        world.change(slotsPerWorker=-1)

        world.settle()

        assert world.condition("Failed")[1] == "LauncherGone"

    def test_of_a_job_that_never_ran_is_created(self) -> None:
        world = with_workers()
        world.settle()
        vanishes(world)

        assert "create Job" in writes(world.settle())


class TestOneThatTheControllerItselfHasDeleted:
    def test_is_not_missed_after_a_suspension(self) -> None:
        world = running()
        world.change(runPolicy={"suspend": True})
        world.settle()
        world.change(runPolicy={"suspend": False})
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1))

        assert "create Job" in writes(world.settle())

    def test_ends_no_rerun(self) -> None:
        world = running(cleanPodPolicy="None")
        world.finish(succeeded=1)
        world.job["metadata"]["annotations"] = {"mpirt.dev/rerun": "1"}
        deleted = world.get("Job")

        world.settle()
        world.gone_jobs = [deleted]
        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()

        assert world.state() != "Succeeded"
        assert world.made["Job"] == 2
