"""
Plans for jobs that are not just run.

Owns: what is done for a job whose spec can't be acted on, that another controller runs, that is to run again, or
whose time is over before there is a launcher.
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

# Objects of others are not watched, and a rejection may end without a sign.
LOOK_AGAIN = timedelta(seconds=30)


def plan_of_invalid(
    dialect: Dialect, problem: str, observed: Observed, *, now: datetime, reason: Reason = Reason.INVALID
) -> Plan:
    """The plan for a job whose spec can't be acted on: it is said, and what runs is left alone."""
    if is_run_by_another(observed):
        return Plan()
    forced, force_again = forced_deletions(observed, now=now)
    seen = overlooking(observed, now=now)
    status = invalid_status(reason, problem, seen, history(None, seen, now=now), now=now)
    said, write_again = status_actions(dialect.write_status, None, observed, status, now=now)
    look = now + LOOK_AGAIN if observed.rejections else None
    return Plan((*forced, *said), earliest(force_again, write_again, look))


def plan_of_impossible(dialect: Dialect, problem: str, observed: Observed, *, now: datetime) -> Plan:
    """The plan for a job that no edit can make right: it has failed."""
    if is_finished(observed.status):
        return Plan()
    status = failed_status(Reason.INVALID_NAME, problem, observed, history(None, observed, now=now), now=now)
    return Plan(tuple(status_actions(dialect.write_status, None, observed, status, now=now)[0]))


def plan_of_rerun(observed: Observed, *, now: datetime) -> Plan:
    """The run that is over goes first, with its pods: also those whose node can't confirm it."""
    why = "a rerun was requested"
    before = [live for kind in RUN if (live := observed.live(kind)) is not None]
    removed = (Delete(one.kind, one.name, one.uid, why, foreground=True) for one in before)
    healed, heal_again = forced_deletions(observed, now=now)
    return Plan((*removed, *healed), heal_again)


def plan_of_overdue(dialect: Dialect, spec: JobSpec, observed: Observed, *, now: datetime) -> Plan:
    """Without a launcher Job nobody else counts the time."""
    counted = f"the job was active longer than activeDeadlineSeconds={spec.run.deadline}"
    problem = f"{counted}; {readiness(spec, observed)}"
    status = failed_status(Reason.DEADLINE, problem, observed, history(spec, observed, now=now), now=now)
    return Plan(tuple(status_actions(dialect.write_status, spec, observed, status, now=now)[0]))


def plan_of_anothers(dialect: Dialect, spec: JobSpec, observed: Observed, *, now: datetime) -> Plan:
    """The plan for a job that is left to another controller: it says so if it stands still without a reason."""
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
    """The plan for a job of another controller's that is to be ours: its launcher Job and pods go first."""
    said, again = status_actions(dialect.write_status, None, observed, taking_over(observed, now=now), now=now)
    return Plan((*removals(observed), *said), earliest(again, now + LOOK_AGAIN))
