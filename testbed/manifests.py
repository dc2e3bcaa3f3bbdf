"""The objects that tests on Kubernetes create, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]

# PID 1 that ends at once when asked to, so that no test waits out a grace period it does not test.
IDLE = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"


RUN_LABEL = "mpirt-test-run"


def on(node: str) -> Manifest:
    """What of a pod's spec puts it on that node."""
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def rather_on(node: str) -> Manifest:
    """What puts it there as long as there is such a node, else anywhere."""
    there = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": there}]
            }
        }
    }


def namespace(name: str, *, run: str) -> Manifest:
    labels = {"mpirt-test": "yes", RUN_LABEL: run}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def headless_service(name: str) -> Manifest:
    """A Service without an address of its own: its pods have names in the DNS, before they are Ready too."""
    spec = {"clusterIP": "None", "selector": {"app": name}, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def workers(
    name: str, *, replicas: int, image: str, container: Mapping[str, Any] | None = None, **spec: Any
) -> Manifest:
    """A StatefulSet of idle workers, spread evenly over the nodes; `spec` and `container` have the last word."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": name}},
    }
    pod = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 5,
        "topologySpreadConstraints": [spread],
        "containers": [idle_container(image) | dict(container or {})],
        **spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


def pod(name: str, *, image: str, service_account: str = "default", **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "serviceAccountName": service_account,
            "terminationGracePeriodSeconds": 5,
            "containers": [idle_container(image)],
            **spec,
        },
    }


def idle_container(image: str) -> Manifest:
    return {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", IDLE],
    }


def launcher_account(name: str, *, rules: Sequence[Manifest]) -> list[Manifest]:
    """A service account that may do what `rules` say in its namespace, and nothing else."""
    subject = {"kind": "ServiceAccount", "name": name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    rbac = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
        {"apiVersion": rbac, "kind": "Role", "metadata": {"name": name}, "rules": list(rules)},
        {
            "apiVersion": rbac,
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "subjects": [subject],
            "roleRef": role,
        },
    ]
