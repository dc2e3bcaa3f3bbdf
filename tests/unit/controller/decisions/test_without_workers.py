"""Jobs without workers: the launcher is made at once, and nothing is made for workers."""

from __future__ import annotations

from typing import Any

from mpirt.controller.model.actions import Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, mpi_job, template
from tests.unit.controller.world import World, settled, started, writes


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
