"""
The status of a GPUTask: its form in the object, when it is written, and which changes get an event.

Owns: the values, reading and writing them, and what is written at once. states.py derives a status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from mpirt.controller.dialects.base import condition_row, read_conditions
from mpirt.controller.messages.events import announcement, transition, write_time_of
from mpirt.controller.model.actions import Action, WriteStatus
from mpirt.controller.model.conditions import Condition, Type
from mpirt.controller.model.reading import Body, digest, moment, number, text, write_time
from mpirt.controller.model.spec import Owner
from mpirt.controller.observed.pods import Pod


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

_NORMAL = frozenset({Reason.RUNNING, Reason.SUCCEEDED, Reason.MOVED})


@dataclass(frozen=True, slots=True)
class State:
    """Why a task runs or doesn't."""

    phase: Phase
    reason: str
    message: str
    pod: Pod | None = None
    """The pod that this is about."""
    outdated: str = ""
    """Why its pod is not the one that the task asks for now; empty if it is."""
    at: datetime | None = None
    """When the task ended."""

    @property
    def is_lost(self) -> bool:
        """Whether the task has lost its pod."""
        return self.reason in LOSSES


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The whole status."""

    phase: str = ""
    """Empty for a new task."""
    pod: str = ""
    uid: str = ""
    """The pod's uid, by which a recreated pod is distinguished from the one before."""
    node: str = ""
    restarts: int = 0
    """How often the task has lost its pod and got another."""
    left: str = ""
    """The node that the task left because that is about to go: it does not leave the same one twice."""
    started: datetime | None = None
    completed: datetime | None = None
    generation: int = 0
    conditions: Mapping[Type, Condition] = field(default_factory=dict)
    """Running; Outdated, only while it is true; and Succeeded or Failed at the end."""

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, which is final."""
        return self.phase in (Phase.SUCCEEDED, Phase.FAILED)

    @property
    def running(self) -> Condition | None:
        """Why it runs or doesn't; None for a new task."""
        return self.conditions.get(Type.RUNNING)

    @property
    def reason(self) -> str:
        """The reason why it runs or doesn't."""
        return self.running.reason if self.running is not None else ""


def read_status(body: Body) -> TaskStatus:
    """Return the status that an object holds. A field that can't be read counts as missing."""
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
        conditions=read_conditions(body),
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
        "conditions": [condition_row(status.conditions[kind]) for kind in Type if kind in status.conditions],
    }


def status_actions(
    owner: Owner, before: TaskStatus, status: TaskStatus, *, now: datetime
) -> tuple[list[Action], datetime | None]:
    """Return the events and the status write if they are due, otherwise when they will be (None: never)."""
    # A scheduler keeps rewording its messages, and a pod that has got a node will run in a moment: both can wait.
    due = write_time_of(
        None if before.running is None else before.running.updated,
        changed=_everything(before) != _everything(status),
        urgent=_urgent(before, before) != _urgent(before, status),
        now=now,
    )
    if due is None or due > now:
        return [], due
    actions: list[Action] = []
    if status.uid and not before.uid:
        message = f"created pod {status.pod}"
        identity = digest(owner.uid, message)
        actions.append(
            announcement(owner, identity, warning=False, reason=Reason.CREATED, message=message, now=now)
        )
    for kind, new in status.conditions.items():
        old = before.conditions.get(kind)
        # The end of a task is reported once, by the condition that names it.
        is_reported = not (status.is_over and kind is Type.RUNNING) and new.reason != Reason.PENDING
        if is_reported and (old is None or _essence(old, before) != _essence(new, status)):
            lost = f"{_lost(new, status)}{_lost(old, before)}"
            actions.append(
                transition(owner, old, new, warning=new.reason not in _NORMAL, now=now, distinction=lost)
            )
    write = WriteStatus(owner.kind, owner.key.name, owner.uid, write_status(status), "the status has changed")
    return [*actions, write], None


def _urgent(before: TaskStatus, status: TaskStatus) -> object:
    """Return what is written at once. That an obstacle is gone can wait: the task will run in a moment."""
    found = {kind: _essence(one, status) for kind, one in status.conditions.items()}
    if before.running is not None and status.reason == Reason.PENDING and not before.running.status:
        found[Type.RUNNING] = _essence(before.running, before)
    return found, status.phase, status.generation, status.completed


def _everything(status: TaskStatus) -> object:
    words = {kind: (one.status, one.reason, one.message) for kind, one in status.conditions.items()}
    pod = status.pod, status.uid, status.node, status.restarts, status.left, status.started
    return words, pod, status.phase, status.generation, status.completed


def _essence(condition: Condition, status: TaskStatus) -> tuple[bool, str, str]:
    """Return status and reason, and the pod if it was lost: each loss is a transition of its own."""
    return condition.status, condition.reason, _lost(condition, status)


def _lost(condition: Condition | None, status: TaskStatus) -> str:
    return status.uid if condition is not None and condition.reason in LOSSES else ""
