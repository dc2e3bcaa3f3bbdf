"""In a launcher pod, mpirt-discover finds the job by itself."""

from __future__ import annotations

from typing import Any

import pytest

from testbed import manifests
from testbed.ground import Namespace
from tests.e2e.rsh import launcher
from tests.promises import promise
from tests.support.discover import LEAST, workers


def start(namespace: Namespace, labels: dict[str, str], **spec: Any) -> str:
    """Two workers and a launcher with these labels, which may get and list pods."""
    image = namespace.ground.image("openmpi4")
    made = workers("worker", image=namespace.ground.image("busybox"), replicas=2, labels=labels)
    made["spec"]["template"]["metadata"]["labels"] |= _role(labels, "worker")
    namespace.kubectl.apply(manifests.headless_service("worker"), made)
    account = namespace.account("launcher", rules=[LEAST])
    pod = manifests.pod("launch", image=image, service_account=account, **spec)
    pod["metadata"]["labels"] = {**labels, **_role(labels, "launcher")}
    namespace.kubectl.apply(pod)
    namespace.wait_until_ready("launch")
    launcher.put_mpirt(namespace, "launch")
    return "launch"


@promise("In a launcher pod mpirt-discover finds the job by itself.", of="mpirt-discover")
@pytest.mark.parametrize(
    "label", ["mpirt.dev/job", "training.kubeflow.org/job-name", "mpi-job-name"], ids=["ours", "v2beta1", "v1"]
)
@pytest.mark.sample(1)
def test_by_the_labels_of_its_own_pod(namespace: Namespace, label: str) -> None:
    pod = start(namespace, {label: "train"})

    told = namespace.kubectl.execute(pod, "mpirt-discover", "--wait=2", "--timeout=120", timeout=150)

    assert told == "worker-0:1\nworker-1:1\n"
    assert namespace.kubectl.execute(pod, "mpirt-discover") == told


@promise("In a launcher pod mpirt-discover finds the job by itself.", of="mpirt-discover")
@pytest.mark.oldest
def test_by_the_labels_that_the_downward_api_shows(namespace: Namespace) -> None:
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [{"name": "podinfo", "downwardAPI": {"items": [labels]}}]
    container = manifests.idle_container(namespace.ground.image("openmpi4"))
    container["volumeMounts"] = [{"name": "podinfo", "mountPath": "/etc/podinfo"}]
    # The host name is not the pod's: only the labels lead to the job.
    pod = start(namespace, {"mpirt.dev/job": "train"}, hostname="other", volumes=volumes, containers=[container])

    told = namespace.kubectl.execute(pod, "mpirt-discover", "--wait=2", "--timeout=120", timeout=150)

    assert told == "worker-0:1\nworker-1:1\n"


def _role(labels: dict[str, str], role: str) -> dict[str, str]:
    """The label of the role, by whoever has set that of the job."""
    roles = {
        "mpirt.dev/job": "mpirt.dev/role",
        "training.kubeflow.org/job-name": "training.kubeflow.org/job-role",
        "mpi-job-name": "mpi-job-role",
    }
    return {roles[label]: role for label in labels}
