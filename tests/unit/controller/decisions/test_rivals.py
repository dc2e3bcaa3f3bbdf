"""Jobs that mpi-operator or training-operator has begun, runs, or has run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpirt.controller.model.actions import Delete, Plan
from tests.unit.controller import pods
from tests.unit.controller.jobs import SETTINGS, UID, Body, at, mpi_job, time
from tests.unit.controller.world import World, writes

BY_THE_JOB = {"kind": "MPIJob", "name": "train"}
CLAIM = {"managedBy": "mpirt.dev/controller"}
CONFIG = "ConfigMap train-config"
LEFT = (
    " was made by another controller, such as mpi-operator or training-operator, and no launcher has started; "
    "the job is left to that controller. If that one no longer runs, set spec.runPolicy.managedBy to "
    "mpirt.dev/controller to have the job run here"
)


def controlled(kind: str, name: str, **fields: Any) -> Body:
    """An object that the job controls, as other controllers make it: without a label of ours."""
    owner = {**BY_THE_JOB, "uid": UID, "controller": True}
    metadata = {"name": name, "namespace": "ml", "ownerReferences": [owner], "creationTimestamp": time(1)}
    return {"kind": kind, "metadata": metadata, **fields}


def config_map() -> Body:
    return controlled("ConfigMap", "train-config", data={"hostfile": "train-worker-0.train.ml.svc slots=1\n"})


def launcher_job(*, suspend: bool = False, **status: Any) -> Body:
    return controlled("Job", "train-launcher", spec={"suspend": suspend}, status=status)


def bare_worker(ordinal: int, **fields: Any) -> Body:
    return pods.worker(ordinal, owner=UID, made_by=BY_THE_JOB, **fields)


def begun(*bodies: Body, conditions: list[Body] | None = None, **spec: Any) -> World:
    """What mpi-operator leaves of a job before it is ready for a launcher: its ConfigMap, and more."""
    world = World(mpi_job(**spec))
    assert world.job is not None
    created = {
        "type": "Created",
        "status": "True",
        "reason": "MPIJobCreated",
        "message": "MPIJob ml/train is created.",
    }
    world.job["status"] = {"conditions": [created, *(conditions or [])], "startTime": time(1)}
    for body in (config_map(), *bodies):
        world.put(body)
    return world


def ended(kind: str = "Succeeded", **spec: Any) -> World:
    """A job that it has run to its end."""
    row = {"type": kind, "status": "True", "reason": f"MPIJob{kind}", "message": "over"}
    world = begun(conditions=[row], **spec)
    assert world.job is not None
    world.job["status"]["completionTime"] = time(-86400)
    return world


class TestJobsThatItHasRunToTheirEnd:
    @pytest.mark.parametrize("kind", ["Succeeded", "Failed"])
    def test_are_not_run_again_though_there_is_no_launcher(self, kind: str) -> None:
        assert ended(kind).later(600) == []

    def test_get_no_workers_beside_a_launcher_that_is_there(self) -> None:
        world = ended(runPolicy={"ttlSecondsAfterFinished": 1})
        row = {"type": "Complete", "status": "True"}
        world.put(launcher_job(conditions=[row], completionTime=time(-86400)))

        assert world.later(600) == []

    def test_are_not_said_to_have_failed_for_a_spec_that_we_could_not_act_on(self) -> None:
        assert ended(slotsPerWorker=-1).later(600) == []

    def test_stay_its_own_whoever_is_named_as_the_manager_now(self) -> None:
        assert ended(runPolicy=CLAIM).later(600) == []


class TestJobsThatItRuns:
    @pytest.mark.parametrize("run_policy", [{}, CLAIM], ids=["nobody is named", "we are named"])
    @pytest.mark.parametrize(
        "sign",
        [
            pytest.param(lambda: launcher_job(active=1), id="a launcher Job with a pod"),
            pytest.param(lambda: launcher_job(failed=1), id="a launcher Job whose pod has failed"),
            pytest.param(lambda: pods.launcher(owner="theirs"), id="a launcher pod"),
            pytest.param(
                lambda: pods.launcher(owner="theirs", phase="Pending"), id="a launcher pod without a node"
            ),
            pytest.param(
                lambda: pods.pod("train-launcher", role="master", owner=UID, made_by=BY_THE_JOB),
                id="a launcher pod of training-operator's",
            ),
        ],
    )
    def test_are_left_alone_and_told_nothing(self, sign: Any, run_policy: Body) -> None:
        assert begun(sign(), bare_worker(0), runPolicy=run_policy).later(600) == []

    @pytest.mark.parametrize(
        ("conditions", "replicas"),
        [
            pytest.param([{"type": "Running", "status": "True"}], {}, id="it runs"),
            pytest.param([{"type": "Restarting", "status": "True"}], {}, id="it is restarted"),
            pytest.param([], {"Launcher": {"failed": 1}}, id="a launcher has failed"),
        ],
    )
    def test_are_known_by_their_status_between_two_launcher_pods(
        self, conditions: list[Body], replicas: Body
    ) -> None:
        world = begun(bare_worker(0), conditions=conditions)
        assert world.job is not None
        world.job["status"]["replicaStatuses"] = replicas

        assert world.later(600) == []

    def test_are_known_by_their_workers_alone(self) -> None:
        """They are all that a watch brings: its other objects carry no labels of ours."""
        world = World()
        world.put(bare_worker(0))
        world.put(pods.launcher(owner="theirs"))

        assert world.later(600) == []


class TestJobsThatItHasNotStarted:
    def test_are_left_alone_and_say_why_once_nothing_has_happened_for_a_minute(self) -> None:
        world = begun(bare_worker(0, created=20))
        assert world.plan() == Plan(again=at(80))

        done = world.later(80)

        assert writes(done) == ["tell MPIJobRunByAnother", "status"]
        assert world.condition("Running") == (False, "MPIJobRunByAnother", CONFIG + LEFT)
        assert world.condition("Created") == (True, "MPIJobCreated", "MPIJob ml/train is created.")
        assert world.events[-1] == ("Warning", "MPIJobRunByAnother", CONFIG + LEFT)
        assert world.later(600) == []

    def test_are_told_once_though_the_other_controller_writes_its_own_counts_over_ours(self) -> None:
        """mpi-operator keeps conditions that it has nothing to say of, and makes the rest of the status anew."""
        world = begun(bare_worker(0))
        world.later(61)
        assert world.job is not None

        world.job["status"]["replicaStatuses"] = {"Worker": {"active": 1}}

        assert world.later(600) == []

    def test_are_told_by_a_worker_where_nothing_else_is_known(self) -> None:
        world = World()
        world.put(bare_worker(0))

        world.later(61)

        assert world.condition("Running") == (False, "MPIJobRunByAnother", "Pod train-worker-0" + LEFT)

    def test_are_told_nothing_while_they_are_suspended(self) -> None:
        assert begun(launcher_job(suspend=True), runPolicy={"suspend": True}).later(600) == []

    def test_are_told_nothing_of_a_spec_that_we_could_not_act_on(self) -> None:
        assert begun(slotsPerWorker=-1).later(600) == []

    def test_of_no_known_age_are_left_in_silence(self) -> None:
        world = begun()
        assert world.job is not None
        del world.job["metadata"]["creationTimestamp"]
        del world.get("ConfigMap")["metadata"]["creationTimestamp"]

        assert world.later(600) == []

    def test_are_taken_over_where_we_are_named_as_the_manager(self) -> None:
        world = begun(launcher_job(suspend=True), bare_worker(0), bare_worker(1), runPolicy=CLAIM)

        done = writes(world.settle())

        assert done[:3] == ["delete Job", "delete Pod", "delete Pod"]
        assert "patch ConfigMap" in done
        assert done.index("delete Pod") < done.index("patch ConfigMap") < done.index("create StatefulSet")
        world.later(10)
        assert world.condition("Running") == (False, "MPIJobWorkersNotReady", "0 of 2 workers are Ready")

    def test_are_taken_over_when_their_pods_are_gone(self) -> None:
        world = begun(bare_worker(0, deleted=30), runPolicy=CLAIM)

        assert writes(world.settle()) == ["status"]
        assert world.condition("Running") == (
            False,
            "MPIJobWorkersNotReady",
            "taking the job over; waiting for Pod train-worker-0 of another controller to terminate",
        )
        assert world.plan().again == at(30)

        del world.objects["Pod", "train-worker-0"]
        assert "create StatefulSet" in writes(world.settle())

    def test_wait_for_their_launcher_job_to_be_gone(self) -> None:
        job = launcher_job()
        job["metadata"]["deletionTimestamp"] = time(30)
        world = begun(job, runPolicy=CLAIM)

        assert writes(world.settle()) == ["status"]

    def test_lose_a_pod_that_came_while_only_our_config_map_was_there(self) -> None:
        world = World(mpi_job(runPolicy=CLAIM))
        world.settle()
        del world.objects["StatefulSet", "train-worker"]
        world.put(bare_worker(0))

        plan = world.plan()

        assert plan.actions[0] == Delete(
            "Pod",
            "train-worker-0",
            "uid-of-train-worker-0",
            "made by another controller, and the job names this one as its manager",
        )


def test_a_job_of_ours_is_ours_whatever_pods_another_controller_makes_for_it() -> None:
    world = World()
    world.start()

    world.put(pods.pod("train-worker-2", owner=UID, made_by=BY_THE_JOB))

    assert writes(world.later(600)) == []
    assert world.state() == "Running"


@pytest.mark.parametrize("manager", [{}, {"managedBy": "kubeflow.org/mpi-operator"}])
def test_a_controller_of_claimed_jobs_leaves_all_others_alone(manager: Body) -> None:
    claimed_only = replace(SETTINGS, only_claimed=True)

    assert World(mpi_job(runPolicy=manager), settings=claimed_only).plan() == Plan()
    assert World(mpi_job(runPolicy=CLAIM), settings=claimed_only).plan() != Plan()
