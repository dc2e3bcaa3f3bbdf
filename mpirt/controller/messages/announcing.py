"""
Which changes of a status get an event, and which are written at once.

Owns: the comparison of two statuses. An event is created before the status is written, under a name made from the
transition. If the controller dies in between, the next one creates it under the same name, and the API server
answers that it already exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.manifests.event import event
from mpirt.controller.model.actions import Action, Create, Manifest, WriteStatus
from mpirt.controller.model.attempts import History
from mpirt.controller.model.conditions import Condition, JobStatus, Reason, Type, reason_in
from mpirt.controller.model.reading import digest
from mpirt.controller.model.spec import JobKey, JobSpec, Owner
from mpirt.controller.observed.facts import Observed

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
_NOT_TOLD = frozenset({Type.WORKERS_READY, Type.LAUNCHER_CREATED})
# Reported even if the condition is false.
_TOLD_WHEN_FALSE = frozenset({
    Reason.RESUMED, Reason.RUN_AGAIN, Reason.EXISTS, Reason.REFUSED, Reason.INVALID, Reason.RUN_BY_ANOTHER,
})  # fmt: skip

StatusWriter = Callable[[JobStatus, JobKey], Manifest]
"""Converts a status into the format of the job object."""


def status_actions(
    write: StatusWriter, spec: JobSpec | None, observed: Observed, status: JobStatus, *, now: datetime
) -> tuple[list[Action], datetime | None]:
    """Return the events and the status write if they are due, otherwise when they will be (None: never)."""
    owner, before = observed.owner, observed.status
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
    made = []
    for old, new in _transitions(before, status):
        identity = digest(owner.uid, *_essence(new), old and [*_essence(old), old.changed.isoformat()])
        is_warning = new.type is Type.FAILED or new.reason in _WARNINGS
        reason = reason_in(owner.kind, new.reason)
        body = event(owner, identity, warning=is_warning, reason=reason, message=new.message, now=now)
        made.append(Create(body, f"{new.type} is {new.status}: {reason}: {new.message}", once=True))
    if spec is not None and _message(before) != _message(status):
        made += [_notice(owner, notice, now=now) for notice in spec.notices if notice not in _message(before)]
    return made


def is_due(before: JobStatus, status: JobStatus, *, now: datetime) -> datetime | None:
    """Return when the status is to be written, now or later; None if nothing has changed."""
    if _everything(before) == _everything(status) and before.history in (None, status.history):
        return None
    if before.written is None or _what_counts(before) != _what_counts(status) or _has_news_of_pods(before, status):
        return now
    return max(now, before.written + BETWEEN_WRITES)


def _transitions(before: JobStatus, status: JobStatus) -> Iterator[tuple[Condition | None, Condition]]:
    for kind, new in status.conditions.items():
        old = before.conditions.get(kind)
        has_changed = old is None or _essence(old) != _essence(new)
        if has_changed and _telling_reason(new) and kind not in _NOT_TOLD:
            yield old, new


def _telling_reason(condition: Condition) -> str:
    return condition.reason if condition.status or condition.reason in _TOLD_WHEN_FALSE else ""


def _cause(condition: Condition) -> str:
    return condition.message if condition.status and condition.type in _CAUSES else ""


def _notice(owner: Owner, notice: str, *, now: datetime) -> Create:
    body = event(
        owner,
        digest(owner.uid, notice),
        warning=True,
        reason=reason_in(owner.kind, Reason.NOT_HONOURED),
        message=notice,
        now=now,
    )
    return Create(body, notice, once=True)


def _message(status: JobStatus) -> str:
    created = status.conditions.get(Type.CREATED)
    return created.message if created is not None else ""


def _essence(condition: Condition) -> tuple[Type, bool, str]:
    return condition.type, condition.status, condition.reason


def _what_counts(status: JobStatus) -> object:
    """Return what must be written at once. The reasons of false conditions can wait, with few exceptions."""
    return (
        {kind: (one.status, _telling_reason(one), _cause(one)) for kind, one in status.conditions.items()},
        status.started,
        status.completed,
        _message(status),
        status.roster,
        _has_left(status),
    )


def _has_left(status: JobStatus) -> bool:
    """Whether a suspended job's pods are all gone: somebody may be waiting for their places."""
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
