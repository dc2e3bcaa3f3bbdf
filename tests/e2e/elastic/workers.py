"""What happens to workers, and when it happened, in seconds since 1970."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from testbed.ground import Namespace
from testbed.kube.kubectl import Manifest, is_ready
from testbed.kube.wait import until


def scale(namespace: Namespace, replicas: int) -> float:
    """Ask for so many workers; the moment before the first of them can know."""
    asked = time.time()
    namespace.kubectl("scale", "statefulset/worker", f"--replicas={replicas}")
    return asked


def delete(namespace: Namespace, worker: str) -> float:
    asked = time.time()
    namespace.kubectl("delete", "pod", worker, "--wait=false")
    return asked


def ready_at(namespace: Namespace, workers: Sequence[str]) -> float:
    """When the last of them was Ready; Kubernetes tells whole seconds, rounded down."""
    until(
        lambda: all(is_ready(pod) for pod in _pods(namespace, workers)),
        within=60,
        what=f"{', '.join(workers)} to be Ready",
    )
    return max(_ready_since(pod) for pod in _pods(namespace, workers))


def node_of(namespace: Namespace, pod: str) -> str:
    return str(namespace.kubectl.get("pod", pod)["spec"]["nodeName"])


def on_node(namespace: Namespace, node: str) -> list[str]:
    """The workers on this node, in the order of their numbers."""
    pods = namespace.kubectl.get("pods", "--selector=app=worker")
    return sorted(pod["metadata"]["name"] for pod in pods if pod["spec"]["nodeName"] == node)


def _pods(namespace: Namespace, workers: Sequence[str]) -> list[Manifest]:
    pods = namespace.kubectl.get("pods", "--selector=app=worker")
    found = [pod for pod in pods if pod["metadata"]["name"] in workers]
    return found if len(found) == len(workers) else [{}]


def _ready_since(pod: Manifest) -> float:
    [ready] = [each for each in pod["status"]["conditions"] if each["type"] == "Ready"]
    return datetime.fromisoformat(ready["lastTransitionTime"]).timestamp()
