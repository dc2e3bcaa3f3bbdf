"""Lives of jobs: plans are made and carried out, on a cluster of dictionaries."""

from __future__ import annotations

import json

import pytest

from mpirt.controller.model.actions import Plan, Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at, container, mpi_job, template, time
from tests.unit.controller.world import World, writes


@pytest.mark.uncounted
class TestAPlainJob:
    def test_first_everything_but_the_launcher_is_made(self) -> None:
        world = World()

        done = world.settle()

        assert writes(done) == [
            "try Job",
            "try StatefulSet",
            "create ConfigMap",
            "create ServiceAccount",
            "create Service",
            "create StatefulSet",
            "tell MPIJobCreated",
            "status",
        ]
        assert world.state() == "Created"
        assert world.condition("Running") == (False, "MPIJobWorkersNotReady", "0 of 2 workers are Ready")

    def test_the_launcher_is_made_when_all_workers_are_ready(self) -> None:
        world = World()
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1, conditions=pods.not_ready()))
        assert "Job" not in world.kinds()
        world.later(60)
        assert "Job" not in world.kinds()

        world.workers_are(pods.worker(0), pods.worker(1))

        assert writes(world.settle())[:3] == ["create Role", "create RoleBinding", "create Job"]

    def test_it_runs_when_its_launcher_runs(self) -> None:
        world = World()

        world.start()

        assert world.state() == "Running"
        assert world.condition("Running") == (
            True,
            "MPIJobRunning",
            "Launcher pod train-launcher-1 runs on node node-1; 2 of 2 workers are Ready",
        )

    def test_it_ends_with_its_launcher(self) -> None:
        world = World()
        world.start()

        world.finish(succeeded=1)

        assert world.state() == "Succeeded"
        assert world.told() == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]
        assert world.job is not None
        assert world.job["status"]["startTime"] == "2026-05-04T12:00:00Z"
        assert world.job["status"]["completionTime"] == "2026-05-04T12:00:20Z"

    def test_a_launcher_pod_that_has_ended_well_before_its_job_takes_note_restarts_nothing(self) -> None:
        world = World()
        world.start()

        world.launcher_is(pods.launcher(phase="Succeeded"), active=1)

        assert world.settle() == []
        assert world.state() == "Running"

    def test_it_costs_few_writes(self) -> None:
        world = World()
        world.start()
        world.finish(succeeded=1)

        world.later(3600)

        assert world.writes <= 20

    def test_in_peace_nothing_is_done(self) -> None:
        world = World()
        world.start()
        world.later(60)

        assert world.later(3600) == []
        assert world.plan().again is None

    def test_a_controller_that_starts_anew_does_nothing(self) -> None:
        world = World()
        world.start()

        assert world.plan().actions == world.plan().actions == ()

    def test_whose_launcher_is_on_its_way_says_where_it_is(self) -> None:
        world = World()
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()
        world.later(10)
        assert world.condition("Running")[2] == "the launcher's pod does not exist yet; 2 of 2 workers are Ready"

        waits = pods.launcher(
            phase="Pending", conditions=pods.not_ready(), containers=[], inits=[pods.running("mpirt-wait")]
        )
        world.launcher_is(waits, active=1)
        world.later(10)

        assert world.condition("Running") == (
            False,
            "MPIJobLauncherNotRunning",
            "launcher pod train-launcher-1: init container mpirt-wait runs; 2 of 2 workers are Ready",
        )

    def test_with_a_launcher_at_startup_it_is_made_at_once(self) -> None:
        world = World(mpi_job(launcherCreationPolicy="AtStartup"))

        done = world.settle()

        assert "create Job" in writes(done)
        world.later(10)
        assert world.condition("Running")[1] == "MPIJobLauncherNotRunning"

    def test_notices_are_told_once(self) -> None:
        world = World(mpi_job(worker=template(container("w", command=["sshd"]))))
        world.settle()

        world.later(60)

        assert world.told() == ["MPIJobCreated", "MPIJobFieldNotHonoured"]
        assert "sshd is not started" in world.condition("Created")[2]

    def test_a_notice_that_comes_later_is_told_alone(self) -> None:
        world = World(mpi_job(worker=template(container("w", command=["sshd"]))))
        world.settle()

        world.change(runPolicy={"schedulingPolicy": {"scheduleTimeoutSeconds": 3}})
        world.settle()

        assert world.told()[2:] == ["MPIJobFieldNotHonoured"]
        assert "scheduleTimeoutSeconds" in world.events[-1][2]

    def test_of_somebody_else_is_let_be(self) -> None:
        world = World(mpi_job(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}))

        assert world.plan() == Plan()

    def test_that_is_being_deleted_is_let_be(self) -> None:
        world = World()
        assert world.job is not None
        world.job["metadata"]["deletionTimestamp"] = time(1)

        assert world.plan() == Plan()


class TestWorkersThatAreNotReady:
    def test_the_message_says_which_and_why(self) -> None:
        world = World()
        world.settle()
        pulling = pods.waiting("worker", "ErrImagePull", "rpc error", image="nowhere:1")
        world.workers_are(
            pods.worker(0, conditions=pods.not_ready(), phase="Pending", containers=[pulling]), pods.worker(1)
        )

        world.later(10)

        assert world.condition("Running") == (
            False,
            "MPIJobWorkersNotReady",
            (
                "1 of 2 workers are Ready: "
                "train-worker-0: container worker: ImagePullBackOff: image nowhere:1 can't be pulled"
            ),
        )

    def test_words_alone_are_not_written_more_often_than_every_ten_seconds(self) -> None:
        world = World()
        world.settle()
        world.seconds += 3
        world.workers_are(pods.worker(0), pods.worker(1, conditions=pods.not_ready()))

        plan = world.plan()

        assert (plan.actions, plan.again) == ((), at(10))

    def test_workers_of_an_earlier_template_do_not_count(self) -> None:
        world = World()
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1), revision="train-worker-new")

        world.later(10)

        assert "Job" not in world.kinds()
        assert (
            "train-worker-0 is about to be replaced because its template was changed"
            in world.condition("Running")[2]
        )

    def test_nor_do_any_while_the_stateful_set_has_not_been_looked_at(self) -> None:
        world = World()
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1))
        world.get("StatefulSet")["status"]["observedGeneration"] = 0

        world.settle()

        assert "Job" not in world.kinds()

    def test_an_elastic_job_starts_with_as_few_as_it_can_work_with(self) -> None:
        world = World(mpi_job(elastic={"minReplicas": 1}))
        world.settle()
        world.workers_are(pods.worker(0))

        assert "create Job" in writes(world.settle())


class TestWhatIsDeletedComesBack:
    @pytest.mark.parametrize("kind", ["ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Service"])
    def test_an_object(self, kind: str) -> None:
        world = World()
        world.start()
        before = world.objects.pop((kind, world.get(kind)["metadata"]["name"]))

        done = world.settle()

        assert f"create {kind}" in writes(done)
        assert world.get(kind)["metadata"] == {**before["metadata"], "uid": f"uid-of-{kind}-2"}
        assert "delete Job" not in writes(done)

    def test_the_workers_and_the_object_changes_when_the_ones_before_are_gone(self) -> None:
        world = World()
        world.settle()
        world.workers_are(pods.worker(1, deleted=30))
        before = world.objects.pop(("StatefulSet", "train-worker"))

        assert "create StatefulSet" in writes(world.settle())
        made = world.get("StatefulSet")
        assert annotations_of(made) == {**annotations_of(before), "mpirt.dev/earlier-workers": "ending"}

        made["status"] = {"observedGeneration": 1}
        world.later(10)
        assert world.condition("Running")[2] == (
            "0 of 2 workers are Ready: train-worker-0 does not exist yet; "
            "train-worker-1 is waiting for the previous pod of this name to terminate"
        )

        del world.objects["Pod", "train-worker-1"]
        assert writes(world.settle()) == ["patch StatefulSet"]
        assert annotations_of(made) == annotations_of(before)
        assert made["metadata"]["generation"] == 1

    def test_the_launcher_and_it_is_said(self) -> None:
        world = World()
        world.start()
        world.launcher_is()
        world.lose_launcher_job()

        done = world.settle()

        assert writes(done) == ["create Job", "tell MPIJobRestarting", "status"]
        assert world.state() == "Restarting"
        assert world.condition("Restarting")[2] == "the launcher Job was deleted"

    def test_the_launcher_is_held_back_while_the_one_before_is_ending(self) -> None:
        world = World()
        world.start()
        job = world.lose_launcher_job()
        world.objects["Pod", "train-launcher-1"]["metadata"]["deletionTimestamp"] = time(30)

        world.settle()
        assert world.get("Job")["spec"]["parallelism"] == 0
        world.later(10)
        assert world.condition("Running")[2].startswith(
            "waiting for the previous launcher pod train-launcher-1 to terminate"
        )

        del world.objects["Pod", "train-launcher-1"]
        done = world.later(10)
        assert writes(done)[0] == "patch Job"
        assert world.get("Job")["spec"] == job["spec"]

    def test_a_launcher_pod_that_was_left_without_its_job_is_deleted_first(self) -> None:
        world = World()
        world.start()
        world.lose_launcher_job()

        assert writes(world.settle())[:2] == ["delete Pod", "create Job"]


class TestWhatIsEditedIsPutRight:
    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            pytest.param("StatefulSet", {"replicas": 7}, id="workers scaled"),
            pytest.param("Service", {"ports": [{"port": 22}]}, id="a port added"),
            pytest.param("Job", {"backoffLimit": 99}, id="retries"),
            pytest.param("Job", {"activeDeadlineSeconds": 1}, id="a deadline"),
            pytest.param("Job", {"ttlSecondsAfterFinished": 1}, id="a TTL"),
        ],
    )
    def test_a_field(self, kind: str, change: dict[str, object]) -> None:
        world = World()
        world.start()
        before = {**world.get(kind)["spec"]}

        world.edit(kind, **change)
        done = world.settle()

        assert writes(done)[0] == f"patch {kind}"
        assert world.get(kind)["spec"] == before

    def test_a_workers_template(self) -> None:
        world = World()
        world.start()
        wanted = world.get("StatefulSet")["spec"]["template"]

        world.edit("StatefulSet", template={"spec": {"containers": []}})
        done = world.settle()

        assert writes(done) == ["patch StatefulSet"]
        assert world.get("StatefulSet")["spec"]["template"] == wanted

    def test_scripts_and_what_else_was_put_beside_them(self) -> None:
        world = World()
        world.start()
        wanted = dict(world.get("ConfigMap")["data"])

        world.get("ConfigMap")["data"].update({"hostfile": "elsewhere", "more": "1"})

        assert writes(world.settle()) == ["patch ConfigMap"]
        assert world.get("ConfigMap")["data"] == wanted


@pytest.mark.uncounted
class TestChanges:
    def test_of_the_number_of_workers_are_followed_and_the_launcher_runs_on(self) -> None:
        world = World()
        world.start()
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 3

        done = world.settle()

        assert writes(done) == ["patch ConfigMap", "patch StatefulSet"]
        assert world.get("ConfigMap")["data"]["hostfile"].splitlines()[-1] == "train-worker-2 slots=1"
        assert world.get("StatefulSet")["spec"]["replicas"] == 3

    def test_of_the_launchers_template_replace_it(self) -> None:
        world = World()
        world.start()
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = template(
            container("mpi", command=["other"])
        )

        done = world.settle()

        assert writes(done)[:5] == ["try Job", "tell MPIJobRestarting", "status", "try Job", "delete Job"]
        assert world.condition("Restarting")[2] == "the launcher's template was changed"
        main = world.get("Job")["spec"]["template"]["spec"]["containers"][0]
        assert main["command"][-1] == "other"

    def test_of_the_workers_template_roll_them_and_the_launcher_starts_after_that(self) -> None:
        world = World()
        world.start()
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))

        done = world.settle()

        assert writes(done)[:2] == ["try StatefulSet", "patch StatefulSet"]
        assert writes(done)[2:5] == ["tell MPIJobRestarting", "status", "delete Job"]
        assert "Job" not in world.kinds()
        assert world.condition("Restarting")[2] == "the workers' template was changed"
        world.workers_are(pods.worker(0), pods.worker(1))
        assert writes(world.settle())[0] == "create Job"

    def test_of_the_workers_template_leave_an_elastic_jobs_launcher_alone(self) -> None:
        world = World(mpi_job(elastic={"minReplicas": 1}))
        world.start()
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))

        done = world.settle()

        assert writes(done) == ["try StatefulSet", "patch StatefulSet", "patch Job"]
        assert world.get("Job")["metadata"]["uid"] == "uid-of-Job"

    def test_that_the_api_server_refuses_touch_nothing_that_runs(self) -> None:
        world = World()
        world.start()
        world.refuse["train-worker"] = Rejection("StatefulSet", "", "image: Required value", final=True)
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))

        done = world.settle()

        assert writes(done) == ["try StatefulSet", "tell MPIJobFailedValidation", "status"]
        is_running, reason, message = world.condition("Running")
        assert (is_running, reason) == (True, "MPIJobFailedValidation")
        assert message == (
            "The changed spec is ignored, and the job runs on with the previous one: "
            "spec.mpiReplicaSpecs.Worker.template: "
            "the API server refuses it: image: Required value"
        )

    def test_of_a_finished_job_start_nothing(self) -> None:
        world = World()
        world.start()
        world.finish(succeeded=1)
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = template(
            container("mpi", command=["other"])
        )

        assert world.later(60) == []

    def test_that_name_an_account_remove_ours(self) -> None:
        world = World(mpi_job(launcherCreationPolicy="AtStartup"))
        world.settle()
        assert world.job is not None
        world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["serviceAccountName"] = "ann"

        done = world.settle()

        assert [one for one in writes(done) if "RoleBinding" in one or "ServiceAccount" in one] == [
            "patch RoleBinding",
            "delete ServiceAccount",
        ]


class TestSuspension:
    def test_removes_what_runs_and_says_so(self) -> None:
        world = World()
        world.start()

        world.change(runPolicy={"suspend": True})
        done = world.settle()

        released = ["delete StatefulSet", "delete Job", "patch Role"]
        # The second status says that the pods are gone.
        assert writes(done) == ["tell MPIJobSuspended", "status", *released, "status"]
        assert world.state() == "Suspended"
        assert world.condition("Running") == (False, "MPIJobSuspended", "MPIJob ml/train is suspended.")
        assert world.job is not None
        assert "startTime" not in world.job["status"]
        assert world.later(60) == []

    def test_of_a_job_that_was_never_started(self) -> None:
        world = World(mpi_job(runPolicy={"suspend": True}))

        world.settle()

        assert "StatefulSet" not in world.kinds()
        assert world.state() == "Suspended"

    def test_ends_and_the_job_runs_anew(self) -> None:
        world = World(mpi_job(runPolicy={"suspend": True}))
        world.settle()

        world.change(runPolicy={})
        world.later(60)

        assert world.state() == "Created"
        assert world.condition("Suspended") == (False, "MPIJobResumed", "The job is resumed.")
        assert world.told() == ["MPIJobCreated", "MPIJobSuspended", "MPIJobResumed"]
        assert world.job is not None
        assert world.job["status"]["startTime"] == time(60)

    def test_of_a_finished_job_means_nothing(self) -> None:
        world = World()
        world.start()
        world.finish(succeeded=1)

        world.change(runPolicy={"suspend": True})

        assert world.later(60) == []


@pytest.mark.uncounted
class TestFailure:
    def test_an_attempt_that_failed_is_told_with_its_last_lines(self) -> None:
        world = World()
        world.start()
        end = pods.ended("mpi", 137, message="mpirt-rsh: train-worker-1: OOM\n", since=12, at=18)
        world.launcher_is(pods.launcher(phase="Failed", conditions={}, containers=[end]), failed=1)

        world.later(5)

        assert world.state() == "Restarting"
        assert world.condition("Restarting")[2] == (
            "launcher pod train-launcher-1 ended with code 137 (SIGKILL): mpirt-rsh: train-worker-1: OOM"
        )
        assert world.condition("Running")[1] == "MPIJobLauncherNotRunning"

    def test_with_the_worker_that_died_before(self) -> None:
        world = World()
        world.start()
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
        world = World()
        world.start()
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
        world = World()
        world.start()
        world.launcher_is(pods.launcher(phase="Failed", containers=[pods.ended("mpi", 1)]), failed=1)
        world.later(5)

        again = pods.launcher("train-launcher-2", created=30, containers=[pods.running("mpi", since=31)])
        world.launcher_is(again, failed=1, active=1)
        world.later(5)

        assert world.state() == "Running"
        assert world.condition("Restarting")[0] is False
        assert world.told() == ["MPIJobCreated", "MPIJobRunning", "MPIJobRestarting", "MPIJobRunning"]

    def test_of_the_last_attempt_fails_the_job_with_the_cause(self) -> None:
        world = World()
        world.start()
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
        world = World()
        world.start()
        world.launcher_is(pods.launcher(phase="Failed", containers=[pods.ended("mpi", 3, message="last words")]))
        world.finish("Failed", reason="BackoffLimitExceeded", message="Limit", failed=7)
        said = world.condition("Failed")
        del world.objects["Pod", "train-launcher-1"]

        world.later(60)

        assert world.condition("Failed") == said
        assert world.told().count("BackoffLimitExceeded") == 1

    def test_without_a_trace_is_told_as_the_job_has_it(self) -> None:
        world = World()
        world.start()
        world.launcher_is()

        world.finish("Failed", reason="DeadlineExceeded", message="Job was active too long")
        world.later(5)

        assert world.condition("Failed") == (True, "DeadlineExceeded", "Job was active too long")

    def test_of_an_elastic_jobs_worker_is_forgotten_when_it_is_back(self) -> None:
        world = World(mpi_job(elastic={"minReplicas": 1}))
        world.start()
        world.workers_are(pods.worker(0), pods.worker(1, conditions=pods.lost(30)))
        world.later(50)
        assert world.condition("Running")[1] == "MPIJobWorkerFailed"

        world.workers_are(pods.worker(0), pods.worker(1, created=80))
        world.later(5)

        assert world.condition("Running")[1] == "MPIJobRunning"

    def test_a_launcher_that_nobody_knows_the_age_of(self) -> None:
        world = World()
        world.start()
        pod = pods.launcher(phase="Failed", containers=[])
        del pod["metadata"]["creationTimestamp"]
        world.launcher_is(pod, failed=1)

        world.later(5)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-1 failed"

    def test_a_launcher_whose_pod_has_vanished(self) -> None:
        world = World()
        world.start()

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
        world = World(mpi_job(runPolicy={"cleanPodPolicy": policy}))
        world.start()
        world.launcher_is(pods.launcher(phase="Succeeded", containers=[pods.ended("mpi", 0, "Completed")]))

        world.finish(succeeded=1)

        there = [name for kind, name in world.objects if kind in ("Pod", "StatefulSet")]
        assert sorted(there) == sorted(left)
        assert "Job" in world.kinds()
        assert world.later(60)[:-1] == []

    def test_is_not_what_another_condition_of_the_launcher_job_says(self) -> None:
        world = World()
        world.start()

        world.finish("FailureTarget", reason="BackoffLimitExceeded")

        assert world.state() == "Running"

    def test_the_job_itself_goes_after_its_ttl(self) -> None:
        world = World(mpi_job(runPolicy={"ttlSecondsAfterFinished": 100}))
        world.start()
        world.finish(succeeded=1)
        ended = world.seconds
        assert world.plan().again == at(ended - 3 + 100)

        done = world.later(100)

        assert writes(done) == ["delete MPIJob"]

    def test_is_told_before_the_job_goes_however_soon_that_is(self) -> None:
        world = World(mpi_job(runPolicy={"ttlSecondsAfterFinished": 0}))
        world.start()

        world.finish(succeeded=1)

        assert world.told()[-1] == "MPIJobSucceeded"
        assert writes(world.done)[-2:] == ["status", "delete MPIJob"]


class TestWhatCantBeDone:
    def test_an_object_of_somebody_elses_is_left_alone_and_told_of(self) -> None:
        world = World()
        world.put({"kind": "ConfigMap", "metadata": {"name": "train-config", "namespace": "ml", "uid": "x"}})

        world.settle()

        assert world.kinds() == ["ConfigMap"]
        assert world.condition("Running") == (
            False,
            "ErrResourceExists",
            "ConfigMap train-config exists and belongs to nobody, and is left alone; delete it or rename the job",
        )
        assert world.events[-1][:2] == ("Warning", "ErrResourceExists")
        assert world.plan().again == at(30)

    def test_and_the_job_goes_on_when_the_name_is_free(self) -> None:
        world = World()
        world.put(
            {
                "kind": "Service",
                "metadata": {
                    "name": "train",
                    "namespace": "ml",
                    "ownerReferences": [{"kind": "Tenant", "name": "ann", "uid": "x", "controller": True}],
                },
            }
        )
        world.settle()
        assert "belongs to Tenant ann" in world.condition("Running")[2]

        del world.objects["Service", "train"]
        world.settle()

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"

    def test_what_is_left_of_an_earlier_job_of_the_name_is_waited_for(self) -> None:
        world = World()
        world.put(
            {
                "kind": "Role",
                "metadata": {
                    "name": "train-launcher",
                    "namespace": "ml",
                    "ownerReferences": [{"kind": "MPIJob", "name": "train", "uid": "before", "controller": True}],
                },
            }
        )

        world.settle()

        assert world.condition("Running")[2] == (
            "Role train-launcher belongs to a previous job of this name; waiting for its deletion"
        )
        assert world.told() == ["MPIJobCreated"]

    def test_an_account_of_that_name_is_no_matter_if_none_is_wanted(self) -> None:
        launcher = template(container("mpi"), serviceAccountName="train-launcher")
        world = World(mpi_job(launcher=launcher))
        world.put(
            {"kind": "ServiceAccount", "metadata": {"name": "train-launcher", "namespace": "ml", "uid": "x"}}
        )

        world.settle()

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"

    @pytest.mark.parametrize(
        ("refused", "field"),
        [
            pytest.param("Job", "Launcher", id="the launcher"),
            pytest.param("train-worker", "Worker", id="the workers"),
            pytest.param("StatefulSet", "Worker", id="their StatefulSet"),
        ],
    )
    def test_a_template_that_the_api_server_refuses_fails_no_job_and_is_tried_again(
        self, refused: str, field: str
    ) -> None:
        world = World()
        world.refuse[refused] = Rejection(refused if refused[0] != "t" else "Job", "", "image: no", final=True)

        world.settle()

        problem = f"spec.mpiReplicaSpecs.{field}.template: the API server refuses it: image: no"
        assert world.state() == "Created"
        assert world.condition("Running") == (False, "MPIJobFailedValidation", problem)
        assert ("Warning", "MPIJobFailedValidation", problem) in world.events
        assert world.plan().again == at(30)

    def test_nothing_is_made_for_a_job_whose_templates_are_refused(self) -> None:
        world = World()
        world.refuse["Job"] = Rejection("Job", "", "image: Required value", final=True)

        world.settle()

        assert world.kinds() == []

    def test_a_refused_template_is_acted_on_once_the_policy_has_changed(self) -> None:
        world = World()
        world.refuse["Job"] = Rejection("Job", "", "denied by policy", final=True)
        world.settle()
        world.refuse.clear()
        world.rejections.clear()

        world.later(30)

        assert world.job is not None
        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"
        assert "Failed" not in [row["type"] for row in world.job["status"]["conditions"]]

    def test_a_refused_template_is_acted_on_once_it_has_been_edited(self) -> None:
        world = World()
        world.refuse["Job"] = Rejection("Job", "", "image: Required value", final=True)
        world.settle()
        world.refuse.clear()

        world.change(**mpi_job(launcher=template(container("mpi", image="mpi:5")))["spec"])
        world.settle()

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"

    def test_an_object_that_is_built_from_several_fields_is_named_itself(self) -> None:
        world = World()
        world.refuse["Role"] = Rejection("Role", "", "no", final=True)
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1))

        world.settle()

        assert world.condition("Running") == (False, "MPIJobRefused", "the API server refuses Role: no")

    def test_a_refusal_of_any_length_is_told_in_a_status_of_limited_length(self) -> None:
        world = World()
        world.refuse["Job"] = Rejection("Job", "", "no! " * 150_000, final=True)

        world.settle()

        assert world.job is not None
        assert len(json.dumps(world.job["status"])) < 10_000

    def test_what_a_quota_refuses_may_come_yet(self) -> None:
        world = World()
        world.refuse["StatefulSet"] = Rejection("StatefulSet", "", "exceeded quota", final=False)

        world.settle()

        assert world.condition("Running") == (
            False,
            "MPIJobRefused",
            "spec.mpiReplicaSpecs.Worker.template: the API server refuses it: exceeded quota",
        )
        assert world.plan().again == at(30)
        world.refuse.clear()
        world.rejections.clear()
        world.settle()
        assert "StatefulSet" in world.kinds()

    def test_a_refusal_of_what_is_wanted_no_more_is_no_matter(self) -> None:
        world = World()
        world.rejections.append(Rejection("Job", "of something else", "no", final=True))

        world.settle()

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"


class TestSpecsThatCantBe:
    def test_are_told_with_the_fields_path_and_fail_no_job(self) -> None:
        world = World(mpi_job(slotsPerWorker="two"))

        world.settle()

        problem = "spec.slotsPerWorker: expected a whole number, got 'two'"
        assert world.kinds() == []
        assert world.state() == "Created"
        assert world.condition("Running") == (False, "MPIJobFailedValidation", problem)
        assert world.events == [
            ("Normal", "MPIJobCreated", "MPIJob ml/train is created."),
            ("Warning", "MPIJobFailedValidation", problem),
        ]
        assert world.plan() == Plan()

    def test_are_acted_on_once_they_are_mended(self) -> None:
        world = World(mpi_job(slotsPerWorker="two"))
        world.settle()

        world.change(slotsPerWorker=1)
        world.settle()

        assert world.state() == "Created"
        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"

    def test_are_no_reason_to_call_a_suspended_job_resumed(self) -> None:
        world = World(mpi_job(runPolicy={"suspend": True}))
        world.settle()

        world.change(slotsPerWorker="two")
        world.later(15)

        assert world.condition("Suspended")[0] is True
        assert world.condition("Running")[1] == "MPIJobFailedValidation"

    def test_that_no_edit_can_mend_have_failed_for_good(self) -> None:
        world = World(mpi_job(name="1st"))

        world.settle()

        assert world.state() == "Failed"
        status, reason, message = world.condition("Failed")
        assert (status, reason) == (True, "MPIJobInvalidName")
        assert message.startswith("metadata.name: must consist of lower-case letters")
        assert world.condition("Running")[:2] == (False, "MPIJobInvalidName")
        assert world.job is not None
        assert "completionTime" in world.job["status"]
        assert world.later(60) == []

    def test_of_which_an_earlier_version_said_that_they_have_failed_can_be_mended_still(self) -> None:
        world = World()
        world.settle()
        assert world.job is not None
        failed = {"type": "Failed", "status": "True", "reason": "MPIJobFailedValidation", "message": "bad"}
        world.job["status"]["conditions"].append(failed)

        world.settle()

        assert world.condition("Failed") == (False, "MPIJobValidated", "The spec can be edited.")

    def test_leave_alone_what_runs(self) -> None:
        world = World()
        world.start()

        world.change(slotsPerWorker="two")
        world.settle()

        assert world.state() == "Running"
        status, reason, message = world.condition("Running")
        assert (status, reason) == (True, "MPIJobFailedValidation")
        assert message.startswith(
            "The changed spec is ignored, and the job runs on with the previous one: spec.slotsPerWorker"
        )

    def test_leave_nothing_on_a_node_that_is_lost(self) -> None:
        world = World()
        world.start()
        world.change(slotsPerWorker="two")
        world.workers_are(pods.worker(0), pods.worker(1, node="node-2", conditions=pods.given_up(30), deleted=120))
        world.settle()

        assert world.plan().again == at(120)
        assert "delete Pod" in writes(world.later(120 - world.seconds))

    def test_do_not_hide_that_the_job_has_ended(self) -> None:
        world = World()
        world.start()
        world.change(slotsPerWorker="two")
        world.settle()

        world.finish(succeeded=1)

        assert world.state() == "Succeeded"
        assert world.later(60) == []

    def test_of_a_job_that_is_over_change_nothing(self) -> None:
        world = World()
        world.start()
        world.finish(succeeded=1)
        world.lose_launcher_job()

        world.change(slotsPerWorker="two")
        world.later(60)

        assert world.state() == "Succeeded"


def annotations_of(body: Body) -> Body:
    found: Body = body["metadata"]["annotations"]
    return found
