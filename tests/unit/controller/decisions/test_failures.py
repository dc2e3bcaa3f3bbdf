"""Lives of jobs that fail, and what goes when one has ended."""

from __future__ import annotations

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import at
from tests.unit.controller.started import started
from tests.unit.controller.world import writes


@pytest.mark.uncounted
class TestFailure:
    def test_an_attempt_that_failed_is_told_with_its_last_lines(self) -> None:
        world = started()
        end = pods.ended("mpi", 137, message="mpirt-rsh: train-worker-1: OOM\n", since=12, at=18)
        world.launcher_is(pods.launcher(phase="Failed", conditions={}, containers=[end]), failed=1)

        world.later(5)

        assert world.state() == "Restarting"
        assert world.condition("Restarting")[2] == (
            "launcher pod train-launcher-1 ended with code 137 (SIGKILL): mpirt-rsh: train-worker-1: OOM"
        )
        assert world.condition("Running")[1] == "MPIJobLauncherNotRunning"

    def test_with_the_worker_that_died_before(self) -> None:
        world = started()
        world.workers_are(pods.worker(0), pods.worker(1, containers=[pods.restarted("worker", 137, "OOMKilled")]))
        world.later(5)
        assert world.condition("Running") == (
            True,
            "MPIJobWorkerFailed",
            (
                "Launcher pod train-launcher-1 runs on node node-1; "
                "train-worker-1: container worker ended with code 137 (OOMKilled)"
            ),
        )
        end = pods.ended("mpi", 1, since=12, at=21)
        world.launcher_is(pods.launcher(phase="Failed", conditions={}, containers=[end]), failed=1)

        world.later(5)

        assert world.condition("Restarting")[2] == (
            "train-worker-1: container worker ended with code 137 (OOMKilled); "
            "launcher pod train-launcher-1 ended with code 1"
        )

    def test_and_what_the_pod_that_took_its_place_can_not_tell(self) -> None:
        world = started()
        evicted = pods.worker(1, phase="Failed", conditions={}, reason="Evicted", message="low on memory")
        world.workers_are(pods.worker(0), evicted)
        world.later(5)
        world.workers_are(pods.worker(0), pods.worker(1, created=1))
        world.launcher_is(active=0)

        world.later(5)

        assert world.condition("Restarting")[2] == (
            "train-worker-1 was evicted: low on memory; launcher pod train-launcher-1 is gone"
        )

    def test_when_it_runs_again_it_says_so(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(phase="Failed", containers=[pods.ended("mpi", 1)]), failed=1)
        world.later(5)

        again = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=31)])
        world.launcher_is(again, failed=1, active=1)
        world.later(5)

        assert world.state() == "Running"
        assert world.condition("Restarting")[0] is False
        assert world.told() == ["MPIJobCreated", "MPIJobRunning", "MPIJobRestarting", "MPIJobRunning"]

    def test_of_the_last_attempt_fails_the_job_with_the_cause(self) -> None:
        world = started()
        end = pods.ended("mpi", 137, "OOMKilled", message="last words")
        world.launcher_is(pods.launcher(phase="Failed", containers=[end]))

        world.finish("Failed", reason="BackoffLimitExceeded", message="Job has reached the limit", failed=7)

        assert world.state() == "Failed"
        assert world.condition("Failed") == (
            True,
            "BackoffLimitExceeded/OOMKilled",
            "Job has reached the limit; launcher pod train-launcher-1 ended with code 137 (OOMKilled): last words",
        )
        assert world.condition("Running")[1] == "BackoffLimitExceeded/OOMKilled"
        assert world.events[-1][:2] == ("Warning", "BackoffLimitExceeded/OOMKilled")

    def test_what_was_said_at_the_end_stays_when_the_pods_are_gone(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(phase="Failed", containers=[pods.ended("mpi", 3, message="last words")]))
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=7)
        said = world.condition("Failed")
        del world.objects["Pod", "train-launcher-1"]

        world.later(60)

        assert world.condition("Failed") == said
        assert world.told().count("BackoffLimitExceeded") == 1

    def test_without_a_trace_is_told_as_the_job_has_it(self) -> None:
        world = started()
        world.launcher_is()

        world.finish("Failed", reason="DeadlineExceeded", message="Job was active too long")
        world.later(5)

        assert world.condition("Failed") == (True, "DeadlineExceeded", "Job was active too long")

    def test_of_an_elastic_jobs_worker_is_forgotten_when_it_is_back(self) -> None:
        world = started(elastic={"minReplicas": 1})
        world.workers_are(pods.worker(0), pods.worker(1, conditions=pods.lost(30)))
        world.later(50)
        assert world.condition("Running")[1] == "MPIJobWorkerFailed"

        world.workers_are(pods.worker(0), pods.worker(1, created=80))
        world.later(5)

        assert world.condition("Running")[1] == "MPIJobRunning"

    def test_a_launcher_that_nobody_knows_the_age_of(self) -> None:
        world = started()
        pod = pods.launcher(phase="Failed", containers=[])
        del pod["metadata"]["creationTimestamp"]
        world.launcher_is(pod, failed=1)

        world.later(5)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-1 failed"

    def test_a_launcher_whose_pod_has_vanished(self) -> None:
        world = started()

        world.launcher_is()
        world.later(5)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-1 is gone"


NOTHING_GOES = ["train-launcher-1", "train-worker", "train-worker-0", "train-worker-1"]


@pytest.mark.uncounted
class TestTheEnd:
    @pytest.mark.parametrize(
        ("policy", "left"),
        [
            pytest.param("None", NOTHING_GOES, id="nothing goes"),
            pytest.param("Running", ["train-launcher-1"], id="workers go"),
            pytest.param("All", [], id="all pods go"),
        ],
    )
    def test_pods_go_by_the_policy(self, policy: str, left: list[str]) -> None:
        world = started(runPolicy={"cleanPodPolicy": policy})
        world.launcher_is(pods.launcher(phase="Succeeded", containers=[pods.ended("mpi", 0, "Completed")]))

        world.finish(succeeded=1)

        there = [name for kind, name in world.objects if kind in ("Pod", "StatefulSet")]
        assert sorted(there) == sorted(left)
        assert "Job" in world.kinds()
        assert world.later(60)[:-1] == []

    def test_is_not_what_another_condition_of_the_launcher_job_says(self) -> None:
        world = started()

        world.finish("FailureTarget", reason="BackoffLimitExceeded")

        assert world.state() == "Running"

    def test_the_job_itself_goes_after_its_ttl(self) -> None:
        world = started(runPolicy={"ttlSecondsAfterFinished": 100})
        world.finish(succeeded=1)
        ended = world.seconds
        assert world.plan().again == at(ended - 3 + 100)

        done = world.later(100)

        assert writes(done) == ["delete MPIJob"]

    def test_is_told_before_the_job_goes_however_soon_that_is(self) -> None:
        world = started(runPolicy={"ttlSecondsAfterFinished": 0})

        world.finish(succeeded=1)

        assert world.told()[-1] == "MPIJobSucceeded"
        assert writes(world.done)[-2:] == ["status", "delete MPIJob"]
