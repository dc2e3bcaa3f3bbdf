"""
Plans for the objects of one kind: the interface, and the plan for one job object.

Owns: what the loop and the daemon need from a planner; the order of the steps for a job: is it ours, what is
observed, is the spec valid, what is to be done; and combining the decisions, in the order in which they are
carried out, with the status last. Each decision has a file of its own in this package. Jobs of all dialects share
one planner. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mpirt.controller.decisions.desired import as_nodes_are_seen, budget_removal, wanted_objects, with_gang
from mpirt.controller.decisions.drift import correction, label_ranks, replaced_workers
from mpirt.controller.decisions.dry_runs import (
    LOOK_AGAIN,
    dry_runs,
    obstacle_of,
    refusal,
    refused_field,
    rejection_of,
    with_accepted_runtime,
)
from mpirt.controller.decisions.invalid_specs import plan_of_impossible, plan_of_invalid
from mpirt.controller.decisions.launching import (
    launcher_actions,
    plan_of_missed,
    plan_of_rerun,
    refreshed_launchers,
)
from mpirt.controller.decisions.lost_nodes import forced_deletions, overlooking
from mpirt.controller.decisions.retries import judged
from mpirt.controller.decisions.rivals import is_of_another, plan_of_another
from mpirt.controller.decisions.run_policy import (
    awaited,
    is_suspended,
    launcher_cleanup,
    next_limit,
    no_longer_given_up,
    plan_at_limit,
    wants_workers,
)
from mpirt.controller.dialects.base import Dialect, Kind
from mpirt.controller.messages.events import status_actions
from mpirt.controller.messages.readiness import Obstacle, readiness
from mpirt.controller.messages.status import job_status
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete, Manifest, Plan, Rejection, earliest
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.reading import Body, table
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.observed.facts import Observed, is_forgotten
from mpirt.controller.observed.history import history
from mpirt.controller.observed.observe import Cached, Circumstances, observe
from mpirt.controller.observed.slim import written_digest
from mpirt.controller.scaling.reports import with_scaling
from mpirt.controller.scaling.room import with_room
from mpirt.controller.scaling.worker_plan import worker_plan
from mpirt.errors import SpecError


class Planner(Protocol):
    """Plans for the objects of one kind."""

    @property
    def kind(self) -> Kind:
        """The kind."""
        ...

    def decide(self, body: Body, cached: Cached, rejections: Iterable[Rejection], around: Circumstances) -> Plan:
        """
        Return the plan for the object in `body`. No I/O, no clock.

        Deterministic: the same input gives the same plan, and carrying a plan out twice does no harm.
        """
        ...


# Immutable fields: an error in one of them is final.
_FIXED = frozenset({"metadata.name"})

_FORGETFUL = (
    "the installed CRD drops status.scaling, in which the controller keeps what it has begun; "
    "install the one of this version: kubectl apply -k crds/"
)


@dataclass(frozen=True, slots=True)
class JobPlanner:
    """Plans for jobs of one dialect."""

    kind: Dialect

    def decide(self, body: Body, cached: Cached, rejections: Iterable[Rejection], around: Circumstances) -> Plan:
        """Return the plan for a job."""
        settings = around.settings
        is_left_to_others = settings.only_claimed and not self.kind.is_claimed(body)
        if "deletionTimestamp" in table(body, "metadata") or not self.kind.is_ours(body) or is_left_to_others:
            return Plan()
        observed = observe(
            body,
            cached,
            rejections,
            around,
            owner=self.kind.owner(body),
            status=self.kind.read_status(body),
            scalers=self.kind.scalers(cached),
        )
        try:
            spec = with_room(self.kind, self.kind.parse(body), settings)
        except SpecError as error:
            if error.field in _FIXED:
                return plan_of_impossible(self.kind, str(error), observed)
            return plan_of_invalid(self.kind, self.kind.run_policy(body), str(error), observed)
        if is_forgotten(spec, observed):
            return plan_of_invalid(self.kind, spec.run, _FORGETFUL, observed, reason=Reason.REFUSED)
        return _plan(self.kind, with_gang(spec, settings), observed, settings)


def _plan(dialect: Dialect, spec: JobSpec, observed: Observed, settings: Settings) -> Plan:
    """Return the plan for a job with a valid spec."""
    if is_of_another(observed):
        return plan_of_another(dialect, observed, suspended=spec.run.suspended)
    if observed.asks_for_rerun and not observed.is_reopened:
        return plan_of_rerun(observed)
    if (missed := plan_of_missed(observed)) is not None:
        return missed
    observed = judged(spec, spec.run, observed)
    spec = as_nodes_are_seen(spec, observed)
    if (over := plan_at_limit(dialect, spec.run, observed, spec=spec)) is not None:
        return over
    plan = _plan_of_run(dialect, spec, observed, settings)
    return replace(plan, again=earliest(plan.again, next_limit(spec.run, observed), observed.paused_until))


def _plan_of_run(dialect: Dialect, spec: JobSpec, observed: Observed, settings: Settings) -> Plan:
    report_at = awaited(spec, spec.run, observed)
    is_reported = report_at is None or report_at <= observed.now
    settings = with_accepted_runtime(spec, observed, settings)
    seen = overlooking(observed)
    happened = history(spec, seen)
    workers = readiness(spec, observed)
    wanted = wanted_objects(spec, observed, settings, workers, happened)
    gives_back = observed.written_end is not None or is_suspended(spec.run, observed)
    rejection = rejection_of(spec, observed, settings, wanted, gives_back=gives_back)
    if rejection is not None and (field := refused_field(spec, rejection)):
        reason, problem = Reason.INVALID if rejection.final else Reason.REFUSED, f"{field}: {refusal(rejection)}"
        return plan_of_invalid(dialect, spec.run, problem, observed, reason=reason)
    obstacle = obstacle_of(observed, rejection, wanted)
    look = None if obstacle is None else observed.now + LOOK_AGAIN
    wants, end = wants_workers(spec, observed), observed.end if is_reported else None
    members = worker_plan(spec, observed, settings, wants=wants, end=end)
    if members.first:
        return Plan(members.first)
    changes = _changes(spec, observed, settings, wanted) if obstacle is None else []
    launcher = [*launcher_actions(spec, observed, settings, workers), *launcher_cleanup(spec.run, observed)]
    released = [*_removals(observed, wanted), *launcher, *members.pods]
    if gives_back:
        # First: neither an obstacle nor a change that is refused keeps the job from releasing what it holds.
        changes = [*released, *changes]
    else:
        changes += released if obstacle is None else budget_removal(observed)
    if obstacle is None:
        changes += _touches(spec, observed)
    forced, force_again = forced_deletions(observed)
    if not is_reported:
        return Plan((*changes, *forced), earliest(report_at, force_again, look))
    if obstacle is None and members.blocked is not None:
        # Workers that can't be created are an obstacle that stops nothing else.
        obstacle = Obstacle(members.blocked, str(workers))
    status = job_status(spec, seen, happened, workers, obstacle)
    status = with_scaling(status, members.roster, members.outcome, observed, workers)
    said, write_again = status_actions(dialect.write_status, spec, observed, status)
    again = earliest(force_again, write_again, look, members.again)
    return Plan((*changes, *forced, *members.scalers, *said), again, members.questions)


def _changes(spec: JobSpec, observed: Observed, settings: Settings, wanted: Sequence[Manifest]) -> list[Action]:
    """Return what brings the job's objects to their desired state, but for what is no longer needed."""
    changes = [*dry_runs(spec, observed, settings), *_object_actions(spec, observed, wanted)]
    return [*changes, *replaced_workers(spec, observed, changes)]


def _touches(spec: JobSpec, observed: Observed) -> list[Action]:
    """Return the small changes of pods, and of the job itself."""
    return [
        *label_ranks(spec, observed),
        *refreshed_launchers(spec, observed),
        *no_longer_given_up(spec, observed),
    ]


def _object_actions(spec: JobSpec, observed: Observed, wanted: Sequence[Manifest]) -> list[Action]:
    actions: list[Action] = []
    for manifest in wanted:
        live = observed.mine.get(str(manifest["kind"]))
        # A suspended job has no use for an object, and thousands may wait in a queue.
        if live is None and not spec.run.suspended:
            actions.append(Create(manifest, "object missing; creating", written_digest(manifest)))
        elif live is not None and not live.deleting and (changed := correction(manifest, live)) is not None:
            actions.append(changed)
    return actions


def _removals(observed: Observed, wanted: Sequence[Manifest]) -> list[Action]:
    """Return the deletions of objects no longer needed: an account, the workers of a suspended or finished job."""
    kept = {str(manifest["kind"]) for manifest in wanted} | {kinds.JOB}
    return [
        Delete(kind, live.name, live.uid, "no longer needed")
        for kind, live in observed.mine.items()
        if kind not in kept and not live.deleting
    ]
