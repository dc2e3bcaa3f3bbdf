"""Nodes that KWOK plays: as large and as many as a test wants, and lost when it wants that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testbed.kube.kubectl import Kubectl, Manifest
from testbed.kube.wait import until
from testbed.plane.kubelet import Kubelet

ALIVE = "mpirt-test/alive"
"""The label of nodes that KWOK plays."""

SELECTOR = f"{ALIVE}=yes"

ALONE = "mpirt-test/alone"
"""The taint of nodes that are kept from others; its value is the node's name."""

_READY_WITHIN = 60.0
_PODS = 2000


def add(
    kubectl: Kubectl,
    names: Iterable[str],
    *,
    pods: int = _PODS,
    alone: bool = False,
    labels: Mapping[str, str] | None = None,
    room: Mapping[str, str] | None = None,
    kubelet: Kubelet | None = None,
) -> None:
    """
    Add nodes, for all pods or for those `alone` that tolerate them; returns when they are Ready and take pods.

    `labels` and `room`, such as GPUs, come on top of those of every node. With a `kubelet`,
    commands can be run in their pods.
    """
    wanted = set(names)
    endpoint = _endpoint(kubelet) if kubelet else {}
    kubectl.apply(*(_node(name, pods, labels or {}, room or {}, endpoint, alone=alone) for name in sorted(wanted)))
    until(lambda: _usable(kubectl) >= wanted, within=_READY_WITHIN, what=f"{len(wanted)} nodes that take pods")


def tolerating(name: str) -> Manifest:
    """What of a pod's spec allows it to be on that node, which is kept from others."""
    return {"tolerations": [{"key": ALONE, "operator": "Equal", "value": name, "effect": "NoSchedule"}]}


def lose(kubectl: Kubectl, name: str) -> None:
    """Nothing is heard of the node any more, nor of what is on it."""
    kubectl("label", "node", name, f"{ALIVE}-")


def remove(kubectl: Kubectl, name: str) -> None:
    """With all that is on it, soon after."""
    kubectl("delete", "node", name)


def _usable(kubectl: Kubectl) -> set[str]:
    return {
        node["metadata"]["name"]
        for node in kubectl.get("nodes")
        if all(taint["key"] == ALONE for taint in node["spec"].get("taints", ()))
    }


def _endpoint(kubelet: Kubelet) -> Manifest:
    addresses = [{"type": "InternalIP", "address": kubelet.address}]
    return {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}}}


def _node(
    name: str, pods: int, labels: Mapping[str, str], more: Mapping[str, str], endpoint: Manifest, *, alone: bool
) -> Manifest:
    room = {"cpu": "1000", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": str(pods), **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ALIVE: "yes", "kubernetes.io/hostname": name, **labels}},
        "spec": {"taints": [{"key": ALONE, "value": name, "effect": "NoSchedule"}]} if alone else {},
        "status": {"capacity": room, "allocatable": room, **endpoint},
    }
