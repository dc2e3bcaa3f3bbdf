"""
Jobs whose workers leave cordoned nodes: evictions are refused only while the controller moves the workers itself.
"""

from __future__ import annotations

import json

import pytest

from testbed.ground import Namespace
from tests.api.controllers import Controller, job_name
from tests.promises import promise
from tests.support import trainings
from tests.support.trainings import Training

LEAVES = {"mpirt.dev/leave-cordoned-nodes": "true"}
NOTICE = "the controller may not list nodes, so evictions are not refused"


@pytest.fixture
def protected(seeing: Controller) -> Training:
    """A running job of one worker, which may not be evicted."""
    job = running(seeing.namespace)
    assert "violate the pod's disruption budget" in evicted(job)
    return job


@promise("Evictions are refused only while the controller itself moves the workers.", of="TrainingJob")
@pytest.mark.parametrize("is_invalid", [False, True], ids=["a finished job", "a job whose spec is invalid"])
def test_the_worker_of_a_job_that_the_controller_does_not_move_can_be_evicted(
    protected: Training, *, is_invalid: bool
) -> None:
    if is_invalid:
        protected.change(launcherAttachMode="by hand")
    else:
        protected.let_end()
        protected.wait_for("Succeeded")

    protected.wait(lambda: not evicted(protected), "an eviction")


@promise("Evictions are refused only while the controller itself moves the workers.", of="TrainingJob")
@pytest.mark.one_in(3)
def test_the_worker_of_a_job_can_be_evicted_where_the_controller_may_not_list_nodes(jobs: Namespace) -> None:
    job = running(jobs)

    assert evicted(job) == ""
    assert NOTICE in job.condition("Created")["message"]


def running(namespace: Namespace) -> Training:
    job = trainings.submit(namespace, job_name("leaves"), replicas=1, on_job=LEAVES, cleanPodPolicy="None")
    job.wait_for("Running")
    return job


def evicted(job: Training) -> str:
    """Evict the job's worker; why the API server refuses it, empty if it does not."""
    [worker] = job.workers()
    metadata = {"name": worker, "namespace": job.namespace.name}
    body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
    path = f"/api/v1/namespaces/{job.namespace.name}/pods/{worker}/eviction"
    return job.namespace.kubectl("create", f"--raw={path}", "--filename=-", stdin=body, check=False).stderr
