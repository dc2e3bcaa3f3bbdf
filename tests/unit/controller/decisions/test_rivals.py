"""Jobs that mpi-operator or training-operator has begun, runs, or has run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mpirt.controller.model.actions import Plan
from tests.unit.controller import pods
from tests.unit.controller.jobs import SETTINGS, UID, Body, mpi_job, time
from tests.unit.controller.world import World, settled, started, writes

BY_THE_JOB = {"kind": "MPIJob", "name": "train"}
CLAIM = {"managedBy": "mpirt.dev/controller"}
CONFIG = "ConfigMap train-config"
LEFT = (
    " was made by another controller, such as mpi-operator or training-operator, and the job is left to that "
    "controller. To run the job here, delete it and create it again; set spec.runPolicy.managedBy to "
    "mpirt.dev/controller if that controller still runs"
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
    world.job["status"]["completionTime"] = time(-86400)
    return world


def ended_with_its_launcher() -> World:
    world = ended(runPolicy={"ttlSecondsAfterFinished": 1})
    row = {"type": "Complete", "status": "True"}
    world.put(launcher_job(conditions=[row], completionTime=time(-86400)))
    return world


def between_two_launchers(*conditions: str, **replicas: Body) -> World:
    world = begun(bare_worker(0), conditions=[{"type": kind, "status": "True"} for kind in conditions])
    world.job["status"]["replicaStatuses"] = replicas
    return world


def known_by_its_pods() -> World:
    """They are all that a watch brings: its other objects carry no labels of ours."""
    world = World()
    world.put(bare_worker(0))
    world.put(pods.launcher(owner="theirs"))
    return world


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(lambda: ended("Succeeded"), id="it has succeeded"),
        pytest.param(lambda: ended("Failed"), id="it has failed"),
        pytest.param(ended_with_its_launcher, id="it has ended, and its launcher is there"),
        pytest.param(lambda: ended(slotsPerWorker=-1), id="it has ended, and its spec is invalid for us"),
        pytest.param(lambda: ended(runPolicy=CLAIM), id="it has ended, and names us now"),
        pytest.param(lambda: between_two_launchers("Running"), id="it runs, by its status"),
        pytest.param(lambda: between_two_launchers("Restarting"), id="it is restarted, by its status"),
        pytest.param(lambda: between_two_launchers(Launcher={"failed": 1}), id="a launcher has failed"),
        pytest.param(known_by_its_pods, id="it runs, by its pods alone"),
        pytest.param(lambda: begun(launcher_job(suspend=True), runPolicy={"suspend": True}), id="it is suspended"),
        pytest.param(lambda: begun(slotsPerWorker=-1), id="its spec is invalid for us"),
    ],
)
def test_a_job_of_another_controller_is_left_alone_and_nothing_is_reported(world: Callable[[], World]) -> None:
    assert world().later(600) == []


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


class TestJobsThatItHasNotStarted:
    @pytest.mark.parametrize("run_policy", [{}, CLAIM], ids=["no manager is named", "we are named"])
    @pytest.mark.parametrize(
        ("bodies", "first"),
        [
            pytest.param([bare_worker(0)], CONFIG, id="its ConfigMap and a worker"),
            pytest.param([launcher_job(suspend=True)], CONFIG, id="a launcher Job without a pod"),
            pytest.param([bare_worker(0, deleted=30)], CONFIG, id="a worker that terminates"),
        ],
    )
    def test_are_left_alone_and_report_the_remedy_once(
        self, bodies: list[Body], first: str, run_policy: Body
    ) -> None:
        world = begun(*bodies, runPolicy=run_policy)

        done = world.settle()

        assert writes(done) == ["tell MPIJobRunByAnother", "status"]
        assert world.condition("Running") == (False, "MPIJobRunByAnother", first + LEFT)
        assert world.condition("Created") == (True, "MPIJobCreated", "MPIJob ml/train is created.")
        assert world.events[-1] == ("Warning", "MPIJobRunByAnother", first + LEFT)
        assert world.later(600) == []

    def test_report_once_though_the_other_controller_writes_its_own_counts_over_ours(self) -> None:
        """mpi-operator keeps conditions that it does not know, and writes the rest of the status anew."""
        world = begun(bare_worker(0))
        world.settle()

        world.job["status"]["replicaStatuses"] = {"Worker": {"active": 1}}

        assert world.later(600) == []

    @pytest.mark.parametrize(
        ("put", "first"),
        [
            pytest.param(lambda: bare_worker(0), "Pod train-worker-0", id="a worker"),
            pytest.param(lambda: launcher_job(suspend=True), "Job train-launcher", id="a launcher Job"),
        ],
    )
    def test_report_the_one_object_that_is_known(self, put: Any, first: str) -> None:
        world = World()
        world.put(put())

        world.settle()

        assert world.condition("Running") == (False, "MPIJobRunByAnother", first + LEFT)

    def test_run_here_when_the_objects_of_the_other_controller_are_deleted(self) -> None:
        world = begun(bare_worker(0))
        world.settle()
        world.objects.clear()

        assert "create StatefulSet" in writes(world.settle())

    def test_keep_a_pod_that_came_while_only_our_config_map_was_there(self) -> None:
        world = settled(mpi_job(runPolicy=CLAIM))
        del world.objects["StatefulSet", "train-worker"]
        world.put(bare_worker(0))

        assert writes(world.settle()) == ["tell MPIJobRunByAnother", "status"]
        assert world.condition("Running") == (False, "MPIJobRunByAnother", "Pod train-worker-0" + LEFT)


def test_a_job_of_ours_is_ours_whatever_pods_another_controller_makes_for_it() -> None:
    world = started()

    world.put(pods.pod("train-worker-2", owner=UID, made_by=BY_THE_JOB))

    assert writes(world.later(600)) == []
    assert world.state() == "Running"


@pytest.mark.parametrize("manager", [{}, {"managedBy": "kubeflow.org/mpi-operator"}])
def test_a_controller_of_claimed_jobs_leaves_all_others_alone(manager: Body) -> None:
    claimed_only = replace(SETTINGS, only_claimed=True)

    assert World(mpi_job(runPolicy=manager), settings=claimed_only).plan() == Plan()
    assert World(mpi_job(runPolicy=CLAIM), settings=claimed_only).plan() != Plan()
