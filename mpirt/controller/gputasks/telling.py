"""
Which changes of a GPUTask's status get an event, and when the status is written.

Owns: the comparison of two statuses. An event is created before the status is written, under a name made from the
transition, so that none is reported twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from mpirt.controller.gputasks.status import LOSSES, Condition, Reason, TaskStatus, Type, write_status
from mpirt.controller.messages.events import BETWEEN_WRITES, event
from mpirt.controller.model.actions import Action, Create, WriteStatus
from mpirt.controller.model.reading import digest
from mpirt.controller.model.spec import Owner

_NORMAL = frozenset({Reason.RUNNING, Reason.SUCCEEDED, Reason.MOVED})


def status_actions(
    owner: Owner, before: TaskStatus, status: TaskStatus, *, now: datetime
) -> tuple[list[Action], datetime | None]:
    """Return the events and the status write if they are due, otherwise when they will be (None: never)."""
    due = _due(before, status, now)
    if due is None or due > now:
        return [], due
    events = [_transition(owner, before, kind, status, now) for kind in _transitions(before, status)]
    first = [] if before.uid or not status.uid else [_first(owner, status, now)]
    name = owner.key.name
    return [
        *first,
        *events,
        WriteStatus(owner.kind, name, owner.uid, write_status(status), "the status has changed"),
    ], None


def _due(before: TaskStatus, status: TaskStatus, now: datetime) -> datetime | None:
    """Return when the status is to be written; None if nothing has changed."""
    if _everything(before) == _everything(status):
        return None
    if before.running is None or _what_counts(before, before) != _what_counts(before, status):
        return now
    # A scheduler keeps rewording its messages, and a pod that has got a node will run in a moment.
    return max(now, before.running.updated + BETWEEN_WRITES)


def _what_counts(before: TaskStatus, status: TaskStatus) -> object:
    """Return what is written at once. That an obstacle is gone can wait: the task will run in a moment."""
    told = {kind: _essence(one, status) for kind, one in status.conditions.items()}
    if before.running is not None and status.reason == Reason.PENDING and not before.running.status:
        told[Type.RUNNING] = _essence(before.running, before)
    return told, status.phase, status.generation, status.completed


def _everything(status: TaskStatus) -> object:
    words = {kind: (one.status, one.reason, one.message) for kind, one in status.conditions.items()}
    pod = status.pod, status.uid, status.node, status.restarts, status.left, status.started
    return words, pod, status.phase, status.generation, status.completed


def _transitions(before: TaskStatus, status: TaskStatus) -> Iterator[Type]:
    """Yield the conditions that have changed. The end of a task is told once, by the condition that names it."""
    old, new = before.conditions, status.conditions
    for kind, one in new.items():
        is_told = not status.is_over or kind is not Type.RUNNING
        has_changed = kind not in old or _essence(old[kind], before) != _essence(one, status)
        if is_told and has_changed and one.reason != Reason.PENDING:
            yield kind


def _essence(condition: Condition, status: TaskStatus) -> tuple[bool, str, str]:
    """Return status and reason, and the pod if it was lost: each loss is a transition of its own."""
    return condition.status, condition.reason, status.uid if condition.reason in LOSSES else ""


def _first(owner: Owner, status: TaskStatus, now: datetime) -> Create:
    """Return the event about the first pod of the task."""
    message = f"created pod {status.pod}"
    body = event(owner, digest(owner.uid, message), warning=False, reason=Reason.CREATED, message=message, now=now)
    return Create(body, message, once=True)


def _transition(owner: Owner, before: TaskStatus, kind: Type, status: TaskStatus, now: datetime) -> Create:
    old, new = before.conditions.get(kind), status.conditions[kind]
    last = old and [*_essence(old, before), old.changed.isoformat()]
    identity = digest(owner.uid, kind, *_essence(new, status), last)
    body = event(
        owner, identity, warning=new.reason not in _NORMAL, reason=new.reason, message=new.message, now=now
    )
    return Create(body, f"{kind} is {new.status}: {new.reason}: {new.message}", once=True)
