"""An attempt that has failed: its Job makes room for the next one, at once unless attempts end soon."""

from __future__ import annotations

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at, time
from tests.unit.controller.trainings import TrainingWorld, training_job
from tests.unit.controller.world import RERUN, World, annotate, started, writes

LIMIT = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Limit"}


def ends(world: World, code: int = 1, *, after: float = 5) -> list[str]:
    """The launcher that runs fails, so long after its start; these are the writes that follow."""
    body = next(body for body in launchers(world) if body["status"]["phase"] == "Running")
    since = world.seconds
    world.seconds += after
    end = pods.ended("mpi", code, since=since, at=world.seconds)
    body["status"] = pods.launcher(phase="Failed", conditions={}, containers=[end])["status"]
    return writes(world.settle())


def begins(world: World, number: int) -> None:
    """The launcher of the next attempt runs."""
    runs = pods.running("mpi", since=world.seconds)
    world.launcher_is(
        pods.launcher(f"train-launcher-{number}", created=world.seconds, containers=[runs]), active=1
    )
    world.settle()


def launchers(world: World) -> list[Body]:
    return [body for (kind, name), body in world.objects.items() if kind == "Pod" and "launcher" in name]


class TestAnAttemptThatHasFailed:
    def test_is_followed_at_once_by_the_next_one(self) -> None:
        world = started()

        done = ends(world)

        assert [one for one in done if "Pod" in one or ("Job" in one and "tell" not in one)] == [
            "patch Pod",
            "delete Job",
            "create Job",
        ]
        assert world.condition("Restarting")[2] == "launcher pod train-launcher-1 ended with code 1"
        begins(world, 2)
        assert world.state() == "Running"
        assert world.job["status"]["replicaStatuses"]["Launcher"]["failed"] == 1

    def test_is_written_down_before_its_job_is_deleted(self) -> None:
        world = started()
        world.launcher_is(pods.failed_launcher())

        first = writes(world.plan().actions)

        assert "status" in first
        assert not {"patch Pod", "delete Job"} & set(first)

    def test_keeps_its_pod_with_the_log_as_the_jobs_own(self) -> None:
        world = started()

        ends(world)

        [pod] = launchers(world)
        owners = [owner["uid"] for owner in pod["metadata"]["ownerReferences"]]
        assert world.job["metadata"]["uid"] in owners
        assert not any(owner.get("controller") for owner in pod["metadata"]["ownerReferences"][1:])

    def test_is_known_by_its_job_alone_if_its_pod_is_gone(self) -> None:
        """Its node was lost, or it was evicted. Since Kubernetes 1.31 the Job says so before it has ended."""
        world = started()
        world.launcher_is(pods.launcher(deleted=60), active=1)
        world.get("Job")["status"]["conditions"] = [{**LIMIT, "type": "FailureTarget"}]

        world.settle()

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-1 was deleted"
        assert "Job" not in world.kinds(), "the pod is still there"
        del world.objects["Pod", "train-launcher-1"]
        assert "create Job" in writes(world.later(1))

    def test_is_the_last_one_without_retries_left(self) -> None:
        world = started(runPolicy={"backoffLimit": 1})
        ends(world)
        begins(world, 2)

        assert "delete Job" not in ends(world)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)

        assert world.condition("Failed")[2] == "Limit; launcher pod train-launcher-2 ended with code 1"
        assert world.job["status"]["replicaStatuses"]["Launcher"]["failed"] == 2

    @pytest.mark.parametrize("reason", ["DeadlineExceeded", "PodFailurePolicy"])
    def test_is_the_last_one_if_its_job_says_so(self, reason: str) -> None:
        world = started()

        world.finish("Failed", reason=reason, message="Limit", failed=1)
        world.later(10)

        assert world.condition("Failed")[1] == reason

    def test_is_the_last_one_if_the_time_is_over(self) -> None:
        world = started(runPolicy={"activeDeadlineSeconds": 18})

        assert "delete Job" not in ends(world)

    def test_is_the_last_one_if_the_time_is_over_while_the_spec_is_invalid(self) -> None:
        world = started(runPolicy={"activeDeadlineSeconds": 100})
        world.change(slotsPerWorker=-1)
        ends(world)
        world.get("Job")["status"] = {"conditions": [{**LIMIT, "lastTransitionTime": time(world.seconds)}]}

        world.later(100)

        assert world.condition("Failed")[:2] == (True, "DeadlineExceeded")

    def test_is_followed_by_none_while_the_spec_is_invalid(self) -> None:
        world = started()
        world.change(slotsPerWorker=-1)

        assert "delete Job" not in ends(world)
        assert world.condition("Running")[:2] == (False, "MPIJobFailedValidation")

        world.change(slotsPerWorker=1)
        assert "create Job" in writes(world.settle())


class TestAttemptsThatEndSoon:
    def test_are_followed_later_and_later(self) -> None:
        world = started()
        ends(world)

        for number, pause in enumerate((10, 20, 40, 80, 80), start=2):
            begins(world, number)
            assert "create Job" not in ends(world)
            assert "create Job" not in writes(world.later(pause - 1))
            assert world.plan().again == at(world.seconds + 1)
            assert "create Job" in writes(world.later(1))

    def test_say_when_the_next_one_comes(self) -> None:
        world = started()
        ends(world)
        begins(world, 2)
        ends(world)

        _, reason, message = world.condition("Running")
        assert reason == "MPIJobLauncherNotRunning"
        assert message.startswith("the next attempt begins at 2026-05-04T12:00:35Z: the last ones ended too soon")

    def test_count_no_more_after_one_that_has_run_for_a_minute(self) -> None:
        world = started()
        ends(world)
        begins(world, 2)

        assert "create Job" in ends(world, after=60)


def failed_for_good(policy: str) -> World:
    """A job with this cleanPodPolicy, of which both attempts have failed."""
    world = started(runPolicy={"backoffLimit": 1, "cleanPodPolicy": policy})
    ends(world)
    begins(world, 2)
    ends(world)
    world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
    return world


class TestThePodsOfEarlierAttempts:
    def test_go_with_a_rerun(self) -> None:
        world = failed_for_good("Running")

        annotate(world, **{RERUN: "1"})
        world.later(10)

        assert launchers(world) == []
        assert world.attempts() == []

    def test_go_with_a_finished_job_whose_policy_is_all(self) -> None:
        assert launchers(failed_for_good("All")) == []

    def test_do_not_show_how_one_has_ended_that_nobody_saw(self) -> None:
        world = started()
        ends(world)
        begins(world, 2)
        del world.objects["Pod", "train-launcher-2"]
        del world.objects["Job", "train-launcher"]

        world.settle()

        assert world.condition("Failed")[1] == "LauncherGone"


@pytest.mark.parametrize(("reason", "is_followed"), [("PodFailurePolicy", False), ("BackoffLimitExceeded", True)])
def test_where_an_exit_is_final_the_job_says_whether_it_was_one(reason: str, *, is_followed: bool) -> None:
    job = training_job()
    job["spec"]["etReplicaSpecs"]["launcher"]["restartPolicy"] = "Always"
    world = TrainingWorld(job)
    world.run()
    status = pods.launcher(phase="Failed", conditions={}, containers=[pods.ended("launcher", 1)])["status"]
    world.objects["Pod", "elastic-launcher-1"]["status"] = status
    assert "delete Job" not in writes(world.settle())

    world.get("Job")["status"]["conditions"] = [{**LIMIT, "reason": reason}]

    assert ("create Job" in writes(world.settle())) is is_followed
