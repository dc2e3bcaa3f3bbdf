"""
What every program reads in a pod the same way. No I/O.

Owns: its conditions, the sign that its node is lost, why it has no node, why it is to be disrupted, what controls
it, which container of a name it is, what a GPU is.
Each program makes values of its own of the rest: one decides about hosts, one about commands, one about jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mpirt.objects import Body, rows, table, text

Conditions: TypeAlias = Mapping[str, Body]

GPU_SUFFIX = "/gpu"
"""Of a container's limits: nvidia.com/gpu, amd.com/gpu, and whatever else follows them."""

# 48 bits of a random number.
_IDENTITY = 12


def conditions(status: Body) -> Conditions:
    """A pod's conditions by their types."""
    return {text(row, "type"): row for row in rows(status, "conditions")}


def holds(found: Conditions, kind: str) -> bool:
    """Whether a condition is there and true."""
    return text(found.get(kind, {}), "status") == "True"


def is_cut_off(found: Conditions, spec: Body) -> bool:
    """
    Whether its node is lost, by what Kubernetes says.

    The node controller sets the pods of a lost node to not ready and nothing else; but so does a readiness gate.
    """
    is_unready = text(found.get("Ready", {}), "status") == "False"
    return is_unready and holds(found, "ContainersReady") and not rows(spec, "readinessGates")


def unscheduled(found: Conditions) -> Body:
    """The condition that says why the scheduler has no node for it; empty if it says nothing of that."""
    placed = found.get("PodScheduled", {})
    return placed if text(placed, "status") == "False" else {}


def disruption(found: Conditions) -> str:
    """Why it is to be disrupted, such as EvictionByEvictionAPI; empty if it isn't."""
    if not holds(found, "DisruptionTarget"):
        return ""
    return text(found["DisruptionTarget"], "reason") or "unknown"


def container_identity(status: Body) -> str:
    """The beginning of the runtime's id of a container, which is never used again; empty while there is none."""
    return shortened_identity(text(status, "containerID"))


def shortened_identity(container_id: str) -> str:
    """The same of the runtime's id in full."""
    return container_id.rpartition("/")[2][:_IDENTITY]


def controller(metadata: Body) -> Body:
    """The reference to what controls an object; empty if nothing does."""
    return next((row for row in rows(metadata, "ownerReferences") if row.get("controller") is True), {})


def annotation(metadata: Body, name: str) -> str:
    """The text of an annotation; empty if it isn't there."""
    return text(table(metadata, "annotations"), name)
