"""Pods of a job, as the API server has them."""

from __future__ import annotations

from typing import Any

from tests.unit.controller.jobs import REVISION, Body, time

MADE_BY = {
    "worker": {"kind": "StatefulSet", "name": "train-worker"},
    "launcher": {"kind": "Job", "name": "train-launcher"},
}


def pod(
    name: str,
    *,
    role: str = "worker",
    owner: str = "uid-of-StatefulSet",
    made_by: Body | None = None,
    phase: str = "Running",
    conditions: dict[str, str | Body] | None = None,
    containers: list[Body] | None = None,
    inits: list[Body] | None = None,
    created: float = 1,
    node: str = "node-1",
    revision: str = REVISION,
    spec: Body | None = None,
    **more: Any,
) -> Body:
    """A pod; what is not said is as of one that runs and is Ready."""
    metadata = {
        "name": name,
        "generateName": f"{name.rpartition('-')[0]}-",
        "namespace": "ml",
        "uid": f"uid-of-{name}",
        "creationTimestamp": time(created),
        "labels": {
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "train",
            "training.kubeflow.org/job-role": role,
            "controller-revision-hash": revision,
        },
        "ownerReferences": [{**(made_by or MADE_BY[role]), "uid": owner, "controller": True}] if owner else [],
    }
    given = conditions if conditions is not None else {"Ready": "True", "ContainersReady": "True"}
    rows = [
        {"type": kind, **(value if isinstance(value, dict) else {"status": value})}
        for kind, value in given.items()
    ]
    status = {
        "phase": phase,
        "conditions": rows,
        "containerStatuses": containers if containers is not None else [running("main")],
        "initContainerStatuses": inits or [],
    }
    deletion = {"deletionTimestamp": time(more.pop("deleted"))} if "deleted" in more else {}
    return {
        "kind": "Pod",
        "metadata": {**metadata, **deletion},
        "spec": {"nodeName": node, **(spec or {})},
        "status": {**status, **more},
    }


def owner_of(role: str, owner: Body) -> Body:
    """The reference that a pod of that role has to its owner."""
    return {**MADE_BY[role], "uid": owner["metadata"]["uid"], "controller": True}


def worker(ordinal: int, **fields: Any) -> Body:
    return pod(f"train-worker-{ordinal}", **fields)


def launcher(name: str = "train-launcher-1", **fields: Any) -> Body:
    given: dict[str, Any] = {"role": "launcher", "owner": "uid-of-Job", "revision": "", "created": 10}
    return pod(name, **{**given, **fields})


def running(name: str, *, ready: bool = True, since: float = 2, **more: Any) -> Body:
    return {
        "name": name,
        "image": "mpi:4",
        "containerID": f"containerd://{since:06}",
        "ready": ready,
        "state": {"running": {"startedAt": time(since)}},
        **more,
    }


def waiting(name: str, reason: str, message: str = "", **more: Any) -> Body:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": name, "image": "mpi:4", "ready": False, "state": state, **more}


def terminated(code: int, reason: str = "Error", *, message: str = "", since: float = 12, at: float = 20) -> Body:
    """The end of a container, as it stands in its state or last state."""
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": time(since),
            "finishedAt": time(at),
        }
    }


def ended(name: str, code: int, reason: str = "Error", **more: Any) -> Body:
    return {"name": name, "image": "mpi:4", "ready": False, "state": terminated(code, reason, **more)}


def failed_launcher(
    name: str = "train-launcher-1", code: int = 137, *, since: float = 12, at: float = 18, **end: Any
) -> Body:
    done = ended("mpi", code, since=since, at=at, **end)
    return launcher(name, created=since - 2, phase="Failed", conditions={}, containers=[done])


def restarted(name: str, code: int, reason: str = "Error", *, at: float = 20) -> Body:
    return running(name, since=at + 1, lastState=terminated(code, reason, at=at))


def not_ready(**more: Any) -> dict[str, str | Body]:
    return {"Ready": {"status": "False", **more}, "ContainersReady": "False"}


def lost(since: float) -> dict[str, str | Body]:
    """As the node controller leaves the pods of a node that it has given up."""
    return {"Ready": {"status": "False", "lastTransitionTime": time(since)}, "ContainersReady": "True"}


def given_up(since: float) -> dict[str, str | Body]:
    """The same, when the taint manager has deleted them: what they tolerate is over."""
    return {**lost(since), **by_taint_manager()}


def by_taint_manager() -> dict[str, str | Body]:
    """What the taint manager notes in a pod that it deletes."""
    return {"DisruptionTarget": {"status": "True", "reason": "DeletionByTaintManager"}}
