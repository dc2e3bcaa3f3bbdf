"""
The pod of a GPUTask.

Owns: its manifest. The task's own fields come before its template; everything else of the template stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpirt.controller.gputasks.spec import APP_LABEL, CONTAINER, DEFAULT_IMAGE, GPU_TASK, TaskSpec
from mpirt.controller.manifests.meta import owner_reference
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, job_selector
from mpirt.controller.model.reading import digest
from mpirt.controller.model.spec import Settings


def creation(task: TaskSpec, settings: Settings) -> Create:
    """Return the creation of the task's pod."""
    manifest = task_pod(task, settings)
    return Create(manifest, "the task has no pod; creating", digest(manifest))


def task_pod(task: TaskSpec, settings: Settings) -> dict[str, Any]:
    """Return the task's pod."""
    selector = {settings.gpu_label: task.gpu} if task.gpu else {}
    chosen = {"nodeSelector": {**(task.pod.get("nodeSelector") or {}), **selector}} if selector else {}
    priority = {"priorityClassName": task.priority} if task.priority else {}
    return {
        "apiVersion": kinds.RESOURCES[kinds.POD].api_version,
        "kind": kinds.POD,
        "metadata": {
            "name": task.name,
            "namespace": task.owner.key.namespace,
            "labels": {**task.labels, **job_selector(GPU_TASK, task.name), "app": APP_LABEL},
            "annotations": {**task.annotations, TEMPLATE_ANNOTATION: task.shape(settings)},
            "ownerReferences": [owner_reference(task.owner)],
        },
        "spec": {
            # A task ends once. Kubernetes' own default would start it again for ever.
            "restartPolicy": "Never",
            **task.pod,
            "containers": _containers(task, settings),
            **chosen,
            **priority,
        },
    }


def _containers(task: TaskSpec, settings: Settings) -> list[dict[str, Any]]:
    rows = task.pod.get("containers") or [{"name": CONTAINER}]
    return [_main(row, task, settings) if row.get("name") == CONTAINER else dict(row) for row in rows]


def _main(row: Mapping[str, Any], task: TaskSpec, settings: Settings) -> dict[str, Any]:
    own = {"image": task.image, "command": list(task.command), "args": list(task.args)}
    amounts = {"cpu": task.cpu, "memory": task.memory, settings.gpu_resource: task.gpu_amount}
    given: Mapping[str, Any] = row.get("resources") or {}
    limits = {**(given.get("limits") or {}), **{name: amount for name, amount in amounts.items() if amount}}
    return {
        "image": DEFAULT_IMAGE,
        # The last lines of its log say why it has failed, and are in the task's status then.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **row,
        **{name: value for name, value in own.items() if value},
        **({"resources": {**given, "limits": limits}} if limits else {}),
    }
