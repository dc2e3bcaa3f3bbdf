"""
The status of a GPUTask.

Owns: the values, their form in the object, and reading them back. states.py says what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from mpirt.controller.model.reading import Body, moment, number, rows, table, text, write_time

_NEVER = datetime.fromtimestamp(0, UTC)


class Phase(StrEnum):
    """Where in its life a task is."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Reason(StrEnum):
    """Why a task runs or doesn't: the reasons of its conditions and events."""

    CREATED = "GPUTaskPodCreated"
    PENDING = "GPUTaskPending"
    UNSCHEDULABLE = "GPUTaskUnschedulable"
    NOT_STARTING = "GPUTaskNotStarting"
    RUNNING = "GPUTaskRunning"
    SUCCEEDED = "GPUTaskSucceeded"
    FAILED = "GPUTaskFailed"
    INVALID = "GPUTaskFailedValidation"
    REFUSED = "GPUTaskRefused"
    EXISTS = "ErrResourceExists"
    OUTDATED = "GPUTaskOutdated"
    PREEMPTED = "GPUTaskPreempted"
    EVICTED = "GPUTaskEvicted"
    NODE_LOST = "GPUTaskNodeLost"
    POD_FAILED = "GPUTaskPodFailed"
    POD_DELETED = "GPUTaskPodDeleted"
    MOVED = "GPUTaskMoved"


LOSSES = frozenset({
    Reason.PREEMPTED, Reason.EVICTED, Reason.NODE_LOST, Reason.POD_FAILED, Reason.POD_DELETED, Reason.MOVED,
})  # fmt: skip
"""The reasons of a task that has lost its pod before it ended, and runs again."""


class Type(StrEnum):
    """The conditions, in the order in which they are written."""

    RUNNING = "Running"
    OUTDATED = "Outdated"
    """The task was changed while it runs; there only while that is so."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: whether it is true, since when, and why."""

    status: bool
    reason: str
    message: str
    changed: datetime
    """When it last became true or false."""
    updated: datetime
    """When anything about it last changed."""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The whole status."""

    phase: str = ""
    """Empty for a new task."""
    pod: str = ""
    uid: str = ""
    """The pod's uid, by which a recreated pod is told from the one before."""
    node: str = ""
    restarts: int = 0
    """How often the task has lost its pod and got another."""
    left: str = ""
    """The node that the task left because that is about to go: it does not leave the same one twice."""
    started: datetime | None = None
    completed: datetime | None = None
    generation: int = 0
    running: Condition | None = None
    outdated: Condition | None = None
    end: Condition | None = None

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, which is final."""
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)

    @property
    def reason(self) -> str:
        """Why it runs or doesn't."""
        return self.running.reason if self.running is not None else ""

    @property
    def conditions(self) -> dict[Type, Condition]:
        """Those that it has."""
        end = Type.SUCCEEDED if self.phase == Phase.SUCCEEDED else Type.FAILED
        found = {Type.RUNNING: self.running, Type.OUTDATED: self.outdated, end: self.end}
        return {kind: one for kind, one in found.items() if one is not None}


def read_status(body: Body) -> TaskStatus:
    """Return the status that an object holds. A field that can't be read counts as missing."""
    found = {text(row, "type"): _condition(row) for row in rows(body, "conditions")}
    return TaskStatus(
        phase=text(body, "phase"),
        pod=text(body, "podName"),
        uid=text(body, "podUID"),
        node=text(body, "nodeName"),
        restarts=number(body, "restarts"),
        left=text(body, "leftNodeName"),
        started=moment(body, "startTime"),
        completed=moment(body, "completionTime"),
        generation=number(body, "observedGeneration"),
        running=found.get(Type.RUNNING),
        outdated=found.get(Type.OUTDATED),
        end=found.get(Type.SUCCEEDED) or found.get(Type.FAILED),
    )


def write_status(status: TaskStatus) -> dict[str, object]:
    """Return the status as the object has it, without fields that are empty."""
    texts = {
        "phase": status.phase,
        "podName": status.pod,
        "podUID": status.uid,
        "nodeName": status.node,
        "leftNodeName": status.left,
        "startTime": status.started and write_time(status.started),
        "completionTime": status.completed and write_time(status.completed),
    }
    return {
        **{name: value for name, value in texts.items() if value},
        "restarts": status.restarts,
        "observedGeneration": status.generation,
        "conditions": [_row(kind, one) for kind, one in status.conditions.items()],
    }


def generation_of(body: Body) -> int:
    """Return the generation of an object's spec."""
    return number(table(body, "metadata"), "generation")


def _condition(row: Body) -> Condition:
    changed = moment(row, "lastTransitionTime") or _NEVER
    return Condition(
        status=text(row, "status") == "True",
        reason=text(row, "reason"),
        message=text(row, "message"),
        changed=changed,
        updated=moment(row, "lastUpdateTime") or changed,
    )


def _row(kind: Type, condition: Condition) -> dict[str, str]:
    return {
        "type": kind,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": write_time(condition.changed),
        "lastUpdateTime": write_time(condition.updated),
    }
