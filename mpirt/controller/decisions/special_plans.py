"""
Plans for special cases.

Owns: the plans for a job that a rival has begun or runs, that is to run again, whose name is invalid, or one of
whose limits is reached: its TTL, or a deadline or patience before it has a launcher Job.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpirt.controller.decisions.lost_nodes import forced_deletions
from mpirt.controller.decisions.run_policy import due, expiry, patience_ends
from mpirt.controller.dialects.base import Dialect
from mpirt.controller.messages.events import status_actions
from mpirt.controller.messages.readiness import readiness
from mpirt.controller.messages.status import failed_status
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import (
    Action,
    Delete,
    Find,
    Operation,
    Patch,
    Plan,
    earliest,
    is_object,
    pointer,
)
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.objectnames import GAVE_UP, GAVE_UP_ANNOTATION, PATIENCE_ANNOTATION, object_name
from mpirt.controller.model.spec import JobSpec, RunPolicy
from mpirt.controller.observed.facts import RUN, is_finished, is_missed, job_end
from mpirt.controller.observed.history import history
from mpirt.controller.observed.observe import Observed
from mpirt.controller.scaling.worker_actions import all_deletions

# Objects of others are not watched, and no event tells when the reason of a rejection is gone.
LOOK_AGAIN = timedelta(seconds=30)


def plan_of_impossible(dialect: Dialect, problem: str, observed: Observed, *, now: datetime) -> Plan:
    """Return the plan for a job with an error that no edit can correct: it has failed."""
    if is_finished(observed.status):
        return Plan()
    status = failed_status(Reason.INVALID_NAME, problem, observed, history(None, observed, now=now), now=now)
    return Plan(tuple(status_actions(dialect.write_status, None, observed, status, now=now)[0]))


def plan_of_missed(observed: Observed) -> Plan | None:
    """Return the plan that looks for a launcher Job which should be there, and isn't; None if none is missed."""
    if observed.gone_job is not None or not is_missed(observed) or is_finished(observed.status):
        return None
    name = object_name(kinds.JOB, observed.owner.key.name)
    return Plan((Find(kinds.JOB, name, "the launcher Job has vanished"),))


def plan_of_rerun(observed: Observed, *, now: datetime) -> Plan:
    """Return the plan that prepares a rerun: delete the finished run with its pods, also those on lost nodes."""
    why = "a rerun was requested"
    before = [live for kind in RUN if (live := observed.live(kind)) is not None]
    removed = (Delete(one.kind, one.name, one.uid, why, foreground=True) for one in before)
    workers = all_deletions(observed) if observed.status.roster is not None else []
    healed, heal_again = forced_deletions(observed, now=now)
    return Plan((*removed, *workers, *healed), heal_again)


def plan_at_limit(
    dialect: Dialect,
    run: RunPolicy,
    observed: Observed,
    *,
    spec: JobSpec | None = None,
    problem: str = "",
    now: datetime,
) -> Plan | None:
    """
    Return the plan for a job one of whose limits is reached: it is deleted, or it fails; None if it may go on.

    A deadline and a patience end it here only without a launcher Job: Kubernetes enforces the deadline of that. A
    lost patience is said first where Arena looks for it. `problem`: what is invalid in the job, if it has no spec.
    """
    expires = expiry(run, job_end(observed))
    # The end is reported before the job is deleted, however short its TTL is.
    if expires is not None and expires <= now and is_finished(observed.status):
        owner, why = observed.owner, f"ttlSecondsAfterFinished={run.ttl} has expired"
        return Plan((Delete(owner.kind, owner.key.name, owner.uid, why),))
    if kinds.JOB in observed.mine or job_end(observed) is not None:
        return None
    deadline, patience = due(run, observed), patience_ends(run, observed)
    if deadline is not None and deadline <= now:
        reason, said = Reason.DEADLINE, f"the job was active longer than activeDeadlineSeconds={run.deadline}"
    elif patience is not None and patience <= now:
        reason = Reason.NO_PATIENCE
        said = f"the job waited longer than {PATIENCE_ANNOTATION}={run.patience} for its workers"
        if not run.gave_up:
            return Plan((_gave_up(observed, {"op": "add", "value": GAVE_UP}, why=said),))
    else:
        return None
    said = f"{said}; {problem if spec is None else readiness(spec, observed)}"
    status = failed_status(reason, said, observed, history(spec, observed, now=now), now=now)
    return Plan(tuple(status_actions(dialect.write_status, spec, observed, status, now=now)[0]))


def next_limit(run: RunPolicy, observed: Observed, *, now: datetime) -> datetime | None:
    """Return when the next of the job's limits is reached; a deadline that is over has had its effect."""
    deadline = due(run, observed)
    is_overdue = deadline is not None and deadline <= now
    expires = expiry(run, job_end(observed))
    return earliest(expires, patience_ends(run, observed), None if is_overdue else deadline)


def no_longer_given_up(spec: JobSpec, observed: Observed) -> list[Action]:
    """Return the change of a job that runs again after it had lost its patience."""
    if not spec.run.gave_up or is_finished(observed.status):
        return []
    return [_gave_up(observed, {"op": "remove"}, why="the job runs again")]


def _gave_up(observed: Observed, change: Operation, *, why: str) -> Patch:
    path = pointer("metadata", "annotations", GAVE_UP_ANNOTATION)
    owner = observed.owner
    return Patch(owner.kind, owner.key.name, (is_object(owner.uid), {**change, "path": path}), why)
