"""A job that is over: its end is final, and what may run it again."""

from __future__ import annotations

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import at, container, mpi_job, template, time
from tests.unit.controller.world import ONCE, RERUN, World, annotate, settled, started, succeeded, writes


@pytest.mark.uncounted
class TestAnEndIsFinal:
    @pytest.mark.parametrize("policy", ["None", "Running", "All"])
    def test_a_finished_job_whose_launcher_job_vanishes_gets_no_pods(self, policy: str) -> None:
        world = succeeded(policy)
        world.lose_launcher_job()

        done = world.later(60)

        assert not {"create StatefulSet", "create Job"} & set(writes(done))
        assert world.state() == "Succeeded"

    def test_a_failed_job_whose_launcher_job_vanishes_has_failed_still(self) -> None:
        world = started(runPolicy=ONCE)
        end = pods.ended("mpi", 137, "OOMKilled")
        world.launcher_is(pods.launcher(phase="Failed", conditions={}, containers=[end]), failed=1)
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=1)
        said = world.condition("Failed")
        world.lose_launcher_job()

        world.later(60)

        assert world.condition("Failed") == said
        assert world.job["status"]["completionTime"] == time(20)

    def test_a_launcher_job_that_is_another_one_by_now_changes_no_end(self) -> None:
        world = succeeded()
        world.get("Job")["status"] = {"active": 1}

        assert world.later(60) == []

    def test_its_time_to_live_counts_though_the_launcher_job_is_gone(self) -> None:
        world = started(runPolicy={"ttlSecondsAfterFinished": 100})
        world.finish(succeeded=1)
        world.lose_launcher_job()
        world.later(15)

        assert world.plan().again == at(120)
        assert writes(world.later(120 - world.seconds)) == ["delete MPIJob"]

    def test_it_is_known_for_ours_by_its_attempts_though_all_its_objects_are_gone(self) -> None:
        world = succeeded("Running")
        world.objects.clear()

        done = world.later(60)

        assert "create ConfigMap" in writes(done)
        assert world.state() == "Succeeded"


@pytest.mark.uncounted
class TestAFinishedJobNeverGetsAPodAgain:
    def test_workers_that_are_kept_have_a_template_of_which_no_pod_can_be_made(self) -> None:
        world = succeeded("None")

        workers = world.get("StatefulSet")["spec"]
        assert workers["template"]["spec"]["priorityClassName"] == "mpirt-job-is-over"
        assert workers["updateStrategy"] == {"type": "OnDelete"}
        there = sorted(name for kind, name in world.objects if kind == "Pod")
        assert there == ["train-launcher-1", "train-worker-0", "train-worker-1"]
        assert world.job["status"]["replicaStatuses"]["Worker"]["active"] == 2

    def test_it_costs_one_write(self) -> None:
        world = started()

        world.finish(succeeded=1)

        assert writes(world.done)[-3:] == ["tell MPIJobSucceeded", "status", "patch StatefulSet"]

    def test_workers_that_are_kept_are_not_rolled_even_by_an_edit_of_the_job(self) -> None:
        world = succeeded("None")

        world.workers_are(pods.worker(0), pods.worker(1), revision="train-worker-over")
        world.change(**mpi_job(worker=template(container("worker", image="mpi:5")))["spec"])

        assert "delete Pod" not in writes(world.later(60))
        assert world.get("StatefulSet")["spec"]["template"]["spec"]["priorityClassName"] == "mpirt-job-is-over"

    def test_their_statefulset_does_not_come_back(self) -> None:
        world = succeeded("None")
        del world.objects["StatefulSet", "train-worker"]

        assert "create StatefulSet" not in writes(world.later(60))

    def test_kept_workers_go_when_the_policy_is_changed(self) -> None:
        world = succeeded("None")

        world.change(runPolicy={"cleanPodPolicy": "Running"})
        world.settle()

        assert "StatefulSet" not in world.kinds()


def with_a_lost_worker() -> World:
    """A finished job that keeps its workers, of which one was lost with its node."""
    world = succeeded("None")
    world.workers_are(pods.worker(1))
    return world


class TestAKeptWorkerThatIsLost:
    def test_leaves_the_others_to_the_job_and_no_statefulset_that_waits_for_it(self) -> None:
        world = with_a_lost_worker()

        done = [action for action in world.later(60) if action.kind in ("Pod", "StatefulSet")]

        assert writes(done) == ["patch Pod", "delete StatefulSet"]
        assert "StatefulSet" not in world.kinds()
        owners = world.objects["Pod", "train-worker-1"]["metadata"]["ownerReferences"]
        assert owners == [
            {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": "uid-of-train"}
        ]
        assert world.job["status"]["replicaStatuses"]["Worker"]["active"] == 1
        assert world.later(3600) == []

    @pytest.mark.parametrize(("created", "owners"), [(-60, 0), (1, 1)], ids=["of an earlier job", "of this job"])
    def test_takes_with_it_what_the_statefulset_of_this_job_had_lost_by_then(
        self, created: float, owners: int
    ) -> None:
        world = with_a_lost_worker()
        world.put(pods.worker(7, created=created, owner=""))

        world.later(60)

        assert len(world.objects["Pod", "train-worker-7"]["metadata"]["ownerReferences"]) == owners

    def test_makes_no_difference_while_it_is_on_its_way_out(self) -> None:
        world = succeeded("None")
        world.workers_are(pods.worker(0, deleted=50), pods.worker(1))

        world.later(60)

        patched = [action.name for action in world.done if action.kind == "Pod"]
        assert patched == ["train-worker-1"]
        assert "StatefulSet" not in world.kinds()

    def test_leaves_others_that_go_when_the_policy_is_changed(self) -> None:
        world = with_a_lost_worker()
        world.later(60)

        world.change(runPolicy={"cleanPodPolicy": "Running"})

        assert "delete Pod" in writes(world.later(60))
        assert ("Pod", "train-worker-1") not in world.objects

    def test_leaves_others_that_go_when_the_job_runs_again(self) -> None:
        world = with_a_lost_worker()
        world.later(60)

        annotate(world, **{RERUN: "1"})
        world.later(60)

        assert ("Pod", "train-worker-1") not in world.objects
        assert world.state() == "Created"
        assert "StatefulSet" in world.kinds()

    def test_is_replaced_while_the_job_runs(self) -> None:
        world = started()
        world.workers_are(pods.worker(1))

        world.later(60)

        assert "StatefulSet" in world.kinds()


class TestADeadline:
    def test_counts_from_the_start_of_the_job_while_its_workers_are_pending(self) -> None:
        world = settled(mpi_job(runPolicy={"activeDeadlineSeconds": 100, "cleanPodPolicy": "Running"}))
        assert world.plan().again == at(100)

        world.later(100)

        assert world.condition("Failed") == (
            True,
            "DeadlineExceeded",
            "the job was active longer than activeDeadlineSeconds=100; 0 of 2 workers are Ready",
        )
        assert "StatefulSet" not in world.kinds()
        assert world.later(60) == []

    def test_is_the_launcher_jobs_matter_once_there_is_one(self) -> None:
        """Kubernetes counts from the Job's own start: it has what was left then."""
        world = started(runPolicy={"activeDeadlineSeconds": 100})
        assert world.get("Job")["spec"]["activeDeadlineSeconds"] == 95

        world.get("Job")["status"]["startTime"] = time(6)
        assert world.later(100 - world.seconds) == []

    def test_of_a_launcher_job_that_somebody_has_resumed_is_what_is_left_then(self) -> None:
        world = started(runPolicy={"activeDeadlineSeconds": 100})

        world.get("Job")["status"]["startTime"] = time(60)
        world.settle()

        assert world.get("Job")["spec"]["activeDeadlineSeconds"] == 40

    @pytest.mark.parametrize("is_over", [True, False], ids=["over", "suspended"])
    def test_does_not_count_while_the_job_does_not_run(self, *, is_over: bool) -> None:
        world = started(runPolicy={"activeDeadlineSeconds": 100})
        if is_over:
            world.finish(succeeded=1)
        else:
            world.change(runPolicy={"activeDeadlineSeconds": 100, "suspend": True})
            world.settle()

        assert world.later(200) == []

    def test_counts_anew_when_the_job_runs_again(self) -> None:
        world = started(runPolicy={"activeDeadlineSeconds": 100, "cleanPodPolicy": "Running"})
        world.finish(succeeded=1)
        annotate(world, **{RERUN: "1"})

        world.later(200)

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"
        assert world.plan().again == at(world.seconds + 100)


FAILED = pods.launcher(phase="Failed", conditions={}, containers=[pods.ended("mpi", 1, since=12, at=14)])


class TestWaitingForTheCauseOfAnEnd:
    def test_holds_up_no_healing(self) -> None:
        world = started(runPolicy={"backoffLimit": 0})
        world.workers_are(pods.worker(0), pods.worker(1, node="node-2", conditions=pods.given_up(-60), deleted=0))
        world.launcher_is(FAILED, failed=1)

        done = world.settle()

        assert "delete Pod" in writes(done)
        assert "status" not in writes(done)

    def test_holds_up_no_suspension(self) -> None:
        world = started(runPolicy={"backoffLimit": 0})
        world.launcher_is(FAILED, failed=1)
        world.change(runPolicy={"backoffLimit": 0, "suspend": True})

        assert {"delete Job", "delete StatefulSet"} <= set(writes(world.settle()))

    def test_of_a_launcher_that_ended_well_is_no_write_of_its_own(self) -> None:
        world = started()
        world.seconds = 60
        done = pods.ended("mpi", 0, "Completed", at=59)
        world.launcher_is(pods.launcher(phase="Succeeded", conditions={}, containers=[done]), active=1)

        assert world.settle() == []
        assert world.plan().again == at(59 + 15)

    def test_holds_up_the_cleaning_which_would_look_like_the_cause(self) -> None:
        world = started(runPolicy={"cleanPodPolicy": "Running", **ONCE})
        row = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Limit"}
        world.get("Job")["status"] = {
            "conditions": [{**row, "lastTransitionTime": time(world.seconds)}],
            "failed": 1,
        }

        assert world.settle() == []
        world.later(5)

        assert "StatefulSet" not in world.kinds()
        assert world.condition("Failed")[2] == "Limit"


@pytest.mark.uncounted
class TestFailure:
    def test_when_it_runs_again_it_says_so(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(phase="Failed", containers=[pods.ended("mpi", 1)]))
        world.later(5)

        again = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=31)])
        world.launcher_is(again, active=1)
        world.later(5)

        assert world.state() == "Running"
        assert world.condition("Restarting")[0] is False
        assert world.told() == ["MPIJobCreated", "MPIJobRunning", "MPIJobRestarting", "MPIJobRunning"]

    def test_of_the_last_attempt_fails_the_job_with_the_cause(self) -> None:
        world = started(runPolicy=ONCE)
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

    def test_is_told_before_the_job_goes_however_soon_that_is(self) -> None:
        world = started(runPolicy={"ttlSecondsAfterFinished": 0})

        world.finish(succeeded=1)

        assert world.told()[-1] == "MPIJobSucceeded"
        assert writes(world.done)[-2:] == ["status", "delete MPIJob"]
