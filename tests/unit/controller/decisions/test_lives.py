"""Lives of jobs: plans are made and carried out, on a cluster of dictionaries."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.actions import Plan, Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at, container, mpi_job, template, time
from tests.unit.controller.world import RUNS, World, settled, started, with_workers, writes


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
        world = with_workers(pods.worker(0), pods.worker(1, conditions=pods.not_ready()))
        assert "Job" not in world.kinds()
        world.later(60)
        assert "Job" not in world.kinds()

        world.workers_are(pods.worker(0), pods.worker(1))

        assert writes(world.settle())[:3] == ["create Role", "create RoleBinding", "create Job"]

    def test_it_runs_and_ends_with_its_launcher(self) -> None:
        world = started()
        assert world.state() == "Running"
        assert world.condition("Running") == (True, "MPIJobRunning", f"{RUNS}2 of 2 workers are Ready")

        world.finish(succeeded=1)

        assert world.state() == "Succeeded"
        assert world.told() == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]
        assert world.job["status"]["startTime"] == "2026-05-04T12:00:00Z"
        assert world.job["status"]["completionTime"] == "2026-05-04T12:00:20Z"

    def test_a_launcher_pod_that_has_ended_well_before_its_job_takes_note_restarts_nothing(self) -> None:
        world = started()

        world.launcher_is(pods.launcher(phase="Succeeded"), active=1)

        assert world.settle() == []
        assert world.state() == "Running"

    @pytest.mark.parametrize("is_over", [False, True], ids=["it runs", "it is over"])
    def test_in_peace_nothing_is_done(self, *, is_over: bool) -> None:
        world = started()
        if is_over:
            world.finish(succeeded=1)
        world.later(60)

        assert world.later(3600) == []
        assert world.plan().again is None
        assert world.writes <= 20

    @pytest.mark.parametrize(
        ("metadata", "policy"),
        [
            pytest.param({}, {"managedBy": "kueue.x-k8s.io/multikueue"}, id="another controller manages it"),
            pytest.param({"deletionTimestamp": time(1)}, {}, id="it is being deleted"),
        ],
    )
    def test_it_is_left_alone(self, metadata: Body, policy: Body) -> None:
        world = World(mpi_job(runPolicy=policy))
        world.job["metadata"] |= metadata

        assert world.plan() == Plan()

    def test_whose_launcher_is_on_its_way_says_where_it_is(self) -> None:
        world = with_workers()
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

    def test_notices_are_told_once(self) -> None:
        world = settled(mpi_job(worker=template(container("w", command=["sshd"]))))

        world.later(60)

        assert world.told() == ["MPIJobCreated", "MPIJobFieldNotHonoured"]
        assert "sshd is not started" in world.condition("Created")[2]

    def test_a_notice_that_comes_later_is_told_alone(self) -> None:
        world = settled(mpi_job(worker=template(container("w", command=["sshd"]))))

        world.change(runPolicy={"schedulingPolicy": {"scheduleTimeoutSeconds": 3}})
        world.settle()

        assert world.told()[2:] == ["MPIJobFieldNotHonoured"]
        assert "scheduleTimeoutSeconds" in world.events[-1][2]


class TestWorkersThatAreNotReady:
    def test_the_message_says_which_and_why(self) -> None:
        world = settled()
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
        world = settled()
        world.seconds += 3
        world.workers_are(pods.worker(0), pods.worker(1, conditions=pods.not_ready()))

        plan = world.plan()

        assert (plan.actions, plan.again) == ((), at(10))

    def test_workers_of_an_earlier_template_do_not_count(self) -> None:
        world = settled()
        world.workers_are(pods.worker(0), pods.worker(1), revision="train-worker-new")

        world.later(10)

        assert "Job" not in world.kinds()
        assert (
            "train-worker-0 is about to be replaced because its template was changed"
            in world.condition("Running")[2]
        )

    def test_nor_do_any_while_the_stateful_set_has_not_been_looked_at(self) -> None:
        world = with_workers()
        world.get("StatefulSet")["status"]["observedGeneration"] = 0

        world.settle()

        assert "Job" not in world.kinds()

    def test_an_elastic_job_starts_with_as_few_as_it_can_work_with(self) -> None:
        world = with_workers(pods.worker(0), job=mpi_job(elastic={"minReplicas": 1}))

        assert "create Job" in writes(world.settle())


class TestWhatIsDeletedComesBack:
    @pytest.mark.parametrize("kind", ["ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Service"])
    def test_an_object(self, kind: str) -> None:
        world = started()
        before = world.objects.pop((kind, world.get(kind)["metadata"]["name"]))

        done = world.settle()

        assert f"create {kind}" in writes(done)
        assert world.get(kind)["metadata"] == {**before["metadata"], "uid": f"uid-of-{kind}-2"}
        assert "delete Job" not in writes(done)

    def test_the_workers_and_the_object_changes_when_the_ones_before_are_gone(self) -> None:
        world = with_workers(pods.worker(1, deleted=30))
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
        world = started()
        world.launcher_is()
        world.lose_launcher_job()

        done = world.settle()

        assert writes(done) == ["create Job", "tell MPIJobRestarting", "status"]
        assert world.state() == "Restarting"
        assert world.condition("Restarting")[2] == "the launcher Job was deleted"

    def test_the_launcher_comes_when_the_one_before_has_ended(self) -> None:
        world = started()
        job = world.lose_launcher_job()
        world.objects["Pod", "train-launcher-1"]["metadata"]["deletionTimestamp"] = time(30)

        world.later(10)
        assert "Job" not in world.kinds()
        assert world.condition("Running")[2].startswith(
            "waiting for the previous launcher pod train-launcher-1 to terminate"
        )

        del world.objects["Pod", "train-launcher-1"]
        done = world.later(10)
        assert writes(done)[0] == "create Job"
        assert world.get("Job")["spec"] == job["spec"]

    def test_a_launcher_pod_that_was_left_without_its_job_is_deleted_first(self) -> None:
        world = started()
        world.lose_launcher_job()

        done = writes(world.settle())

        assert [one for one in done if one.split()[0] in ("create", "delete")] == ["delete Pod", "create Job"]


class TestWhatIsEditedIsPutRight:
    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            pytest.param("StatefulSet", {"replicas": 7}, id="workers scaled"),
            pytest.param("StatefulSet", {"ordinals": {"start": 5}}, id="ordinals"),
            pytest.param("Service", {"ports": [{"port": 22}]}, id="a port added"),
            pytest.param("Job", {"backoffLimit": 99}, id="retries"),
            pytest.param("Job", {"activeDeadlineSeconds": 1}, id="a deadline"),
            pytest.param("Job", {"ttlSecondsAfterFinished": 1}, id="a TTL"),
        ],
    )
    def test_a_field(self, kind: str, change: dict[str, object]) -> None:
        world = started()
        before = {**world.get(kind)["spec"]}

        world.edit(kind, **change)
        done = world.settle()

        assert writes(done)[0] == f"patch {kind}"
        assert world.get(kind)["spec"] == before


def annotations_of(body: Body) -> Body:
    found: Body = body["metadata"]["annotations"]
    return found


def alone(**spec: Any) -> Body:
    job = mpi_job(**spec)
    del job["spec"]["mpiReplicaSpecs"]["Worker"]
    return job


def test_the_launcher_of_a_job_without_workers_is_made_at_once() -> None:
    world = World(alone(runLauncherAsWorker=True))

    done = world.settle()

    assert writes(done)[:8] == [
        "try Job",
        "create ConfigMap",
        "create ServiceAccount",
        "create Service",
        "create Role",
        "create RoleBinding",
        "create Job",
        "tell MPIJobCreated",
    ]
    assert world.kinds() == ["ConfigMap", "Job", "Role", "RoleBinding", "Service", "ServiceAccount"]
    assert world.get("ConfigMap")["data"]["workers-needed"] == "0"


def test_a_job_without_workers_runs_and_ends() -> None:
    world = settled(alone())

    world.launcher_is(pods.launcher(), active=1)
    world.settle()

    running = "Launcher pod train-launcher-1 runs on node node-1; the job has no workers"
    assert world.condition("Running") == (True, "MPIJobRunning", running)
    world.finish(succeeded=1)
    assert world.state() == "Succeeded"


def test_workers_that_are_taken_out_of_the_spec_go() -> None:
    world = started()

    del world.job["spec"]["mpiReplicaSpecs"]["Worker"]
    world.settle()

    assert "StatefulSet" not in world.kinds()


def test_a_refused_launcher_of_a_job_without_workers_is_told_with_its_field() -> None:
    world = World(alone())
    world.refuse["train-launcher"] = Rejection("Job", "", "no such class", final=True)

    world.settle()

    assert "spec.mpiReplicaSpecs.Launcher.template: " in str(world.job)


def test_a_job_without_workers_keeps_to_its_template() -> None:
    world = settled(alone())
    world.launcher_is(pods.launcher(), active=1)
    world.settle()

    world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = template({"name": "mpi", "image": "mpi:5"})

    assert "delete Job" in writes(world.settle())
