"""
Objects that look as if they were a job's, and are nobody's: whatever happens elsewhere, they stay as they are.

Owns: which, and what is compared of them.
"""

from __future__ import annotations

from typing import Any

from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import job_labels, object_name, worker_name
from testbed.ground import Namespace
from tests.api import hostile_objects

Body = dict[str, Any]

_KINDS = "configmaps,serviceaccounts,services,roles,rolebindings,statefulsets,jobs,pods"
_RBAC = "rbac.authorization.k8s.io"


def put_beside(namespace: Namespace, job: str) -> None:
    """Create all that a job of that name would have; there is none of that name in the namespace."""
    name = {kind: object_name(kind, job) for kind in kinds.OWNED if kind in kinds.RESOURCES}
    labels = job_labels(kinds.MPI_JOB, job)
    pod = hostile_objects.pod(worker_name(job, 0), job, "worker")
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    once = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    workers = {
        "replicas": 0,
        "serviceName": job,
        "selector": {"matchLabels": {"app": "bystander"}},
        "template": {**template, "metadata": {"labels": {"app": "bystander"}}},
    }
    role = {"apiGroup": _RBAC, "kind": "Role", "name": name[kinds.ROLE]}

    def made(kind: str, api_version: str, **fields: Any) -> Body:
        return {
            "apiVersion": api_version, "kind": kind, "metadata": {"name": name[kind], "labels": labels}, **fields
        }  # fmt: skip

    namespace.kubectl.apply(
        hostile_objects.config_map(name[kinds.CONFIG_MAP], job),
        made(kinds.SERVICE_ACCOUNT, "v1"),
        made(kinds.SERVICE, "v1", spec={"clusterIP": "None", "selector": {"app": "bystander"}}),
        made(kinds.ROLE, f"{_RBAC}/v1", rules=[]),
        made(kinds.ROLE_BINDING, f"{_RBAC}/v1", subjects=[], roleRef=role),
        made(kinds.STATEFUL_SET, "apps/v1", spec=workers),
        made(kinds.JOB, "batch/v1", spec={"suspend": True, "template": once}),
        pod,
    )


def state(namespace: Namespace) -> dict[str, Body]:
    """All of them as they are, by kind and name, without what Kubernetes says of them."""
    return {
        f"{one['kind']} {one['metadata']['name']}": _lasting(one)
        for one in namespace.kubectl.get(_KINDS)
        if one["metadata"]["name"] not in ("default", "kube-root-ca.crt")
    }


def _lasting(body: Body) -> Body:
    volatile = ("resourceVersion", "managedFields")
    metadata = {name: value for name, value in body["metadata"].items() if name not in volatile}
    nodeless = {name: value for name, value in body.get("spec", {}).items() if name != "nodeName"}
    rest = {name: value for name, value in body.items() if name not in ("metadata", "spec", "status")}
    return {**rest, "metadata": metadata, "spec": nodeless}
