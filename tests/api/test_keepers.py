"""The keepers of a job's ConfigMap are those that the cluster's nodes can run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from testbed.ground import Ground
from testbed.plane import nodes
from tests.api.controllers import Controller, job_name
from tests.support import trainings
from tests.support.trainings import Training

NODE = "another-processor"


@pytest.fixture
def job(seeing: Controller) -> Training:
    """A running job of a controller that may list nodes."""
    made = trainings.submit(seeing.namespace, job_name("keepers"), replicas=1)
    made.wait_for("Running")
    return made


@pytest.fixture
def another_processor(cluster: Ground) -> Iterator[None]:
    """A node that reports one."""
    nodes.add(cluster.kubectl, [NODE], alone=True)
    report = json.dumps({"status": {"nodeInfo": {"architecture": "arm64"}}})
    cluster.kubectl("patch", "node", NODE, "--subresource=status", f"--patch={report}")
    yield
    nodes.remove(cluster.kubectl, NODE)


def keepers(job: Training) -> set[str]:
    found = job.namespace.kubectl.get("configmap", f"{job.name}-config").get("binaryData", {})
    return {name.rpartition("-")[2] for name in found}


def test_a_running_job_gets_one_more_with_the_first_node_of_another_architecture(
    job: Training, request: pytest.FixtureRequest
) -> None:
    assert keepers(job) == {"amd64"}

    request.getfixturevalue("another_processor")

    job.wait(lambda: keepers(job) == {"amd64", "arm64"}, "the other keeper")
