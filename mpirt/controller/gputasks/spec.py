"""
falldio.com GPUTask: the kind, its spec, reading one, and the manifest of its pod.

Owns: the checks of its fields, and the names that a task and its pod have in common. The CRD has the same checks;
these are for API servers that don't know its rules, and for objects that are older than these. An empty text
counts as not set: clients in Go write all five fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpirt import names, podobjects
from mpirt.controller.dialects.base import Kind
from mpirt.controller.manifests.supporting import owner_reference
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, job_selector
from mpirt.controller.model.reading import Body, digest, table
from mpirt.controller.model.spec import Owner, Settings
from mpirt.errors import SpecError
from mpirt.fields import Fields, shown

GPU_TASK = "GPUTask"
API_VERSION = "falldio.com/v1"

CONTAINER = "gpu-task"
"""The container in which the task runs."""
APP_LABEL = "gpu-task"
"""The value of the label `app` on the pods of all tasks."""
DEFAULT_IMAGE = "nvidia/cuda:11.0-base"

# "true": the task may be ended and run again, because it continues from where it was.
CHECKPOINTABLE_ANNOTATION = f"{names.PREFIX}/checkpointable"

# An event about the task is named after it, and its name is in a label of its pod.
LONGEST_NAME = 63

_QUANTITY = r"([0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?)?"
KIND = Kind((Resource(API_VERSION, GPU_TASK, "gputasks"),))


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What a task asks for. A field that is not set is empty, and then nothing in the pod comes from it."""

    owner: Owner
    memory: str
    cpu: str
    gpu: str
    """The model: the value of a node label."""
    gpu_amount: str
    priority: str
    """The name of a PriorityClass."""
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    labels: Mapping[str, str]
    """Those in the template; so are the next two."""
    annotations: Mapping[str, str]
    pod: Mapping[str, Any]
    checkpointable: bool

    @property
    def name(self) -> str:
        """The name of the task, and of its pod."""
        return self.owner.key.name

    def shape(self, settings: Settings) -> str:
        """Return a digest of what was written for the pod: when it changes, the task needs another pod."""
        return digest(
            [self.memory, self.cpu, self.gpu, self.gpu_amount, self.priority],
            [self.image, list(self.command), list(self.args)],
            [dict(self.labels), dict(self.annotations), dict(self.pod)],
            [settings.gpu_label, settings.gpu_resource],
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """Which texts a field may hold, and how that is put in a message."""

    pattern: str
    longest: int
    must: str


RULES = {
    "memory": Rule(_QUANTITY, 32, "must be a quantity such as 16Gi; units are k, M, G, T, Ki, Mi, Gi and Ti"),
    "cpu": Rule(_QUANTITY, 32, "must be a quantity such as 8, 0.5 or 500m"),
    "gpu": Rule(
        r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?",
        63,
        "must be a GPU model as the nodes' label has it, such as rtx4090",
    ),
    "gpu-amount": Rule(r"[0-9]*", 9, "must be a whole number of GPUs, such as 1"),
    "priority": Rule(
        r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?",
        253,
        "must be the name of a PriorityClass, such as gpu-low-priority",
    ),
}
"""The five fields, which the CRD names and limits in the same way."""


def parse(body: Body) -> TaskSpec:
    """Return the task's spec. Raises SpecError with the path of the first invalid field."""
    owner = KIND.owner(body)
    if len(owner.key.name) > LONGEST_NAME:
        raise SpecError("metadata.name", f"must have at most {LONGEST_NAME} characters, has {len(owner.key.name)}")
    spec = Fields(body, "").needed_table("spec")
    written = {name: _written(spec, name, rule) for name, rule in RULES.items()}
    template = spec.table("template")
    metadata, pod = template.table("metadata"), template.table("spec")
    _check_pod(pod)
    annotations = table(body, "metadata")
    return TaskSpec(
        owner=owner,
        memory=written["memory"],
        cpu=written["cpu"],
        gpu=written["gpu"],
        gpu_amount=written["gpu-amount"],
        priority=written["priority"],
        image=spec.text("image"),
        command=tuple(spec.texts("command")),
        args=tuple(spec.texts("args")),
        labels=metadata.labels("labels"),
        annotations=metadata.labels("annotations"),
        pod=pod.values,
        checkpointable=podobjects.annotation(annotations, CHECKPOINTABLE_ANNOTATION) == "true",
    )


def _written(spec: Fields, name: str, rule: Rule) -> str:
    """Return the text in one of the five fields; a whole number counts as its digits."""
    value = spec.values.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is not None and not isinstance(value, str):
        raise SpecError(spec.at(name), f"expected text or a whole number, got {shown(value)}")
    found = value or ""
    if len(found) > rule.longest or not re.fullmatch(rule.pattern, found):
        raise SpecError(spec.at(name), f"{rule.must}; got {shown(found)}")
    return found


def _check_pod(pod: Fields) -> None:
    """Check the fields of the template that ours are added to. Kubernetes checks everything else."""
    pod.labels("nodeSelector")
    rows = pod.rows("containers")
    if rows and CONTAINER not in [row.text("name") for row in rows]:
        raise SpecError(pod.at("containers"), f"one of them must be named {CONTAINER}, in which the task runs")
    for row in rows:
        row.table("resources").table("limits")


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
