"""
A worker that is not Ready, as a kubelet tells it, is named with the reason; what needs no kubelet is in tests/api.

The jobs wait side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.manifests import IDLE
from testbed.mpijobs import MpiJob, submit
from tests.e2e.controller.deployed import Deployed, job_name
from tests.promises import promise

READY = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "timeoutSeconds": 10}

# Nobody listens there, so that the node need not wait for an answer.
NO_SUCH_IMAGE = "localhost:1/no/such:image"

REASONS = {
    "image": f": container mpi: ImagePullBackOff: image {NO_SUCH_IMAGE} can't be pulled",
    "readiness": ": container mpi runs but is not Ready: its readiness probe does not succeed",
}


def jobs(namespace: Namespace) -> dict[str, dict[str, Any]]:
    """What keeps each job waiting, by what it is submitted with."""
    image = namespace.ground.image("busybox")
    main = {"name": "mpi", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["/bin/sh", "-c", IDLE]}
    return {
        "image": {"worker": {"containers": [{**main, "image": NO_SUCH_IMAGE}]}},
        "readiness": {"worker": {"containers": [{**main, "readinessProbe": READY}]}},
    }


@pytest.fixture(scope="module")
def waiting(controller: Deployed) -> Iterator[dict[str, MpiJob]]:
    """A job for each."""
    namespace = controller.namespace
    made = {
        why: submit(namespace, job_name(why), "busybox", ("true",), **{"workers": 1, **fields})
        for why, fields in jobs(namespace).items()
    }
    yield made
    namespace.kubectl("delete", "mpijobs.kubeflow.org", *(job.name for job in made.values()), "--wait=false")


@promise("A worker that is not Ready is named in the condition Running, with the reason.", of="MPIJob")
@pytest.mark.parametrize("why", REASONS)
@pytest.mark.full("tests/api/test_waiting.py proves it without a kubelet")
def test_a_worker_that_is_never_ready_is_named_with_the_reason(waiting: dict[str, MpiJob], why: str) -> None:
    job = waiting[why]
    words = f"0 of 1 workers are Ready: {job.name}-worker-0{REASONS[why]}"

    wait_for_words(job, words)

    running = job.condition("Running")
    assert (running["status"], running["reason"]) == ("False", "MPIJobWorkersNotReady")
    # It never was anything else.
    assert running["lastTransitionTime"] == job.condition("Created")["lastTransitionTime"]
    assert job.pods("launcher") == []


def wait_for_words(job: MpiJob, words: str) -> None:
    until(
        lambda: job.condition("Running").get("message", "").startswith(words),
        within=90,
        what=f"the words {words!r} of {job.name}",
    )
