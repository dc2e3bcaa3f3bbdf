"""
Plans for special cases.

Owns: the plans for a job whose spec is invalid or rejected, that a rival has begun or runs, that is to run again,
or whose deadline passes before it has a launcher Job.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpirt.controller.decisions.lost_nodes import forced_deletions, overlooking
from mpirt.controller.decisions.takeover import left_alone, removals, taking_over, told_from
from mpirt.controller.dialects.base import Dialect
from mpirt.controller.messages.announcing import status_actions
from mpirt.controller.messages.readiness import readiness
from mpirt.controller.messages.status import failed_status, invalid_status
from mpirt.controller.model.actions import Delete, Plan, earliest
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import RUN, is_finished
from mpirt.controller.observed.history import history
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.rivals import is_run_by_another
from mpirt.controller.scaling.bare_workers import all_deletions

# Objects of others are not watched, and no event tells when the reason of a rejection is gone.
LOOK_AGAIN = timedelta(seconds=30)


def plan_of_invalid(
    dialect: Dialect, problem: str, observed: Observed, *, now: datetime, reason: Reason = Reason.INVALID
) -> Plan:
    """Return the plan for a job whose spec is invalid or rejected: report that, and leave alone what runs."""
    if is_run_by_another(observed):
        return Plan()
    forced, force_again = forced_deletions(observed, now=now)
    seen = overlooking(observed, now=now)
    status = invalid_status(reason, problem, seen, history(None, seen, now=now), now=now)
    said, write_again = status_actions(dialect.write_status, None, observed, status, now=now)
    look = now + LOOK_AGAIN if observed.rejections else None
    return Plan((*forced, *said), earliest(force_again, write_again, look))


def plan_of_impossible(dialect: Dialect, problem: str, observed: Observed, *, now: datetime) -> Plan:
    """Return the plan for a job with an error that no edit can correct: it has failed."""
    if is_finished(observed.status):
        return Plan()
    status = failed_status(Reason.INVALID_NAME, problem, observed, history(None, observed, now=now), now=now)
    return Plan(tuple(status_actions(dialect.write_status, None, observed, status, now=now)[0]))


def plan_of_rerun(observed: Observed, *, now: datetime) -> Plan:
    """Return the plan that prepares a rerun: delete the finished run with its pods, also those on lost nodes."""
    why = "a rerun was requested"
    before = [live for kind in RUN if (live := observed.live(kind)) is not None]
    removed = (Delete(one.kind, one.name, one.uid, why, foreground=True) for one in before)
    workers = all_deletions(observed) if observed.status.roster is not None else []
    healed, heal_again = forced_deletions(observed, now=now)
    return Plan((*removed, *workers, *healed), heal_again)


def plan_of_overdue(dialect: Dialect, spec: JobSpec, observed: Observed, *, now: datetime) -> Plan:
    """Return the plan that fails a job past its deadline. Without a launcher Job, nothing else enforces it."""
    counted = f"the job was active longer than activeDeadlineSeconds={spec.run.deadline}"
    problem = f"{counted}; {readiness(spec, observed)}"
    status = failed_status(Reason.DEADLINE, problem, observed, history(spec, observed, now=now), now=now)
    return Plan(tuple(status_actions(dialect.write_status, spec, observed, status, now=now)[0]))


def plan_of_anothers(dialect: Dialect, spec: JobSpec, observed: Observed, *, now: datetime) -> Plan:
    """Return the plan for a job that is left to another controller: report that if the job does not start."""
    told = told_from(observed)
    if told is None or spec.run.suspended:
        return Plan()
    if now < told:
        return Plan(again=told)
    said, again = status_actions(
        dialect.write_status, None, observed, left_alone(observed, dialect.claim, now=now), now=now
    )
    return Plan(tuple(said), again)


def plan_of_takeover(dialect: Dialect, observed: Observed, *, now: datetime) -> Plan:
    """Return the plan that takes a job over from a rival: first delete the rival's launcher Job and pods."""
    said, again = status_actions(dialect.write_status, None, observed, taking_over(observed, now=now), now=now)
    return Plan((*removals(observed), *said), earliest(again, now + LOOK_AGAIN))
