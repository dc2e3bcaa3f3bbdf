"""
Objects with values that are nested deeply, as any tenant may send them.

Owns: how such an object is written, and the CRDs of others, which keep fields that they don't know. They are sent
as text: no JSON library in between, which might have limits of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpirt.controller.model.objectnames import OPERATOR
from testbed.kube.paths import PROJECT
from tests.unit.controller.schemas import crd

Body = dict[str, Any]

_MPI_JOB = "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs"
_KAI_VERSION = "kai.alibabacloud.com/v1alpha1"
_KAI = f"/apis/{_KAI_VERSION}/namespaces/{{}}"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_HOLE = "@@"


@dataclass(frozen=True)
class Field:
    """A field of an object in which a tenant may try to put anything."""

    name: str
    """How names of such objects begin."""
    path: str
    """The URL path of the object's kind, with a gap for the namespace."""
    body: Callable[[object], Body]
    """Returns the object with that value in the field."""
    member: str = "a"
    """What fields are called there."""

    def at(self, namespace: str) -> str:
        """Return the URL path of all objects of the kind in that namespace."""
        return self.path.format(namespace)

    def object_name(self, levels: int) -> str:
        return f"{self.name}-{levels}"

    def written(self, namespace: str, levels: int) -> str:
        """Return the object as JSON, with so many levels in the field."""
        body = self.body(_HOLE)
        metadata = {**body["metadata"], "name": self.object_name(levels), "namespace": namespace}
        nested = f'{{"{self.member}":' * (levels - 1) + "{}" + "}" * (levels - 1)
        return json.dumps({**body, "metadata": metadata}).replace(f'"{_HOLE}"', nested)


def _object(api_version: str, kind: str, spec: Body, **more: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec, **more}


def _pods(value: object) -> Body:
    spec: Body = {"containers": [{"name": "main", "image": "busybox"}]}
    return {"template": {"spec": spec if value is None else {**spec, "unknown": value}}}


def _job(value: object = None, **more: Any) -> Body:
    replicas = {"Launcher": _pods(value), "Worker": {"replicas": 1, **_pods(None)}}
    return _object("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": replicas}, **more)


def _training(value: object) -> Body:
    replicas = {"launcher": _pods(value), "worker": {"replicas": 1, **_pods(None)}}
    return _object(_KAI_VERSION, "TrainingJob", {"etReplicaSpecs": replicas})


def _task(value: object) -> Body:
    template = {"spec": {"unknown": value}}
    return _object("falldio.com/v1", "GPUTask", {"image": "busybox", "template": template})


def _scale_in(value: object) -> Body:
    variables = [{"name": "A", "unknown": value}]
    return _object(_KAI_VERSION, "ScaleIn", {"selector": {"name": "none"}, "env": variables})


def _scale_out(value: object) -> Body:
    return _scale_in(value) | {"kind": "ScaleOut"}


def _managed(body: Body, value: object, **metadata: Any) -> Body:
    entry = {
        "manager": "tenant",
        "operation": "Update",
        "apiVersion": body["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": value},
    }
    return {**body, "metadata": {**metadata, "managedFields": [entry]}}


def _config_map(value: object) -> Body:
    # The controller watches all objects with these labels.
    return _managed({"apiVersion": "v1", "kind": "ConfigMap"}, value, labels=dict(OPERATOR))


PODS = Field("pods", _MPI_JOB, _job)
FIELDS = (
    PODS,
    Field("managed", _MPI_JOB, lambda value: _managed(_job(), value), member="f:a"),
    Field("training", f"{_KAI}/trainingjobs", _training),
    Field("task", "/apis/falldio.com/v1/namespaces/{}/gputasks", _task),
    Field("scale-in", f"{_KAI}/scaleins", _scale_in),
    Field("scale-out", f"{_KAI}/scaleouts", _scale_out),
    Field("config-map", "/api/v1/namespaces/{}/configmaps", _config_map, member="f:a"),
)
"""Of every kind that tenants create; and a ConfigMap, which they may give the labels of the controller's own."""
STATUS = Field("status", _MPI_JOB, lambda value: _job(status={"unknown": value}))


def open_crds() -> list[Body]:
    """Our CRDs as others have theirs: with pods and variables of which nothing is known."""
    names = [path.stem for path in (PROJECT / "crds").glob("*.*.yaml")]
    return [_opened(crd(name)) for name in names]


def _opened(node: Any) -> Any:
    if isinstance(node, list):
        return [_opened(each) for each in node]
    if not isinstance(node, dict):
        return node
    fields = node.get("properties", {})
    if "containers" in fields or "valueFrom" in fields:
        return _OPEN
    return {name: _opened(below) for name, below in node.items()}
