"""Pods for the tests of discovery. Owns: a pod object that is Ready, and what may be different about it."""

from __future__ import annotations

from typing import Any

from mpirt.discover.discovery import Pod, read_pod

Body = dict[str, Any]

WORKERS = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "uid": "1", "controller": True}


def body(name: str = "w-0", *, metadata: Body | None = None, spec: Body | None = None, **status: Any) -> Body:
    """A pod that is Ready; the arguments replace whole fields."""
    return {
        "metadata": {"name": name, "ownerReferences": [WORKERS], **(metadata or {})},
        "spec": {"containers": [{"name": "main"}], **(spec or {})},
        "status": {
            "phase": "Running",
            "conditions": [condition("Ready"), condition("ContainersReady")],
            "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {}}}],
            **status,
        },
    }


def condition(kind: str, *, status: str = "True", reason: str = "") -> Body:
    return {"type": kind, "status": status, "reason": reason}


def pod(name: str = "w-0", **different: Any) -> Pod:
    return read_pod(body(name, **different))


def labelled(name: str = "w-0", **labels: str) -> Pod:
    """A pod with labels; two underscores in a name stand for a slash, one for a hyphen."""
    written = {key.replace("__", "/").replace("_", "-"): found for key, found in labels.items()}
    return pod(name, metadata={"labels": written})


def owned(name: str, owner: Body | None) -> Pod:
    return pod(name, metadata={"ownerReferences": [owner] if owner else []})
