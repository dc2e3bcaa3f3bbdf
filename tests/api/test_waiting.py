"""
The launcher starts when the workers are Ready, and not before; who keeps it waiting is named.

The jobs wait side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed import manifests
from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import READY_AFTER
from tests.api.controllers import Controller, job_name
from tests.promises import promise

# Quotas on these are against pods that ask for them, and against no other; of the disk there is enough for one.
SCARCE, DISK = "example.com/scarce", "ephemeral-storage"
FORBIDDEN = f"forbidden: exceeded quota: none, requested: requests.{SCARCE}=1, used: requests.{SCARCE}=0, limited"

QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "none"},
    "spec": {"hard": {f"requests.{SCARCE}": "0", f"requests.{DISK}": "150Mi"}},
}

LATE = {"launcherCreationPolicy": "WaitForWorkersReady"}

REASONS = {
    "quota": f" can't be created: {FORBIDDEN}",
    "unschedulable": " is not scheduled: Unschedulable: ",
}


def jobs(namespace: Namespace) -> dict[str, dict[str, Any]]:
    """What keeps each job waiting, by what it is submitted with."""
    main = {"name": "mpi", "image": namespace.ground.image("busybox")}
    wanting = {"resources": {"limits": {SCARCE: "1"}}}
    large = {"resources": {"requests": {DISK: "100Mi"}}}
    return {
        "slow": {"annotations": {"Worker": {READY_AFTER: "5s"}}},
        "unschedulable": {"worker": {"nodeSelector": {"there": "is-none"}}},
        "quota": {"worker": {"containers": [{**main, **wanting}]}},
        "elastic": {"worker": {"containers": [{**main, **large}]}, "workers": 2, "elastic": {"minReplicas": 1}},
        "launcher": {"launcher": {"containers": [{**main, **wanting}]}},
    }


@pytest.fixture(scope="module")
def waiting(controller: Controller) -> Iterator[dict[str, MpiJob]]:
    """A job for each."""
    namespace = controller.namespace
    namespace.kubectl.apply(QUOTA)
    until(lambda: is_counted(namespace), within=60, what="the quota to be in force")
    made = {
        why: submit(namespace, job_name(why), "busybox", ("true",), **{"workers": 1, **LATE, **fields})
        for why, fields in jobs(namespace).items()
    }
    yield made
    namespace.kubectl("delete", "mpijobs.kubeflow.org", *(job.name for job in made.values()), "--wait=false")
    namespace.kubectl("delete", "resourcequota", "none")


def is_counted(namespace: Namespace) -> bool:
    """Whether the quota is in force: for a moment the API server lets pods pass and counts them later."""
    scarce = {"name": "main", "image": "none", "resources": {"limits": {SCARCE: "1"}}}
    return FORBIDDEN in namespace.kubectl.answer_to(manifests.pod("tried", image="none", containers=[scarce]))


@promise("A worker that is not Ready is named in the condition Running, with the reason.", of="MPIJob")
@pytest.mark.parametrize("why", REASONS)
def test_a_worker_that_is_never_ready_is_named_with_the_reason(waiting: dict[str, MpiJob], why: str) -> None:
    job = waiting[why]
    words = f"0 of 1 workers are Ready: {job.name}-worker-0{REASONS[why]}"

    running = job.wait_for_words(words)

    assert (running["status"], running["reason"]) == ("False", "MPIJobWorkersNotReady")
    # It never was anything else.
    assert running["lastTransitionTime"] == job.condition("Created")["lastTransitionTime"]
    assert job.pods("launcher") == []


@promise("A launcher that can't be created is reported with the API server's reason.", of="MPIJob")
def test_a_launcher_that_cant_be_made_is_told_of_with_the_reason(waiting: dict[str, MpiJob]) -> None:
    job = waiting["launcher"]

    running = job.wait_for_words(f"the launcher's pod can't be created: {FORBIDDEN}")

    assert running["reason"] == "MPIJobLauncherNotRunning"


@promise("An elastic MPIJob starts with the workers that can be created, if they are enough.", of="MPIJob")
def test_an_elastic_job_begins_with_the_workers_that_can_be_made(waiting: dict[str, MpiJob]) -> None:
    job = waiting["elastic"]
    job.wait_for_end()

    assert [pod["metadata"]["name"] for pod in job.pods("worker")] == [f"{job.name}-worker-0"]


@promise("With WaitForWorkersReady the launcher is created when all workers are Ready.", of="MPIJob")
def test_a_launcher_waits_for_workers_that_take_their_time(waiting: dict[str, MpiJob]) -> None:
    job = waiting["slow"]
    job.wait_for_end()

    [launcher] = job.pods("launcher")
    [worker] = job.pods("worker")
    ready = next(each for each in worker["status"]["conditions"] if each["type"] == "Ready")
    assert launcher["metadata"]["creationTimestamp"] >= ready["lastTransitionTime"]
