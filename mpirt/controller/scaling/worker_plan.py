"""
The part of a plan that concerns the set of workers, and the next state of a roster.

Owns: the order in which a job's workers change. Only one change is under way at a time: an edit of the number of
replicas comes first, then the oldest ScaleIn or ScaleOut, then a new template. Workers that died are replaced, and
workers on nodes that are about to go are drained, at any time. The roster is written to the status first; actions
on pods follow what is written there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from mpirt.controller.messages.readiness import blocked
from mpirt.controller.model.actions import Action, Question, earliest
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.objectnames import worker_number
from mpirt.controller.model.roster import Change, Outcome, Roster, Source
from mpirt.controller.model.spec import BarePods, JobSpec, Settings
from mpirt.controller.observed.facts import JobEnd, Observed, is_dead
from mpirt.controller.scaling.changes import (
    Step,
    continued,
    limit_of,
    questions,
    scaler_change,
    undone,
    wanted_replicas,
)
from mpirt.controller.scaling.replacements import with_drains, with_new_template, with_replacements
from mpirt.controller.scaling.reports import drain_events, scaler_actions
from mpirt.controller.scaling.worker_actions import (
    all_deletions,
    kept_workers,
    leaving_questions,
    limit,
    marks,
    replicas_patch,
    worker_actions,
)


def next_step(spec: JobSpec, bare: BarePods, observed: Observed, *, runs: bool) -> Step:
    """Return the next state of the job's roster. `runs`: whether the job should have workers observed.now."""
    roster = bare.roster
    if roster is None:
        return Step(_first(spec, bare, observed))
    roster = roster.seen(frozenset(observed.workers_by_name))
    if not runs:
        quiet = replace(undone(roster), drains=(), replaced=0, replaced_at=None)
        change, why = roster.change, "the job does not run any more"
        return Step(quiet, outcome=None if change is None else Outcome(change, succeeded=False, message=why))
    roster, replace_again = with_replacements(spec, bare, roster, observed)
    roster, drain_again = with_drains(spec, roster, observed)
    outcome = None
    if roster.change is None:
        roster = _begun(spec, bare, roster, observed)
    else:
        roster, outcome = continued(spec, bare, roster, roster.change, observed)
    return Step(roster, earliest(replace_again, drain_again, _limit(roster.change, observed.now)), outcome)


def _limit(change: Change | None, now: datetime) -> datetime | None:
    if change is None or change.committed or (limit := limit_of(change)) <= now:
        return None
    return limit


def _first(spec: JobSpec, bare: BarePods, observed: Observed) -> Roster:
    """Return the first roster; of a job whose status was lost, the one with the workers that are left of it."""
    pods = observed.workers_by_name
    there = sorted((name for name, pod in pods.items() if not is_dead(pod)), key=worker_number)[: bare.replicas]
    roster = Roster(tuple(there), max(map(worker_number, pods), default=-1), bare.replicas)
    fresh = roster.fresh(spec.key.name, bare.replicas - len(there))
    return replace(roster.hired(fresh), names=(*there, *fresh))


def _begun(spec: JobSpec, bare: BarePods, roster: Roster, observed: Observed) -> Roster:
    """Return the roster with the next change begun, if there is one."""
    if bare.replicas > len(roster.names):
        fresh = roster.fresh(spec.key.name, bare.replicas - len(roster.names))
        return replace(roster.hired(fresh), names=(*roster.names, *fresh), replicas=bare.replicas)
    if bare.replicas < len(roster.names):
        leaving = roster.names[bare.replicas :]
        return replace(
            roster, replicas=bare.replicas, change=Change(Source.REPLICAS, observed.now, leaving=leaving)
        )
    if bare.replicas != roster.replicas:
        roster = replace(roster, replicas=bare.replicas)
    if observed.running_launcher is None:
        return roster
    change = scaler_change(spec, roster, observed)
    if change is not None:
        return replace(roster.hired(change.joining), change=change)
    return with_new_template(spec, roster, observed)


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What is done about a job's workers."""

    roster: Roster | None = None
    """The next one; None if a StatefulSet has the workers."""
    outcome: Outcome | None = None
    """How the change that was under way has ended, if it has."""
    again: datetime | None = None
    first: tuple[Action, ...] = ()
    """Actions to carry out alone, before a new plan is made."""
    pods: tuple[Action, ...] = ()
    scalers: tuple[Action, ...] = ()
    questions: tuple[Question, ...] = ()
    blocked: Reason | None = None
    """Why some workers can't be created; None if all can."""


def worker_plan(
    spec: JobSpec,
    observed: Observed,
    settings: Settings,
    *,
    wants: bool,
    end: JobEnd | None,
) -> WorkerPlan:
    """Return the plan for the workers. `wants`: whether the job keeps any; `end`: how it ended, if it has."""
    bare = spec.workers.bare
    if bare is None:
        return _of_stateful_set(spec, observed, is_over=end is not None and observed.is_over)
    runs = wants and end is None and not spec.run.suspended
    step = next_step(spec, bare, observed, runs=runs)
    plan = WorkerPlan(step.roster, step.outcome, step.again)
    if bare.roster is None:
        return plan
    reports = scaler_actions(spec, bare.roster, observed, step, is_over=end is not None)
    plan = replace(plan, scalers=(*reports, *drain_events(spec.owner, bare.roster, step.roster, observed.now)))
    if not wants:
        return replace(plan, pods=tuple(all_deletions(observed)))
    if not runs:
        return plan
    wanted = wanted_replicas(bare, bare.roster, observed)
    return replace(
        plan,
        first=() if wanted is None else (replicas_patch(spec, bare, observed, wanted),),
        pods=tuple(worker_actions(spec, bare.roster, observed, settings)),
        questions=questions(spec, bare.roster, observed),
        blocked=next((one.reason for one in blocked(spec, bare.roster, observed).values()), None),
    )


def _of_stateful_set(spec: JobSpec, observed: Observed, *, is_over: bool) -> WorkerPlan:
    return WorkerPlan(
        again=limit(spec, observed),
        pods=(*kept_workers(spec, observed, is_over=is_over), *marks(spec, observed)),
        questions=leaving_questions(spec, observed),
    )
