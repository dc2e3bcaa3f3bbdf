"""
The status of a kai.alibabacloud.com TrainingJob.

Owns: its form, which is et-operator's plus the job's history and the rest of the roster; and the phase, by which
other programs judge the job.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from mpirt.controller.dialects.status_fields import read_common, write_common
from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Condition, JobStatus, Type
from mpirt.controller.model.reading import Body
from mpirt.controller.model.roster import Roster, read_roster, write_roster
from mpirt.controller.model.spec import JobKey

# The conditions that are phases whatever else holds, the most final one first.
_PHASES = (Type.FAILED, Type.SUCCEEDED, Type.SUSPENDED)
_RUNNING = "currentWorkers"


def read_status(body: Body) -> JobStatus:
    """Return the status that an object holds."""
    running = body.get(_RUNNING)
    return replace(
        read_common(body, kinds.TRAINING_JOB),
        roster=read_roster(body),
        running=tuple(running) if isinstance(running, list) else (),
    )


def write_status(status: JobStatus, key: JobKey) -> dict[str, object]:
    """Return the status in the form of a TrainingJob."""
    return {
        "phase": phase_of(status),
        **write_common(status, key, sorted(status.conditions.values(), key=_order)),
        "restartCount": status.launcher.failed,
        _RUNNING: list(status.running),
        "currentScaler": _scaler(status.roster, key),
        **({} if status.roster is None else write_roster(status.roster)),
    }


def phase_of(status: JobStatus) -> str:
    """Return the phase: Created, Running, Scaling, Succeeded, Failed or Suspended; empty for a new job."""
    for kind in _PHASES:
        if status.is_true(kind):
            return kind
    if status.is_true(Type.RUNNING):
        is_scaling = status.roster is not None and status.roster.change is not None
        return Type.SCALING if is_scaling else Type.RUNNING
    return Type.CREATED if status.is_true(Type.CREATED) else ""


def _scaler(roster: Roster | None, key: JobKey) -> str:
    change = roster.change if roster is not None else None
    return f"{change.source}:{key.namespace}/{change.name}" if change is not None and change.name else ""


def _order(condition: Condition) -> tuple[bool, datetime, int]:
    """The order of the list: what holds comes last, and of that the newest."""
    return condition.status, condition.changed, list(Type).index(condition.type)
