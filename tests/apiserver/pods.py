"""Pods as an API server hands them out. Owns: just enough of a Pod for the code under test to read."""

from __future__ import annotations

from typing import Any

Pod = dict[str, Any]


def pod(
    name: str,
    *,
    namespace: str = "ml",
    uid: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    containers: tuple[str, ...] = ("worker",),
    phase: str = "Running",
    node: str = "node-1",
    container_id: str = "",
) -> Pod:
    """A pod that runs and is Ready, unless the arguments differ."""
    running = phase == "Running"
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-of-{name}"}
    conditions = [{"type": kind, "status": str(running)} for kind in ("Ready", "ContainersReady")]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"nodeName": node, "containers": [{"name": each, "image": "busybox"} for each in containers]},
        "status": {
            "phase": phase,
            "podIP": "10.0.0.7",
            "conditions": conditions,
            "containerStatuses": [
                _container_status(each, container_id or f"containerd://{each}-of-{name}", running=running)
                for each in containers
            ],
        },
    }


def _container_status(name: str, container_id: str, *, running: bool) -> Pod:
    return {
        "name": name,
        "ready": running,
        "restartCount": 0,
        "containerID": container_id,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}} if running else {"waiting": {}},
    }
