"""
What is to be done, out of what is wanted and what there is.

Owns: putting the decisions together, in the order in which they are to be carried out, with the status last. Each
decision has a file of its own beside this one. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.decisions.cleanup import expiry, launcher_cleanup, wants_workers
from mpirt.controller.decisions.drift import correction
from mpirt.controller.decisions.dry_runs import refused_field, trials, workers_as_job
from mpirt.controller.decisions.launching import launcher_actions
from mpirt.controller.decisions.lost_nodes import healing, overlooking
from mpirt.controller.decisions.takeover import is_taken_over, left_alone, removals, taking_over, told_from
from mpirt.controller.dialects.base import Dialect
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.rbac import own_account, role, role_binding, service_account
from mpirt.controller.manifests.service import service
from mpirt.controller.manifests.workers import stateful_set
from mpirt.controller.messages.announcing import announcements, is_due
from mpirt.controller.messages.causes import exhausted_since, unexplained_since
from mpirt.controller.messages.readiness import readiness
from mpirt.controller.messages.status import Obstacle, invalid_status, job_status
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete, Manifest, Plan, Refusal, WriteStatus, earliest
from mpirt.controller.model.conditions import JobStatus, Reason
from mpirt.controller.model.digests import digest
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.observed.facts import JobEnd, is_finished, job_end
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.rivals import is_run_by_another

# Objects of others are not watched, and a refusal may end without a sign.
LOOK_AGAIN = timedelta(seconds=30)
# A Job and its pod come by different watches, either of them first. An end is told once, with its cause.
CAUSE_WITHIN = timedelta(seconds=5)
# From the last container's end until its node has told of it and Kubernetes has seen that it was the last.
END_WITHIN = timedelta(seconds=15)


def make_plan(dialect: Dialect, spec: JobSpec, observed: Observed, *, settings: Settings, now: datetime) -> Plan:
    """The plan for a job that can be acted on."""
    if is_run_by_another(observed):
        return _plan_of_anothers(dialect, spec, observed, now=now)
    if is_taken_over(observed):
        return _plan_of_takeover(dialect, observed, now=now)
    end = job_end(observed)
    expires = expiry(spec, end)
    # However short its time, its end is told first.
    if expires is not None and expires <= now and is_finished(observed.status):
        why = f"it ended {spec.run.ttl} s ago: ttlSecondsAfterFinished"
        return Plan((Delete(observed.owner.kind, spec.key.name, observed.owner.uid, why),))
    if (awaited := _awaited(spec, observed, end)) is not None and now < awaited:
        return Plan(again=awaited)
    wanted = _wanted(spec, observed, settings, end)
    refusal = _refusal(spec, observed, settings, wanted)
    if refusal is not None and refusal.final:
        return plan_of_invalid(dialect, _refused(refusal, spec, settings), observed, now=now)
    obstacle = _obstacle(observed, refusal, wanted)
    workers = readiness(spec, observed)
    changes: list[Action] = []
    if obstacle is None:
        changes = [
            *trials(spec, observed, settings),
            *_object_actions(observed, wanted),
            *_removals(observed, wanted),
        ]
        changes += launcher_actions(spec, observed, settings, workers)
        changes += launcher_cleanup(spec, observed, end)
    healed, heal_again = healing(observed, now=now)
    status = job_status(spec, overlooking(observed, now=now), workers, obstacle, now=now)
    said, write_again = _status_actions(dialect, spec, observed, status, now=now)
    look = now + LOOK_AGAIN if obstacle is not None else None
    return Plan((*changes, *healed, *said), earliest(expires, heal_again, write_again, look))


def _awaited(spec: JobSpec, observed: Observed, end: JobEnd | None) -> datetime | None:
    """Until when nothing is told of an end, for one half of what makes it is still on its way."""
    if end is None:
        since, within = exhausted_since(spec, observed), END_WITHIN
    else:
        since, within = unexplained_since(observed, end), CAUSE_WITHIN
    return None if since is None else since + within


def _plan_of_anothers(dialect: Dialect, spec: JobSpec, observed: Observed, *, now: datetime) -> Plan:
    """The plan for a job that is left to another controller: it says so if it stands still without a reason."""
    told = told_from(observed)
    if told is None or spec.run.suspended:
        return Plan()
    if now < told:
        return Plan(again=told)
    said, again = _status_actions(dialect, None, observed, left_alone(observed, dialect.claim, now=now), now=now)
    return Plan(tuple(said), again)


def _plan_of_takeover(dialect: Dialect, observed: Observed, *, now: datetime) -> Plan:
    """The plan for a job of another controller's that is to be ours: its launcher Job and pods go first."""
    said, again = _status_actions(dialect, None, observed, taking_over(observed, now=now), now=now)
    return Plan((*removals(observed), *said), earliest(again, now + LOOK_AGAIN))


def plan_of_invalid(dialect: Dialect, problem: str, observed: Observed, *, now: datetime) -> Plan:
    """The plan for a job whose spec can't be: it is said, and what runs is left alone, but for what is lost."""
    if is_run_by_another(observed):
        return Plan()
    healed, heal_again = healing(observed, now=now)
    status = invalid_status(problem, overlooking(observed, now=now), now=now)
    said, write_again = _status_actions(dialect, None, observed, status, now=now)
    look = now + LOOK_AGAIN if observed.refusals else None
    return Plan((*healed, *said), earliest(heal_again, write_again, look))


def _wanted(spec: JobSpec, observed: Observed, settings: Settings, end: JobEnd | None) -> list[Manifest]:
    """The objects that are to exist, but for the launcher Job."""
    has_workers = wants_workers(spec, end)
    return [
        # As long as there are workers: of many finished jobs the files would fill the cluster's store.
        config_map(spec, settings.keepers if has_workers else {}),
        *([] if own_account(spec) else [service_account(spec)]),
        role(spec),
        role_binding(spec),
        service(spec),
        *([stateful_set(spec, settings, has_earlier=bool(observed.earlier))] if has_workers else []),
    ]


def _object_actions(observed: Observed, wanted: Sequence[Manifest]) -> list[Action]:
    actions: list[Action] = []
    for manifest in wanted:
        live = observed.mine.get(str(manifest["kind"]))
        if live is None:
            actions.append(Create(manifest, "it is to be there", digest(manifest)))
        elif not live.deleting and (changed := correction(manifest, live)) is not None:
            actions.append(changed)
    return actions


def _removals(observed: Observed, wanted: Sequence[Manifest]) -> list[Action]:
    """Objects of ours that are wanted no more: workers when the job is over or suspended, an account."""
    kept = {str(manifest["kind"]) for manifest in wanted} | {kinds.JOB}
    return [
        Delete(kind, live.name, live.uid, "the job wants it no more")
        for kind, live in observed.mine.items()
        if kind not in kept and not live.deleting
    ]


def _refusal(spec: JobSpec, observed: Observed, settings: Settings, wanted: Sequence[Manifest]) -> Refusal | None:
    """What the API server has refused of what is still wanted."""
    if not observed.refusals:
        return None
    asked = {digest(one) for one in (*wanted, launcher_job(spec, settings), workers_as_job(spec, settings))}
    return next((refusal for refusal in observed.refusals if refusal.digest in asked), None)


def _refused(refusal: Refusal, spec: JobSpec, settings: Settings) -> str:
    field = refused_field(refusal, spec, settings)
    return f"{field}{': ' if field else ''}the API server refuses it: {refusal.message}"


def _obstacle(observed: Observed, refusal: Refusal | None, wanted: Sequence[Manifest]) -> Obstacle | None:
    needed = {str(manifest["kind"]) for manifest in wanted} | {kinds.JOB}
    for live in observed.others:
        if live.kind not in needed:
            continue
        owner = live.owner_name
        if owner == f"{observed.owner.kind} {observed.owner.key.name}":
            message = f"{live.kind} {live.name} is left of an earlier job of this name; waiting until it is gone"
            return Obstacle(Reason.WORKERS_NOT_READY, message)
        whose = f"belongs to {owner}" if owner else "belongs to nobody"
        message = f"{live.kind} {live.name} exists and {whose}, and is left alone; delete it or rename the job"
        return Obstacle(Reason.EXISTS, message)
    if refusal is not None:
        return Obstacle(Reason.REFUSED, f"the API server refuses {refusal.kind}: {refusal.message}")
    return None


def _status_actions(
    dialect: Dialect, spec: JobSpec | None, observed: Observed, status: JobStatus, *, now: datetime
) -> tuple[list[Action], datetime | None]:
    """The events and the write, if it is time for them, or when it will be."""
    due = is_due(observed.status, status, now=now)
    if due is None or due > now:
        return [], due
    owner = observed.owner
    body = dialect.write_status(replace(status, written=now), owner.key)
    events = announcements(owner, observed.status, status, spec, now=now)
    before = observed.status
    came_true = frozenset(kind for kind in status.conditions if status.is_true(kind) and not before.is_true(kind))
    return [*events, WriteStatus(owner.uid, body, "the status has changed", came_true)], None
