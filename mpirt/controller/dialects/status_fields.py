"""
What the statuses of all kinds of jobs have in common: conditions, counts and times.

Owns: their form, and reading them back. A field or condition that can't be read counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from mpirt import names
from mpirt.controller.model import kinds
from mpirt.controller.model.attempts import read_history, write_history
from mpirt.controller.model.conditions import Condition, Counts, JobStatus, Type, reason_from, reason_in
from mpirt.controller.model.objectnames import pod_labels, selector
from mpirt.controller.model.reading import Body, moment, number, rows, table, text, write_time
from mpirt.controller.model.spec import JobKey

_NEVER = datetime.fromtimestamp(0, UTC)
_KNOWN = frozenset(Type)


def read_common(body: Body, kind: str) -> JobStatus:
    """Return what a status of that kind of job holds of the common fields."""
    return JobStatus(
        conditions=read_conditions(body, kind),
        launcher=_counts(table(body, "replicaStatuses", "Launcher")),
        workers=_counts(table(body, "replicaStatuses", "Worker")),
        started=moment(body, "startTime"),
        completed=moment(body, "completionTime"),
        written=moment(body, "lastReconcileTime"),
        history=read_history(body),
    )


def read_conditions(body: Body, kind: str = kinds.MPI_JOB) -> dict[Type, Condition]:
    """Return the conditions in a status, with the reasons of that kind of job; unchanged by default."""
    found = [_condition(row, kind) for row in rows(body, "conditions") if text(row, "type") in _KNOWN]
    return {condition.type: condition for condition in found}


def write_common(status: JobStatus, key: JobKey, ordered: Iterable[Condition]) -> dict[str, object]:
    """Return the common fields, with the conditions in the given order."""
    times = {
        "startTime": status.started,
        "completionTime": status.completed,
        "lastReconcileTime": status.written,
    }
    return {
        "conditions": [condition_row(condition, key.kind) for condition in ordered],
        "replicaStatuses": {
            "Launcher": _replica(status.launcher, key, names.LAUNCHER),
            "Worker": _replica(status.workers, key, names.WORKER),
        },
        **{name: write_time(when) for name, when in times.items() if when is not None},
        **({} if status.history is None else write_history(status.history)),
    }


def condition_row(condition: Condition, kind: str = kinds.MPI_JOB) -> Mapping[str, str]:
    """Return a condition as the status of that kind of job has it; its reason is unchanged by default."""
    return {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": reason_in(kind, condition.reason),
        "message": condition.message,
        "lastTransitionTime": write_time(condition.changed),
        "lastUpdateTime": write_time(condition.updated),
    }


def _condition(row: Body, kind: str) -> Condition:
    changed = moment(row, "lastTransitionTime") or _NEVER
    return Condition(
        type=Type(text(row, "type")),
        status=text(row, "status") == "True",
        reason=reason_from(kind, text(row, "reason")),
        message=text(row, "message"),
        changed=changed,
        updated=moment(row, "lastUpdateTime") or changed,
    )


def _counts(row: Body) -> Counts:
    return Counts(number(row, "active"), number(row, "succeeded"), number(row, "failed"))


def _replica(counts: Counts, key: JobKey, role: str) -> Mapping[str, object]:
    """Return the counts of a role, with the selector that `kubectl scale` and autoscalers need."""
    return {
        "active": counts.active,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "selector": selector(pod_labels(key.kind, key.name, role)),
    }
