"""
Objects that a tenant may write who wishes the controller ill. No I/O.

Owns: their bodies. Numbers that no schema expects, fields within fields, labels and owners that are not theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import HISTORY_ANNOTATION, job_labels, object_name, pod_labels
from testbed.mpijobs import manifest
from tests.api.gputasks import manifest as gpu_task
from tests.support.trainings import training_job

Body = dict[str, Any]

HUGE = 2500
"""Workers of one job."""

JOB_KINDS: Mapping[str, str] = {
    "MPIJob": "/apis/kubeflow.org/v2beta1 mpijobs",
    "TrainingJob": "/apis/kai.alibabacloud.com/v1alpha1 trainingjobs",
    "GPUTask": "/apis/falldio.com/v1 gputasks",
}

_PODS = {
    "MPIJob": "spec.mpiReplicaSpecs.Worker.template.spec",
    "TrainingJob": "spec.etReplicaSpecs.worker.template.spec",
    "GPUTask": "spec.template.spec",
}
"""Where a job has the spec of its workers' pods."""

_NUMBERS: tuple[Any, ...] = (
    -1, 0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 9_000_000_000_000, 1e308, 0.5, "9" * 5000, "1e9", "", True, [],
)  # fmt: skip

_NUMERIC_FIELDS = {
    "MPIJob": (
        "spec.slotsPerWorker",
        "spec.runPolicy.activeDeadlineSeconds",
        "spec.runPolicy.backoffLimit",
        "spec.runPolicy.ttlSecondsAfterFinished",
        "spec.runPolicy.schedulingPolicy.minAvailable",
        "spec.mpiReplicaSpecs.Launcher.replicas",
        "spec.mpiReplicaSpecs.Worker.replicas",
        "spec.mpiReplicaSpecs.Worker.template.spec.terminationGracePeriodSeconds",
        "spec.mpiReplicaSpecs.Launcher.template.spec.terminationGracePeriodSeconds",
        "spec.mpiReplicaSpecs.Launcher.template.spec.activeDeadlineSeconds",
    ),
    "TrainingJob": (
        "spec.slotsPerWorker",
        "spec.backoffLimit",
        "spec.activeDeadlineSeconds",
        "spec.etReplicaSpecs.worker.replicas",
        "spec.etReplicaSpecs.worker.minReplicas",
        "spec.etReplicaSpecs.worker.maxReplicas",
        "spec.etReplicaSpecs.worker.template.spec.terminationGracePeriodSeconds",
    ),
    "GPUTask": ("spec.memory", "spec.cpu", "spec.gpu-amount", "spec.template.spec.terminationGracePeriodSeconds"),
}

_WRONG: tuple[tuple[str, Any], ...] = (
    ("spec", {}),
    ("spec", None),
    ("spec.mpiReplicaSpecs", {}),
    ("spec.mpiReplicaSpecs.Worker", None),
    ("spec.mpiReplicaSpecs.Launcher.template", {}),
    ("spec.mpiReplicaSpecs.Launcher.template.spec.containers", []),
    ("spec.mpiReplicaSpecs.Worker.template.spec.containers", [{}]),
    ("spec.mpiReplicaSpecs.Worker.template.metadata.labels", {"not a label": "x" * 100}),
    ("spec.mpiReplicaSpecs.Worker.template.spec.volumes", [{"name": "v", "hostPath": {"path": "../.."}}] * 300),
    ("spec.mpiReplicaSpecs.Worker.template.spec.nodeSelector", {"": ""}),
    ("spec.mpiReplicaSpecs.Launcher.template.spec.serviceAccountName", "../default"),
    ("spec.mpiReplicaSpecs.Launcher.template.spec.restartPolicy", "Sometimes"),
    ("spec.mpiImplementation", "ssh"),
    ("spec.sshAuthMountPath", "\u0000"),
    ("spec.runPolicy.managedBy", "kueue.x-k8s.io/multikueue"),
    ("metadata.labels", {"kueue.x-k8s.io/queue-name": "none"}),
    ("metadata.annotations", {"mpirt.dev/rerun": "x" * 200_000}),
    ("metadata.finalizers", ["example.com/never"]),
)
"""Fields, and what to put there."""


def job(kind: str, name: str, *, workers: int = 2) -> Body:
    """A job of that kind that means no harm."""
    match kind:
        case "MPIJob":
            spread: Body = {"topologySpreadConstraints": []}
            return manifest(name, "none", ("true",), workers=workers, worker=spread, launcher={}, container={})
        case "TrainingJob":
            return training_job(name, replicas=workers, most=max(9, workers))
        case _:
            return gpu_task(name, gpu="nobody-has-it")


def huge(kind: str, name: str) -> Body:
    """
    One whose workers are too many.

    No scheduler looks at them: Kubernetes' own would have no time for the pods of others, whoever made them.
    """
    body, pods = job(kind, name, workers=HUGE), _PODS[kind]
    put(body, f"{pods}.schedulerName", "nobody")
    return body


def absurd(chance: Random, kind: str, name: str) -> Body:
    """A job some of whose numbers are none, or too many."""
    body = job(kind, name)
    for field in chance.sample(_NUMERIC_FIELDS[kind], chance.randint(1, 3)):
        put(body, field, chance.choice(_NUMBERS))
    return body


def invalid(chance: Random, name: str) -> Body:
    """A job that can't be carried out, whatever the API server thinks of it."""
    body = job("MPIJob", name)
    for field, value in chance.sample(_WRONG, chance.randint(1, 2)):
        put(body, field, value)
    return body


def deep(chance: Random, kind: str, name: str) -> str:
    """A job with fields within fields, already written: json refuses what is very deep."""
    levels = chance.choice((50, 400, 900, 3000))
    opening, closing = chance.choice((('{"a":', "}"), ("[", "]")))
    pod = _PODS[kind]
    where = chance.choice(("spec.deep", f"{pod}.deep", f"{pod}.affinity", "status.deep"))
    return written(job(kind, name), {where: opening * levels + "1" + closing * levels})


def written(body: Body, parts: Mapping[str, str]) -> str:
    """The body as JSON, with these parts of it as they are."""
    for place, field in enumerate(parts):
        put(body, field, f"<{place}>")
    text = json.dumps(body)
    for place, part in enumerate(parts.values()):
        text = text.replace(f'"<{place}>"', part)
    return text


def put(body: Body, field: str, value: Any) -> None:
    """Set a field, by its path, where what is above it allows that."""
    *above, last = field.split(".")
    for name in above:
        below = body.setdefault(name, {})
        if not isinstance(below, dict):
            return
        body = below
    body[last] = value


def config_map(name: str, job_name: str, owners: list[Body] | None = None) -> Body:
    """A ConfigMap that looks as if it were one of a job's."""
    history = {HISTORY_ANNOTATION: '{"attempts":[{"launcher":7,"deaths":[[]],"end":{"code":"x"}}]}'}
    metadata = {"name": name, "labels": job_labels(kinds.MPI_JOB, job_name), "annotations": history}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata | ({"ownerReferences": owners} if owners else {}),
        "data": {"hostfile": "nobody slots=1\n"},
    }


def pod(name: str, job_name: str, role: str, owners: list[Body] | None = None) -> Body:
    """The same for a pod."""
    metadata = {"name": name, "labels": pod_labels(kinds.MPI_JOB, job_name, role)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | ({"ownerReferences": owners} if owners else {}),
        "spec": {"containers": [{"name": "mpi", "image": "none"}], "terminationGracePeriodSeconds": 0},
    }


def owner(kind: str, name: str, uid: str, api_version: str = "kubeflow.org/v2beta1") -> Body:
    """A reference to a controlling owner, who may be anybody's."""
    who = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
    return who | {"controller": True, "blockOwnerDeletion": True}


def rumour(chance: Random, number: int, job_name: str, namespace: str) -> Body:
    """An event that looks as if a quota, or a node, were in a job's way."""
    kind, reason = chance.choice((("StatefulSet", "FailedCreate"), ("Job", "FailedCreate"), ("Pod", "Evicted")))
    names = {
        "StatefulSet": object_name(kinds.STATEFUL_SET, job_name),
        "Job": object_name(kinds.JOB, job_name),
        "Pod": f"{object_name(kinds.STATEFUL_SET, job_name)}-0",
    }
    message = chance.choice(("failed error: ", "Error creating: ", "")) + f"rumour {number} " + "x" * 900
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "rumour-"},
        "involvedObject": {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": names[kind]},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "firstTimestamp": "2999-01-01T00:00:00Z",
        "lastTimestamp": chance.choice(("2999-01-01T00:00:00Z", "1970-01-01T00:00:00Z")),
        "count": 2**31 - 1,
    }


def pod_lie(chance: Random, number: int) -> Body:
    """A pod's status that no kubelet would write."""
    nested = '{"mpirt.dev/account":' + "[" * chance.choice((1, 5000)) + '{"lost":[{"pod":7}]}'
    terminated = {"exitCode": chance.choice((0, 137, 2**31 - 1)), "message": nested}
    states: tuple[Body, ...] = (
        {"terminated": terminated},
        {"running": {"startedAt": "2999-01-01T00:00:00Z"}},
        {"waiting": {"reason": f"Rumour{number}", "message": "x" * 4000}},
    )
    status = {
        "name": chance.choice(("mpi", "somebody")),
        "image": "none",
        "imageID": "",
        "ready": chance.choice((True, False)),
        "restartCount": number,
        "containerID": f"containerd://{number:064x}",
        "state": chance.choice(states),
        "lastState": {"terminated": terminated},
    }
    ready = {
        "type": "Ready",
        "status": chance.choice(("True", "False")),
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
    return {"status": {"conditions": [ready], "containerStatuses": [status]}}


def status_lie(chance: Random) -> Body:
    """A job's status that this controller has not written."""
    condition = {"type": chance.choice(("Succeeded", "Failed", "Running", "Suspended", "?")), "status": "True"}
    said = {"reason": "Rumour", "message": "x" * 10_000, "lastTransitionTime": "2999-01-01T00:00:00Z"}
    ends: object = chance.choice(({"code": "x"}, {"code": 10**30}, [], {"time": "never"}))
    attempts = [{"launcher": "nobody", "end": ends, "deaths": [{"pod": "x"}] * 500, "workers": "9-9"}] * 20
    lies: tuple[Body, ...] = (
        {"conditions": [condition | said] * 3},
        {"conditions": [condition]},
        {"attempts": attempts},
        {"failedLauncher": {"job": "x", "count": -7, "at": "9999-12-31T23:59:59Z", "final": True}},
        {"startTime": "2999-01-01T00:00:00Z", "completionTime": "1970-01-01T00:00:00Z"},
        {"replicaStatuses": {"Worker": {"active": -1}, "?": {}}},
        {"targetWorkers": ["x"] * 1000, "scaling": {"replicas": -1, "change": {}, "pending": []}},
    )
    return {"status": chance.choice(lies)}
