"""
The CRDs and pods: what is generated is what this API server serves, and what people write in pods is taken.

mpi-operator's CRD takes neither null nor a number with a fraction in a pod's fields. Ours takes null: templates of
other tools leave it where nothing is set.
"""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from crds import generate
from testbed.ground import Namespace
from testbed.kube.programs import modules
from testbed.plane import shared
from testbed.plane.plane import Plane
from tests.api.controllers import job_name
from tests.promises import promise
from tests.unit.controller.jobs import container, mpi_job, template
from tests.unit.controller.schemas import CRDS, nodes

PLAIN = {"name": "main", "image": "busybox"}


@promise(
    "The CRDs have every field of pods that Kubernetes has, and the fields reach the pods.", of="installation"
)
def test_the_generated_parts_are_as_kubernetes_has_them(
    plane: Plane, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = plane.kubectl("get", "--raw=/openapi/v3/api/v1").stdout
    if shared.version() != modules.newest():
        # An earlier version has no field that ours lack.
        types = json.loads(document)["components"]["schemas"]
        assert paths(generate.schema_of("PodSpec", types)) <= paths(pod_schema())
        return
    monkeypatch.setattr("sys.stdin", io.StringIO(document))

    assert (generate.main(["--check"]), capsys.readouterr().err) == (0, "")


TAKEN: dict[str, Any] = {
    "null in place of a list": {"tolerations": None, "volumes": None},
    "null in place of an object": {"nodeSelector": None, "affinity": None, "securityContext": None},
    "null in place of a text": {"priorityClassName": None, "runtimeClassName": None},
    "null in a container": {"containers": [{**PLAIN, "resources": None, "env": [{"name": "A", "value": None}]}]},
    "null in place of a quantity": {"containers": [{**PLAIN, "resources": {"limits": {"cpu": None}}}]},
    "quantities as numbers": {"containers": [{**PLAIN, "resources": {"limits": {"cpu": 2, "nvidia.com/gpu": 1}}}]},
    "quantities as texts": {"containers": [{**PLAIN, "resources": {"limits": {"cpu": "0.5", "memory": "1Gi"}}}]},
    "ports by name and number": {
        "containers": [
            {
                **PLAIN,
                "readinessProbe": {"httpGet": {"port": "http"}},
                "livenessProbe": {"tcpSocket": {"port": 8080}},
            }
        ]
    },
    "a variable that stands twice": {
        "containers": [{**PLAIN, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]
    },
    "a claim's template": {
        "volumes": [
            {
                "name": "scratch",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "metadata": {"creationTimestamp": None, "labels": {"a": "b"}, "annotations": {"c": "d"}},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }
                },
            }
        ]
    },
}


@promise("An optional field of a pod may be null, and a quantity a text or a whole number.", of="MPIJob")
@pytest.mark.parametrize("what", TAKEN)
def test_fields_of_pods_are_stored_unchanged(namespace: Namespace, what: str) -> None:
    spec = {"containers": [PLAIN], **TAKEN[what]}

    assert create(namespace, {"spec": spec})["spec"] == spec


def test_the_metadata_of_a_copied_pod_is_stored(namespace: Namespace) -> None:
    metadata = {
        "creationTimestamp": None,
        "name": "copied",
        "namespace": "another",
        "generateName": "copied-",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "finalizers": ["example.com/f"],
    }

    assert create(namespace, {"metadata": metadata, "spec": {"containers": [PLAIN]}})["metadata"] == metadata


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a quantity with a fraction": (
        {"containers": [{**PLAIN, "resources": {"limits": {"cpu": 0.5}}}]},
        "resources.limits.cpu: Invalid value",
    ),
    "a misspelt field": ({"containers": [{**PLAIN, "comand": ["true"]}]}, "comand"),
    "a pod without containers": ({"nodeSelector": {"a": "b"}}, "containers: Required value"),
}


@promise("What no pod may have is refused with its place: a misspelt field, a quantity like 0.5.", of="MPIJob")
@pytest.mark.parametrize("what", REFUSED)
def test_a_field_that_no_pod_may_have_is_refused_with_its_place(namespace: Namespace, what: str) -> None:
    spec, said = REFUSED[what]
    body = job({"spec": spec})

    answer = namespace.kubectl("create", "--filename=-", stdin=json.dumps(body), check=False)

    assert answer.returncode != 0
    assert said in answer.stderr


def job(worker: dict[str, Any]) -> dict[str, Any]:
    body = mpi_job(launcher=template(container("mpi")), worker=worker)
    return {**body, "metadata": {"name": job_name("schema")}}


def create(namespace: Namespace, worker: dict[str, Any]) -> dict[str, Any]:
    """Create a job with that template of its workers, by kubectl with its checks; return the stored one."""
    body = job(worker)
    namespace.kubectl("create", "--filename=-", stdin=json.dumps(body))
    stored = namespace.kubectl.get("mpijobs.kubeflow.org", body["metadata"]["name"])
    found: dict[str, Any] = stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    return found


def paths(schema: dict[str, Any]) -> set[str]:
    return {path for path, _ in nodes(schema)}


def pod_schema() -> dict[str, Any]:
    [found] = [
        node
        for each in CRDS
        if each["spec"]["names"]["kind"] == "GPUTask"
        for _, node in nodes(each["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        if "containers" in node.get("properties", {})
    ]
    return dict(found)
