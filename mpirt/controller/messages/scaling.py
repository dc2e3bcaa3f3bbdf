"""
What a job with bare workers reports about them, beside what all jobs report.

Owns: the conditions WorkersCreated, WorkersReady, LauncherCreated, Scaling, ScaleSucceeded and ScaleFailed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from mpirt.controller.manifests.event import event
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.messages.status import Said, conditions
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create
from mpirt.controller.model.conditions import JobStatus, Reason, Type, scale_reason
from mpirt.controller.model.reading import digest
from mpirt.controller.model.roster import Change, Outcome, Roster
from mpirt.controller.model.spec import Owner
from mpirt.controller.observed.facts import Observed

_MILESTONES = (Type.WORKERS_CREATED, Type.WORKERS_READY, Type.LAUNCHER_CREATED)
_EDITED = "the number of replicas was changed"


def with_scaling(
    status: JobStatus,
    roster: Roster | None,
    outcome: Outcome | None,
    observed: Observed,
    workers: Readiness,
    *,
    now: datetime,
) -> JobStatus:
    """Return the status with the roster and with what it means; unchanged if there is no roster."""
    if roster is None:
        return status
    before = observed.status.conditions
    said = {kind: (one.status, one.reason, one.message) for kind, one in before.items() if kind in _MILESTONES}
    said |= _reached(roster, observed, workers)
    said |= _under_way(observed.status, roster.change) | _ended(observed.status, outcome)
    running = tuple(pod.name for pod in observed.workers if pod.phase == "Running" and pod.deleted is None)
    made = conditions(observed.status, said, now=now)
    return replace(status, conditions={**status.conditions, **made}, roster=roster, running=running)


def _reached(roster: Roster, observed: Observed, workers: Readiness) -> dict[Type, Said]:
    """Return the milestones on a job's way to its launcher, as far as it has come."""
    said: dict[Type, Said] = {}
    is_new = Type.LAUNCHER_CREATED not in observed.status.conditions
    if is_new and roster.names and not roster.pending:
        said[Type.WORKERS_CREATED] = True, Reason.WORKERS_CREATED, f"{len(roster.names)} workers are created."
    if is_new and workers.wanted and workers.ready >= workers.wanted:
        said[Type.WORKERS_READY] = True, Reason.WORKERS_READY, "All workers are Ready."
    if is_new and observed.live(kinds.JOB) is not None:
        said[Type.LAUNCHER_CREATED] = True, Reason.LAUNCHER_CREATED, "The launcher is created."
    return said


def _under_way(before: JobStatus, change: Change | None) -> dict[Type, Said]:
    if change is not None:
        return {Type.SCALING: (True, Reason.SCALING, change_text(change))}
    known = before.conditions.get(Type.SCALING)
    return {} if known is None else {Type.SCALING: (False, known.reason, known.message)}


def change_text(change: Change) -> str:
    """Return a sentence about a change."""
    verb = "join" if change.joining else "leave"
    return f"{_cause(change)}: {', '.join(change.workers)} will {verb}"


def _cause(change: Change) -> str:
    return f"{change.source} {change.name}" if change.name else _EDITED


def drain_events(owner: Owner, before: Roster, after: Roster, *, now: datetime) -> list[Create]:
    """Return the events about workers that begin to leave their nodes."""
    known = {one.name for one in before.drains}
    made = []
    for drain in after.drains:
        if drain.name not in known:
            message = f"{drain.name} leaves: {drain.why}; another worker takes its place"
            identity = digest(owner.uid, drain.name, drain.source)
            body = event(owner, identity, warning=False, reason=drain.source, message=message, now=now)
            made.append(Create(body, message, once=True))
    return made


def _ended(before: JobStatus, outcome: Outcome | None) -> dict[Type, Said]:
    """Return the conditions about the last change that ended, and those about earlier ones as they were."""
    ends = (Type.SCALE_SUCCEEDED, Type.SCALE_FAILED)
    said: dict[Type, Said] = {
        kind: (one.status, one.reason, one.message) for kind, one in before.conditions.items() if kind in ends
    }
    if outcome is None:
        return said
    kind = Type.SCALE_SUCCEEDED if outcome.succeeded else Type.SCALE_FAILED
    reason = scale_reason(grows=bool(outcome.change.joining), succeeded=outcome.succeeded)
    return said | {kind: (True, reason, f"{_cause(outcome.change)}: {outcome.message}")}
