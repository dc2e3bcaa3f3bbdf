"""Nodes that KWOK plays: as large and as many as a test wants."""

from __future__ import annotations

from collections.abc import Iterable

from tests.kube.kubectl import Kubectl, Manifest
from tests.kube.wait import until

ALIVE = "mpirt-test/alive"
"""The label of nodes that KWOK plays."""

SELECTOR = f"{ALIVE}=yes"
_READY_WITHIN = 60.0
_PODS = 2000


def add(kubectl: Kubectl, names: Iterable[str], *, pods: int = _PODS) -> None:
    """Add nodes; returns when all are Ready and take pods."""
    wanted = set(names)
    kubectl.apply(*(_node(name, pods) for name in sorted(wanted)))
    until(lambda: _usable(kubectl) >= wanted, within=_READY_WITHIN, what=f"{len(wanted)} nodes that take pods")


def _usable(kubectl: Kubectl) -> set[str]:
    return {node["metadata"]["name"] for node in kubectl.get("nodes") if not node["spec"].get("taints")}


def _node(name: str, pods: int) -> Manifest:
    room = {"cpu": "1000", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ALIVE: "yes", "kubernetes.io/hostname": name}},
        "status": {"capacity": room, "allocatable": room},
    }
