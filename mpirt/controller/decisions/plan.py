"""
The plan for a job, made from its desired and its observed state.

Owns: combining the decisions, in the order in which they are carried out, with the status last. Each decision has
a file of its own in this package. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from mpirt.controller.decisions.budgets import as_nodes_are_seen, budget_removal, wanted_budget
from mpirt.controller.decisions.cleanup import is_suspended, launcher_cleanup, wants_workers, written_end
from mpirt.controller.decisions.deadlines import awaited, due, shortened_run
from mpirt.controller.decisions.disbelief import judged, with_retries_left
from mpirt.controller.decisions.drift import correction
from mpirt.controller.decisions.dry_runs import dry_run_digests, dry_runs, refused_field
from mpirt.controller.decisions.gangs import wanted_group
from mpirt.controller.decisions.invalid_specs import plan_of_invalid
from mpirt.controller.decisions.launching import launcher_actions
from mpirt.controller.decisions.lost_nodes import forced_deletions, overlooking
from mpirt.controller.decisions.refreshing import refreshed_launchers
from mpirt.controller.decisions.rights import has_rights, may_enter
from mpirt.controller.decisions.special_plans import (
    LOOK_AGAIN,
    next_limit,
    no_longer_given_up,
    plan_at_limit,
    plan_of_anothers,
    plan_of_rerun,
    plan_of_takeover,
)
from mpirt.controller.decisions.takeover import is_taken_over
from mpirt.controller.decisions.worker_pods import label_ranks, replaced_workers
from mpirt.controller.dialects.base import Dialect
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.rbac import own_account, role, role_binding, service_account
from mpirt.controller.manifests.service import service
from mpirt.controller.manifests.workers import stateful_set
from mpirt.controller.messages.announcing import status_actions
from mpirt.controller.messages.readiness import Readiness, readiness
from mpirt.controller.messages.scaling import with_scaling
from mpirt.controller.messages.status import Obstacle, Progress, job_status
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete, Manifest, Plan, Rejection, earliest
from mpirt.controller.model.attempts import History
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.digests import digest
from mpirt.controller.model.objectnames import HISTORY_ANNOTATION
from mpirt.controller.model.reading import shortened
from mpirt.controller.model.records import dump_history
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.observed.facts import JobEnd, asks_for_rerun, is_reopened, job_end
from mpirt.controller.observed.history import history
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.rivals import is_run_by_another
from mpirt.controller.scaling.stateful_sets import replicas_now
from mpirt.controller.scaling.worker_plan import WorkerPlan, worker_plan

# The characters kept of the API server's message; the rest repeats the object.
_LONGEST_REJECTION = 1024


def make_plan(dialect: Dialect, spec: JobSpec, observed: Observed, *, settings: Settings, now: datetime) -> Plan:
    """Return the plan for a job with a valid spec."""
    if is_run_by_another(observed):
        return plan_of_anothers(dialect, spec, observed, now=now)
    if is_taken_over(observed):
        return plan_of_takeover(dialect, observed, now=now)
    if asks_for_rerun(observed) and not is_reopened(observed):
        return plan_of_rerun(observed, now=now)
    observed = judged(spec, spec.run, observed, now=now)
    spec = with_retries_left(as_nodes_are_seen(spec, observed), observed)
    if (over := plan_at_limit(dialect, spec.run, observed, spec=spec, now=now)) is not None:
        return over
    deadline = due(spec.run, observed)
    is_overdue = deadline is not None and deadline <= now
    plan = _plan_of_run(dialect, shortened_run(spec) if is_overdue else spec, observed, settings, now=now)
    return replace(plan, again=earliest(plan.again, next_limit(spec.run, observed, now=now)))


def _plan_of_run(
    dialect: Dialect, spec: JobSpec, observed: Observed, settings: Settings, *, now: datetime
) -> Plan:
    told_at = awaited(spec, spec.run, observed)
    is_told = told_at is None or told_at <= now
    end = written_end(observed)
    seen = overlooking(observed, now=now)
    happened = history(spec, seen, now=now)
    workers = readiness(spec, observed)
    wanted = [*_wanted(spec, observed, settings, end, happened, now=now), *_rights(spec, observed, workers, end)]
    gives_back = end is not None or is_suspended(spec.run, observed)
    rejection = _rejection(spec, observed, settings, wanted, gives_back=gives_back)
    if rejection is not None and (field := refused_field(spec, rejection)):
        reason, problem = Reason.INVALID if rejection.final else Reason.REFUSED, f"{field}: {_refused(rejection)}"
        return plan_of_invalid(dialect, spec.run, problem, observed, reason=reason, now=now)
    obstacle = _obstacle(observed, rejection, wanted)
    look = None if obstacle is None else now + LOOK_AGAIN
    members = worker_plan(
        spec,
        observed,
        settings,
        wants=wants_workers(spec, observed, end),
        runs=not spec.run.suspended,
        end=job_end(observed) if is_told else None,
        now=now,
    )
    if members.first:
        return Plan(members.first)
    changes = _changes(spec, observed, settings, wanted) if obstacle is None else []
    released = [
        *_removals(observed, wanted),
        *launcher_actions(spec, observed, settings, workers),
        *launcher_cleanup(spec.run, observed, end),
        *members.pods,
    ]
    if gives_back:
        # First: neither an obstacle nor a change that is refused keeps the job from releasing what it holds.
        changes = [*released, *changes]
    elif obstacle is None:
        changes += released
    else:
        changes += budget_removal(observed)
    if obstacle is None:
        changes += [*label_ranks(spec, observed), *refreshed_launchers(spec, observed)]
        changes += no_longer_given_up(spec, observed)
    forced, force_again = forced_deletions(observed, now=now)
    if not is_told:
        return Plan((*changes, *forced), earliest(told_at, force_again, look))
    status = job_status(spec, seen, happened, _progress(workers, obstacle, members), now=now)
    status = with_scaling(status, members.roster, members.outcome, observed, workers, now=now)
    said, write_again = status_actions(dialect.write_status, spec, observed, status, now=now)
    again = earliest(force_again, write_again, look, members.again)
    return Plan((*changes, *forced, *members.scalers, *said), again, members.questions)


def _wanted(
    spec: JobSpec, observed: Observed, settings: Settings, end: JobEnd | None, happened: History, *, now: datetime
) -> list[Manifest]:
    """Return the desired objects, except for the launcher Job and its rights."""
    has_workers = wants_workers(spec, observed, end)
    has_set = has_workers and spec.workers.bare is None
    return [
        # The keeper's files are there only while there are workers: those of many finished jobs would fill etcd.
        _with_history(config_map(spec, settings.keepers if has_workers else {}), observed, happened),
        *([] if own_account(spec) else [service_account(spec)]),
        service(spec),
        *wanted_budget(spec, end, has_workers=has_workers),
        *(wanted_group(spec, observed, settings) if has_workers and end is None else []),
        *([_workers(spec, observed, settings, end, now=now)] if has_set else []),
    ]


def _rights(spec: JobSpec, observed: Observed, workers: Readiness, end: JobEnd | None) -> list[Manifest]:
    """Return the desired objects that say in which pods the launcher may start commands."""
    if not has_rights(spec, observed, workers):
        return []
    has_workers = wants_workers(spec, observed, end)
    return [
        role(spec, may_enter(spec, observed, has_workers=has_workers, is_over=end is not None)),
        role_binding(spec),
    ]


def _workers(
    spec: JobSpec, observed: Observed, settings: Settings, end: JobEnd | None, *, now: datetime
) -> Manifest:
    return stateful_set(
        spec,
        settings,
        replicas=replicas_now(spec, observed, now=now),
        has_previous=bool(observed.previous_workers),
        over=end is not None,
    )


def _with_history(manifest: Manifest, observed: Observed, happened: History) -> Manifest:
    """Return the ConfigMap, with the history in an annotation if the CRD drops it from the status."""
    status = observed.status
    if not status.conditions or status.history is not None or happened.is_plain:
        return manifest
    metadata = {**manifest["metadata"], "annotations": {HISTORY_ANNOTATION: dump_history(happened)}}
    return {**manifest, "metadata": metadata}


def _changes(spec: JobSpec, observed: Observed, settings: Settings, wanted: Sequence[Manifest]) -> list[Action]:
    """Return what brings the job's objects to their desired state, but for what is no longer needed."""
    changes = [*dry_runs(spec, observed, settings), *_object_actions(spec, observed, wanted)]
    return [*changes, *replaced_workers(spec, observed, changes)]


def _object_actions(spec: JobSpec, observed: Observed, wanted: Sequence[Manifest]) -> list[Action]:
    actions: list[Action] = []
    for manifest in wanted:
        live = observed.mine.get(str(manifest["kind"]))
        # A suspended job has no use for an object, and thousands may wait in a queue.
        if live is None and not spec.run.suspended:
            actions.append(Create(manifest, "object missing; creating", digest(manifest)))
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


def _rejection(
    spec: JobSpec, observed: Observed, settings: Settings, wanted: Sequence[Manifest], *, gives_back: bool
) -> Rejection | None:
    """Return the first remembered rejection of something that is still desired."""
    if not observed.rejections:
        return None
    asked = {digest(one) for one in wanted}
    if not gives_back:
        asked |= {digest(launcher_job(spec, settings, held=held)) for held in (False, True)}
        asked |= dry_run_digests(spec, settings)
    return next((rejection for rejection in observed.rejections if rejection.digest in asked), None)


def _refused(rejection: Rejection) -> str:
    return f"the API server refuses it: {shortened(rejection.message, _LONGEST_REJECTION)}"


def _progress(workers: Readiness, obstacle: Obstacle | None, members: WorkerPlan) -> Progress:
    """Return the progress to report. Workers that can't be created are an obstacle that stops nothing else."""
    if obstacle is None and members.blocked is not None:
        obstacle = Obstacle(members.blocked, str(workers))
    return Progress(workers, obstacle)


def _obstacle(observed: Observed, rejection: Rejection | None, wanted: Sequence[Manifest]) -> Obstacle | None:
    needed = {str(manifest["kind"]) for manifest in wanted} | {kinds.JOB, kinds.ROLE, kinds.ROLE_BINDING}
    for live in observed.others:
        if live.kind not in needed:
            continue
        owner = live.owner_name
        if owner == f"{observed.owner.kind} {observed.owner.key.name}":
            message = f"{live.kind} {live.name} belongs to a previous job of this name; waiting for its deletion"
            return Obstacle(Reason.WORKERS_NOT_READY, message)
        whose = f"belongs to {owner}" if owner else "belongs to nobody"
        message = f"{live.kind} {live.name} exists and {whose}, and is left alone; delete it or rename the job"
        return Obstacle(Reason.EXISTS, message)
    if rejection is not None:
        said = shortened(rejection.message, _LONGEST_REJECTION)
        return Obstacle(Reason.REFUSED, f"the API server refuses {rejection.kind}: {said}")
    return None
