"""
Pods as the API server has them, with what a test is about changed.

Owns: one ordinary running pod.
"""

from __future__ import annotations

from typing import Any

from mpirt.rsh.pod.facts import Pod, read_pod

RUNNING = {"running": {"startedAt": "2026-11-20T12:00:00Z"}}
OOM_KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


def container_status(**more: object) -> dict[str, object]:
    return {"name": "worker", "containerID": "containerd://1", "restartCount": 0, "state": RUNNING, **more}


def body(
    *,
    metadata: dict[str, object] | None = None,
    spec: dict[str, object] | None = None,
    status: dict[str, object] | None = None,
) -> dict[str, Any]:
    return {
        "metadata": {"name": "worker-0", "uid": "uid-1", **(metadata or {})},
        "spec": {"nodeName": "node-1", "containers": [{"name": "worker"}], **(spec or {})},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
            "containerStatuses": [container_status()],
            **(status or {}),
        },
    }


def pod(
    *,
    metadata: dict[str, object] | None = None,
    spec: dict[str, object] | None = None,
    status: dict[str, object] | None = None,
) -> Pod:
    return read_pod(body(metadata=metadata, spec=spec, status=status))


HEALTHY = pod()
DELETING = pod(metadata={"deletionTimestamp": "2026-11-20T12:00:00Z"})
DELETING_IN_30_S = pod(metadata={"deletionTimestamp": "2026-11-20T12:00:30Z", "deletionGracePeriodSeconds": 30})
REPLACED = pod(metadata={"uid": "uid-2"})
RESTARTED = pod(
    status={
        "containerStatuses": [
            container_status(containerID="containerd://2", restartCount=1, lastState=OOM_KILLED),
        ]
    }
)
NODE_LOST = pod(
    status={"conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]}
)
EVICTED = pod(status={"phase": "Failed", "reason": "Evicted", "containerStatuses": []})
# As kubelets of 1.37 leave a worker whose main process obeys TERM.
ENDED_BY_ITS_NODE = pod(
    spec={"restartPolicy": "Always"},
    status={
        "phase": "Succeeded",
        "containerStatuses": [
            container_status(state={"terminated": {"exitCode": 0, "reason": "Completed"}}),
        ],
    },
)
TAINTED = pod(
    metadata={"deletionTimestamp": "2026-11-20T12:00:00Z"},
    status={"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]},
)
PENDING = pod(
    status={
        "phase": "Pending",
        "conditions": [],
        "containerStatuses": [
            container_status(containerID="", state={"waiting": {"reason": "ContainerCreating"}}),
        ],
    }
)
