"""
The part of a plan that concerns the set of workers.

Owns: putting together what is done about single workers. With a StatefulSet: how they leave it. Without one, what
the roster asks for: actions on pods by the roster in the status, the next roster, and what ScaleIns and ScaleOuts
report.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from mpirt.controller.messages.readiness import blocked
from mpirt.controller.messages.scaling import drain_events
from mpirt.controller.model.actions import Action, Question
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.roster import Outcome, Roster
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.observed.facts import JobEnd, Observed
from mpirt.controller.scaling.bare_workers import all_deletions, replicas_patch, worker_actions
from mpirt.controller.scaling.departures import questions, wanted_replicas
from mpirt.controller.scaling.reports import scaler_actions
from mpirt.controller.scaling.roster_steps import next_step
from mpirt.controller.scaling.stateful_sets import kept_workers, leaving_questions, limit, marks


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
    now: datetime,
) -> WorkerPlan:
    """Return the plan for the workers. `wants`: whether the job keeps any; `end`: how it ended, if it has."""
    bare = spec.workers.bare
    if bare is None:
        return _of_stateful_set(spec, observed, is_over=end is not None and observed.is_over, now=now)
    runs = wants and end is None and not spec.run.suspended
    step = next_step(spec, bare, observed, runs=runs, now=now)
    plan = WorkerPlan(step.roster, step.outcome, step.again)
    if bare.roster is None:
        return plan
    told = scaler_actions(spec, bare.roster, observed, step, is_over=end is not None, now=now)
    plan = replace(plan, scalers=(*told, *drain_events(spec.owner, bare.roster, step.roster, now=now)))
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


def _of_stateful_set(spec: JobSpec, observed: Observed, *, is_over: bool, now: datetime) -> WorkerPlan:
    return WorkerPlan(
        again=limit(spec, observed),
        pods=(*kept_workers(spec, observed, is_over=is_over), *marks(spec, observed, now=now)),
        questions=leaving_questions(spec, observed),
    )
