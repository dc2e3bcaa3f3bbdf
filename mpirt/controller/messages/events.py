"""
Events, and which changes of a status get one or are written at once.

Owns: the Event object, the comparison of two statuses, and the event about repeated edits by others. An event is
created before the status is written, under a name made from the transition. If the controller dies in between, the
next one creates it under the same name, and the API server answers that it already exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt import names
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Manifest, Patch, WriteStatus
from mpirt.controller.model.attempts import History
from mpirt.controller.model.conditions import Condition, JobStatus, Reason, Type, reason_in
from mpirt.controller.model.reading import Body, digest, rows, shortened, table, text, write_time
from mpirt.controller.model.spec import JobKey, JobSpec, Owner
from mpirt.controller.observed.facts import Observed

# The limit of the API.
_LONGEST_MESSAGE = 1024

# Workers become Ready one after the other, and schedulers keep rewording their messages. If only counts and
# messages have changed, they wait until this long after the last write, and are written together.
BETWEEN_WRITES = timedelta(seconds=10)
_WARNINGS = frozenset({
    Reason.RESTARTING, Reason.INVALID, Reason.EXISTS, Reason.REFUSED, Reason.WORKER_FAILED,
    Reason.LAUNCHER_FAILED, Reason.WORKER_LOST, Reason.NOT_HONOURED, Reason.RUN_BY_ANOTHER,
})  # fmt: skip
# Their messages say why a launcher or a job ended. Later additions are rare and needed soon: written at once.
_CAUSES = frozenset({Type.RESTARTING, Type.FAILED})
# Their conditions say enough.
_SILENT = frozenset({Type.WORKERS_READY, Type.LAUNCHER_CREATED})
# Reported even if the condition is false.
_REPORTED_IF_FALSE = frozenset({
    Reason.RESUMED, Reason.RUN_AGAIN, Reason.EXISTS, Reason.REFUSED, Reason.INVALID, Reason.RUN_BY_ANOTHER,
})  # fmt: skip
StatusWriter = Callable[[JobStatus, JobKey], Manifest]
"""Converts a status into the format of the job object."""
# Two edits may be a person's trial and error; three come from a program.
REPORTED_EDITS = 3


def announcement(
    owner: Owner, identity: str, *, warning: bool, reason: str, message: str, now: datetime, why: str = ""
) -> Create:
    """
    Return the creation of an event, which counts as done if it exists.

    `identity` distinguishes it from all others about the object; `why` is logged in place of the message.
    """
    time = write_time(now)
    body = {
        "apiVersion": kinds.RESOURCES[kinds.EVENT].api_version,
        "kind": kinds.EVENT,
        "metadata": {"name": f"{owner.key.name}.{identity}", "namespace": owner.key.namespace},
        "involvedObject": {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.key.name,
            "namespace": owner.key.namespace,
            "uid": owner.uid,
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": shortened(message, _LONGEST_MESSAGE),
        "source": {"component": names.CONTROLLER},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    return Create(body, why or message, once=True)


def transition(
    owner: Owner, old: Condition | None, new: Condition, *, warning: bool, now: datetime, distinction: str = ""
) -> Create:
    """Return the event about a changed condition; `distinction`: from another one of the same essence."""
    last = old and [*_essence(old), old.changed.isoformat()]
    reason = reason_in(owner.kind, new.reason)
    return announcement(
        owner,
        digest(owner.uid, *_essence(new), distinction, last),
        warning=warning,
        reason=reason,
        message=new.message,
        now=now,
        why=f"{new.type} is {new.status}: {reason}: {new.message}",
    )


def status_actions(
    write: StatusWriter, spec: JobSpec | None, observed: Observed, status: JobStatus
) -> tuple[list[Action], datetime | None]:
    """Return the events and the status write if they are due, otherwise when they will be (None: never)."""
    owner, before, now = observed.owner, observed.status, observed.now
    due = is_due(before, status, now=now)
    if due is None or due > now:
        return [], due
    body = write(replace(status, written=now), owner.key)
    events = announcements(owner, before, status, spec, now=now)
    came_true = frozenset(kind for kind in status.conditions if status.is_true(kind) and not before.is_true(kind))
    return [
        *events,
        WriteStatus(owner.kind, owner.key.name, owner.uid, body, "the status has changed", came_true),
    ], None


def announcements(
    owner: Owner, before: JobStatus, status: JobStatus, spec: JobSpec | None, *, now: datetime
) -> list[Create]:
    """Return the events that report what has changed."""
    made = [
        transition(owner, old, new, warning=new.type is Type.FAILED or new.reason in _WARNINGS, now=now)
        for old, new in _transitions(before, status)
    ]
    if spec is not None and _message(before) != _message(status):
        made += [_notice(owner, notice, now=now) for notice in spec.notices if notice not in _message(before)]
    return made


def is_due(before: JobStatus, status: JobStatus, *, now: datetime) -> datetime | None:
    """Return when the status is to be written, now or later; None if nothing has changed."""
    is_same = _everything(before) == _everything(status) and before.history in (None, status.history)
    is_urgent = _what_counts(before) != _what_counts(status) or _has_news_of_pods(before, status)
    return write_time_of(before.written, changed=not is_same, urgent=is_urgent, now=now)


def write_time_of(last: datetime | None, *, changed: bool, urgent: bool, now: datetime) -> datetime | None:
    """Return when a status is to be written that was last written at `last`; None if it has not changed."""
    if not changed:
        return None
    return now if urgent or last is None else max(now, last + BETWEEN_WRITES)


def _transitions(before: JobStatus, status: JobStatus) -> Iterator[tuple[Condition | None, Condition]]:
    for kind, new in status.conditions.items():
        old = before.conditions.get(kind)
        has_changed = old is None or _essence(old) != _essence(new)
        if has_changed and _reported_reason(new) and kind not in _SILENT:
            yield old, new


def _reported_reason(condition: Condition) -> str:
    return condition.reason if condition.status or condition.reason in _REPORTED_IF_FALSE else ""


def _cause(condition: Condition) -> str:
    return condition.message if condition.status and condition.type in _CAUSES else ""


def _notice(owner: Owner, notice: str, *, now: datetime) -> Create:
    reason = reason_in(owner.kind, Reason.NOT_HONOURED)
    return announcement(owner, digest(owner.uid, notice), warning=True, reason=reason, message=notice, now=now)


def _message(status: JobStatus) -> str:
    created = status.conditions.get(Type.CREATED)
    return created.message if created is not None else ""


def _essence(condition: Condition) -> tuple[Type, bool, str]:
    return condition.type, condition.status, condition.reason


def _what_counts(status: JobStatus) -> object:
    """Return what must be written at once. The reasons of false conditions can wait, with few exceptions."""
    return (
        {kind: (one.status, _reported_reason(one), _cause(one)) for kind, one in status.conditions.items()},
        status.started,
        status.completed,
        _message(status),
        status.roster,
        _has_left(status),
    )


def _has_left(status: JobStatus) -> bool:
    """Whether a suspended job's pods are all gone: other jobs may be waiting for their places."""
    return status.is_true(Type.SUSPENDED) and not status.launcher.active + status.workers.active


def _everything(status: JobStatus) -> object:
    messages = {kind: (_essence(one), one.message) for kind, one in status.conditions.items()}
    counts = status.launcher, status.workers, status.running
    return messages, counts, status.started, status.completed, status.roster


def _has_news_of_pods(before: JobStatus, status: JobStatus) -> bool:
    """
    Whether the history has deaths, or workers of an attempt, that the written one has not.

    Those pods may be gone in a moment.
    """
    return before.history is not None and bool(_pods_in(status.history) - _pods_in(before.history))


def _pods_in(history: History | None) -> set[tuple[str, str]]:
    attempts = (history or History()).attempts
    dead = {(one.launcher, death.pod) for one in attempts for death in one.deaths}
    return dead | {(one.launcher, one.workers) for one in attempts if one.workers}


def edit_undone(owner: Owner, patch: Patch, found: Body, *, now: datetime) -> Create:
    """Return the event about repeated edits of an object; `found` is its state before the last one."""
    managers = field_managers(found, patch)
    who = f"field manager {', '.join(managers)}" if managers else "a client that names no field manager"
    other = ", ".join(managers) or "that client"
    message = (
        f"{patch.kind} {patch.name}: {who} changed {', '.join(_paths(patch))}, and {names.CONTROLLER} has changed "
        f"it back {REPORTED_EDITS} times. It goes on to do so, with delays that grow to 5 min. "
        f"Configure {other} to leave the objects of {owner.kind}s alone."
    )
    identity = digest(owner.uid, patch.kind, patch.name, now.isoformat())
    reason = reason_in(owner.kind, Reason.EDIT_UNDONE)
    return announcement(owner, identity, warning=True, reason=reason, message=message, now=now)


def field_managers(found: Body, patch: Patch) -> list[str]:
    """Return the other managers of what the patch changes; without any, the last writer."""
    others = [
        row
        for row in rows(table(found, "metadata"), "managedFields")
        if text(row, "manager") not in ("", names.CONTROLLER) and not text(row, "subresource")
    ]
    setters = [row for row in others if any(_sets(table(row, "fieldsV1"), path) for path in _paths(patch))]
    last = sorted(others, key=lambda row: text(row, "time"))[-1:]
    return sorted({text(row, "manager") for row in setters or last})


def _paths(patch: Patch) -> list[str]:
    """Return the changed paths, without our annotations unless they are all."""
    changed = [str(operation["path"]) for operation in patch.operations if operation["op"] != "test"]
    return [path for path in changed if not path.startswith("/metadata/annotations/mpirt.dev~1")] or changed


def _sets(fields: Body, path: str) -> bool:
    """Whether a set of managed fields includes the path, or a field below it."""
    for part in _parts(path):
        if part not in fields:
            return False
        fields = table(fields, part)
        if not fields:
            # It includes the whole field.
            return True
    return True


def _parts(path: str) -> Iterator[str]:
    for part in path.split("/")[1:]:
        yield "f:" + part.replace("~1", "/").replace("~0", "~")
