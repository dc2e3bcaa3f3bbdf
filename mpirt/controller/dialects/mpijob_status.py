"""
The status of a kubeflow.org MPIJob.

Owns: its form, which is mpi-operator's plus the job's history. If a CRD drops the history, a status is read back
without it. The last condition in the list describes the current state; dashboards and columns show that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from mpirt import names
from mpirt.controller.model.conditions import Condition, Counts, JobStatus, Type
from mpirt.controller.model.objectnames import pod_labels, selector
from mpirt.controller.model.reading import Body, moment, number, rows, table, text, write_time
from mpirt.controller.model.records import read_history, write_history
from mpirt.controller.model.spec import JobKey

_NEVER = datetime.fromtimestamp(0, UTC)
_KNOWN = frozenset(Type)


def read_status(body: Body) -> JobStatus:
    """Return the status that an object holds. A field or condition that can't be read counts as missing."""
    conditions = [_condition(row) for row in rows(body, "conditions") if text(row, "type") in _KNOWN]
    return JobStatus(
        conditions={condition.type: condition for condition in conditions},
        launcher=_counts(table(body, "replicaStatuses", "Launcher")),
        workers=_counts(table(body, "replicaStatuses", "Worker")),
        started=moment(body, "startTime"),
        completed=moment(body, "completionTime"),
        written=moment(body, "lastReconcileTime"),
        history=read_history(body),
    )


def write_status(status: JobStatus, key: JobKey) -> dict[str, object]:
    """Return the status in the form of an MPIJob."""
    times = {
        "startTime": status.started,
        "completionTime": status.completed,
        "lastReconcileTime": status.written,
    }
    return {
        "conditions": [_row(condition) for condition in sorted(status.conditions.values(), key=_order)],
        "replicaStatuses": {
            "Launcher": _replica(status.launcher, key, names.LAUNCHER),
            "Worker": _replica(status.workers, key, names.WORKER),
        },
        **{name: write_time(when) for name, when in times.items() if when is not None},
        **({} if status.history is None else write_history(status.history)),
    }


def _order(condition: Condition) -> tuple[bool, int]:
    return condition.status, list(Type).index(condition.type)


def _condition(row: Body) -> Condition:
    changed = moment(row, "lastTransitionTime") or _NEVER
    return Condition(
        type=Type(text(row, "type")),
        status=text(row, "status") == "True",
        reason=text(row, "reason"),
        message=text(row, "message"),
        changed=changed,
        updated=moment(row, "lastUpdateTime") or changed,
    )


def _row(condition: Condition) -> Mapping[str, str]:
    return {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": write_time(condition.changed),
        "lastUpdateTime": write_time(condition.updated),
    }


def _counts(row: Body) -> Counts:
    return Counts(number(row, "active"), number(row, "succeeded"), number(row, "failed"))


def _replica(counts: Counts, key: JobKey, role: str) -> Mapping[str, object]:
    """Return the counts of a role, with the selector that `kubectl scale` and autoscalers need."""
    return {
        "active": counts.active,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "selector": selector(pod_labels(key.name, role)),
    }
