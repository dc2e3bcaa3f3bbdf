"""What is changed in the templates of a job that runs is rolled out, and its hostfile stays true."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, MISSING_IMAGE, NEVER
from tests.api.controllers import Controller, job_name
from tests.promises import promise
from tests.support.stories import Story, condition, pods_of, story, told_of
from tests.support.times import Times
from tests.support.watching import State, Watch, watch

ROLLED_WITHIN = 150.0
REVISION = "controller-revision-hash"
_TEMPLATE = "/spec/mpiReplicaSpecs/{}/template/spec/containers/0/{}"


@pytest.fixture(scope="module")
def life(controller: Controller) -> Iterator[Story]:
    """Of a job whose launcher goes on for as long as the tests need."""
    job = submit(
        controller.namespace,
        job_name("roll"),
        "busybox",
        ("true",),
        annotations={"Launcher": {ENDS: NEVER}},
    )
    with story(job) as told:
        told.until("Running")
        yield told
    controller.namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")


@promise("A changed launcher template replaces the launcher, and no worker.", of="MPIJob")
def test_a_changed_launcher_template_replaces_the_launcher_and_leaves_the_workers(life: Story) -> None:
    running = life.job
    workers = {uid(pod) for pod in running.pods("worker")}
    old = running.launcher()

    with pods_of(running, "launcher") as pods:
        change(running, "Launcher", "env", [{"name": "CHANGED", "value": "1"}])
        new = pods.wait(lambda state: name(state.body) != old, within=ROLLED_WITHIN, what="another launcher pod")
    life.until("Running", after=new.at)

    before_that = [state for state in pods.states if name(state.body) == old and state.version < new.version]
    assert variable(new.body, "CHANGED") == "1"
    assert before_that[-1].deleted or is_over(before_that[-1].body)
    assert {uid(pod) for pod in running.pods("worker")} == workers


@promise(
    "A changed worker template replaces all workers at once, and the launcher starts after that.", of="MPIJob"
)
def test_a_changed_worker_template_rolls_every_worker_and_then_the_launcher_starts(
    life: Story, times: Times
) -> None:
    running = life.job
    old = {uid(pod) for pod in running.pods("worker")}
    listed = running.hosts()

    with (
        pods_of(running, "worker") as workers,
        watch(running.namespace, "job", f"{running.name}-launcher") as launchers,
        watch(running.namespace, "configmap", f"{running.name}-config") as config,
    ):
        first, begun = launchers.states[-1], time.monotonic()
        change(running, "Worker", "env", [{"name": "CHANGED", "value": "1"}])
        started = launchers.wait(
            lambda state: not state.deleted and state.uid != first.uid,
            within=ROLLED_WITHIN,
            what="another launcher Job",
        )
        # Each kind comes by a watch of its own: by now all have come as far.
        life.until("Running", after=started.at)
    then = as_of(workers, started.version)

    times.add("workers' template changed: two workers rolled and another launcher", started.at - begun)
    assert {state.body["metadata"]["labels"][REVISION] for state in then.values()} <= {wanted_revision(running)}
    assert {variable(state.body, "CHANGED") for state in then.values()} <= {"1"}
    assert {state.uid for state in then.values()} & old == set()
    assert {state.body["data"]["hostfile"] for state in config.states} == {
        config.states[0].body["data"]["hostfile"]
    }
    assert listed == running.hosts() == sorted(name(pod) for pod in running.pods("worker"))


@promise(
    "A changed worker template replaces all workers at once, and the launcher starts after that.", of="MPIJob"
)
@pytest.mark.one_in(3)
def test_all_workers_get_a_template_at_once_even_one_that_can_not_start_and_then_the_next_one(life: Story) -> None:
    running = life.job
    right = running.namespace.ground.image("busybox")

    begun = time.monotonic()
    change(running, "Worker", "image", MISSING_IMAGE)
    # A StatefulSet by itself would replace the first one when the last is Ready, and so never.
    stuck = life.told.wait(
        lambda state: all(
            f"{running.name}-worker-{n}: container mpi: ImagePullBackOff" in told_of(state, "Running")
            for n in (0, 1)
        ),
        after=begun,
        within=ROLLED_WITHIN,
        what="a message that names both pods and the cause",
    )
    change(running, "Worker", "image", right)

    assert condition(stuck, "Running")["status"] == "False"
    life.until("Running", after=stuck.at)
    assert {pod["metadata"]["labels"][REVISION] for pod in running.pods("worker")} == {wanted_revision(running)}


def change(job: MpiJob, role: str, field: str, value: object) -> None:
    """Change a field of the main container in the job's template."""
    operation = {"op": "add", "path": _TEMPLATE.format(role, field), "value": value}
    job.namespace.kubectl(
        "patch", "mpijobs.kubeflow.org", job.name, "--type=json", f"--patch={json.dumps([operation])}"
    )


def as_of(pods: Watch, version: int) -> dict[str, State]:
    """The pods that there were at that version of the cluster, by name."""
    there: dict[str, State] = {}
    for state in pods.states:
        if state.version <= version:
            there[name(state.body)] = state
    return {pod: state for pod, state in there.items() if not state.deleted}


def is_over(pod: dict[str, Any]) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def wanted_revision(job: MpiJob) -> str:
    return str(job.namespace.kubectl.get("statefulset", f"{job.name}-worker")["status"]["updateRevision"])


def variable(pod: dict[str, Any], wanted: str) -> str | None:
    env = pod["spec"]["containers"][0].get("env", [])
    return next((one.get("value") for one in env if one["name"] == wanted), None)


def name(body: dict[str, Any]) -> str:
    return str(body["metadata"]["name"])


def uid(body: dict[str, Any]) -> str:
    return str(body["metadata"]["uid"])
