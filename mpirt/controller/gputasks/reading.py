"""
falldio.com GPUTask: the kind, and reading one into a TaskSpec.

Owns: the checks of its fields. The CRD has the same; these are for API servers that don't know its rules, and for
objects that are older than these. An empty text counts as not set: clients in Go write all five fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpirt import podobjects
from mpirt.controller.dialects.base import owner_of
from mpirt.controller.dialects.fields import Fields, shown
from mpirt.controller.gputasks.spec import (
    API_VERSION,
    CHECKPOINTABLE_ANNOTATION,
    CONTAINER,
    GPU_TASK,
    LONGEST_NAME,
    TaskSpec,
)
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import Body, table
from mpirt.controller.model.spec import Owner
from mpirt.errors import SpecError


@dataclass(frozen=True, slots=True)
class Rule:
    """Which texts a field may hold, and how that is put in a message."""

    pattern: str
    longest: int
    must: str


_QUANTITY = r"([0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?)?"

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


@dataclass(frozen=True, slots=True)
class GpuTaskKind:
    """The kind of object."""

    versions: tuple[Resource, ...] = (Resource(API_VERSION, GPU_TASK, "gputasks"),)

    @property
    def resource(self) -> Resource:
        """The resource in the preferred version."""
        return self.versions[0]

    def owner(self, body: Body) -> Owner:
        """Return the task for owner references and events."""
        return owner_of(body, self.resource)


KIND = GpuTaskKind()


def parse(body: Body) -> TaskSpec:
    """Return the task's spec. Raises SpecError with the path of the first invalid field."""
    owner = KIND.owner(body)
    if len(owner.key.name) > LONGEST_NAME:
        raise SpecError("metadata.name", f"must have at most {LONGEST_NAME} characters, has {len(owner.key.name)}")
    spec = Fields(body, "").needed("spec")
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
