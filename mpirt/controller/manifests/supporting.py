"""
The metadata that all objects of a job share, and its simple objects.

Owns: names, labels and owner references, by which Kubernetes deletes an object with its job; the headless Service;
the launcher's ServiceAccount, Role and RoleBinding; the workers' PodDisruptionBudget.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpirt import names
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Operation
from mpirt.controller.model.objectnames import job_labels, job_selector, object_name, pod_labels
from mpirt.controller.model.spec import JobSpec, Owner

# A share, or maxUnavailable, would be of the number of replicas; while a worker has a successor, there are more.
_MORE_THAN_ANY = 1_000_000


def head(
    spec: JobSpec, kind: str, *, annotations: Mapping[str, str] | None = None, api_version: str = ""
) -> dict[str, Any]:
    """Return apiVersion, kind and metadata of the job's object of that kind."""
    metadata: dict[str, Any] = {
        "name": object_name(kind, spec.key.name),
        "namespace": spec.key.namespace,
        "labels": job_labels(spec.key.kind, spec.key.name),
        "ownerReferences": [owner_reference(spec.owner)],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    version = api_version or kinds.RESOURCES[kind].api_version
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def owner_reference(owner: Owner) -> dict[str, Any]:
    """Return the owner reference that makes the job the controller of an object."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.key.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adoption(reference: Mapping[str, Any], *, first: bool) -> Operation:
    """Return the operation that adds an owner reference to an object; `first`: it has none."""
    path = "/metadata/ownerReferences"
    place, value = (path, [reference]) if first else (f"{path}/-", reference)
    return {"op": "add", "path": place, "value": value}


def service(spec: JobSpec) -> dict[str, Any]:
    """The job's Service."""
    return {
        **head(spec, kinds.SERVICE),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": job_selector(spec.key.kind, spec.key.name),
        },
    }


def search_domain(spec: JobSpec, cluster_domain: str) -> str:
    """Return the DNS search domain in which the short names of the job's pods resolve."""
    return f"{spec.key.name}.{spec.key.namespace}.svc.{cluster_domain}"


def own_account(spec: JobSpec) -> str:
    """The service account that the user has chosen for the launcher; empty if there is none."""
    pod = spec.launcher.template.spec
    return str(pod.get("serviceAccountName") or pod.get("serviceAccount") or "")


def account_name(spec: JobSpec) -> str:
    """The service account that the launcher runs under."""
    return own_account(spec) or object_name(kinds.SERVICE_ACCOUNT, spec.key.name)


def service_account(spec: JobSpec) -> dict[str, Any]:
    """Return the launcher's ServiceAccount, for jobs whose user has chosen none."""
    return head(spec, kinds.SERVICE_ACCOUNT)


def role(spec: JobSpec, workers: list[str]) -> dict[str, Any]:
    """Return the Role with the launcher's permissions in these workers."""
    start = {"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": workers, "verbs": ["get", "create"]}
    look = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    # Without resourceNames a rule would apply to all pods.
    return {**head(spec, kinds.ROLE), "rules": [start, look] if workers else [look]}


def role_binding(spec: JobSpec) -> dict[str, Any]:
    """Return the RoleBinding that grants the Role to the launcher's service account."""
    subject = {"kind": kinds.SERVICE_ACCOUNT, "name": account_name(spec), "namespace": spec.key.namespace}
    reference = {
        "apiGroup": kinds.RESOURCES[kinds.ROLE].group,
        "kind": kinds.ROLE,
        "name": object_name(kinds.ROLE, spec.key.name),
    }
    return {**head(spec, kinds.ROLE_BINDING), "subjects": [subject], "roleRef": reference}


def disruption_budget(spec: JobSpec) -> dict[str, Any]:
    """Return the workers' PodDisruptionBudget."""
    return {
        **head(spec, kinds.DISRUPTION_BUDGET),
        "spec": {
            "minAvailable": _MORE_THAN_ANY,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": pod_labels(spec.key.kind, spec.key.name, names.WORKER)},
        },
    }
