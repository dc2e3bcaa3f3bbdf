"""
What ScaleIns and ScaleOuts report.

Owns: their conditions, their owner references and the event about an outcome. An outcome is written here before
the job's status forgets the change, so a controller that is killed in between finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from mpirt.controller.dialects.scalers import write_scaler_status
from mpirt.controller.manifests.event import event
from mpirt.controller.manifests.meta import owner_reference
from mpirt.controller.messages.status import Said, conditions
from mpirt.controller.model.actions import Action, Create, Operation, Patch, WriteStatus, is_object
from mpirt.controller.model.conditions import JobStatus, Reason, Type, scale_reason
from mpirt.controller.model.reading import digest
from mpirt.controller.model.roster import Roster, Source
from mpirt.controller.model.spec import JobKey, JobSpec, Owner, Scaler
from mpirt.controller.observed.facts import Observed
from mpirt.controller.scaling.requests import leaving, next_scaler, refusal, unknown, unmatched
from mpirt.controller.scaling.roster_steps import Step

_WAITS = "waiting until the job runs and earlier changes of its workers are done"


@dataclass(frozen=True, slots=True)
class _Report:
    """What is to be said about a scaler."""

    type: Type
    reason: str
    message: str
    pods: tuple[str, ...] = ()


def scaler_actions(
    spec: JobSpec, roster: Roster, observed: Observed, step: Step, *, is_over: bool, now: datetime
) -> list[Action]:
    """Return the writes to the job's ScaleIns and ScaleOuts. `roster` is the one in the job's status."""
    actions: list[Action] = []
    for scaler in observed.scalers:
        if scaler.is_over or scaler.deleting:
            continue
        if spec.owner.uid not in scaler.owners:
            actions.append(_adoption(spec.owner, scaler))
        elif (report := _report(spec, roster, observed, step, scaler, is_over=is_over)) is not None:
            actions += _written(spec, scaler, report, now)
    return actions


def _report(
    spec: JobSpec, roster: Roster, observed: Observed, step: Step, scaler: Scaler, *, is_over: bool
) -> _Report | None:
    """Return what is new about a scaler; None if nothing is."""
    outcome = step.outcome
    if outcome is not None and outcome.change.uid == scaler.uid:
        pods, others = outcome.change.workers, unmatched(spec, roster, scaler)
        message = f"{outcome.message}; {others}" if others else outcome.message
        return _ended(scaler, succeeded=outcome.succeeded, message=message, pods=pods)
    if step.roster.change is not None and step.roster.change.uid == scaler.uid:
        return _news(scaler, Type.SCALING, Reason.SCALING, _under_way(scaler), step.roster.change.workers)
    if scaler.problem or is_over:
        return _ended(scaler, succeeded=False, message=scaler.problem or "the job has ended")
    is_next = next_scaler(observed) == scaler and roster.change is None and observed.running_launcher is not None
    if is_next and (refused := refusal(spec, roster, scaler)):
        return _ended(scaler, succeeded=False, message=refused)
    if is_next and scaler.source is Source.SCALE_IN and not leaving(roster, scaler):
        return _of_nobody(spec, roster, scaler)
    return _news(scaler, Type.CREATED, "", _WAITS)


def _of_nobody(spec: JobSpec, roster: Roster, scaler: Scaler) -> _Report:
    """Return the outcome of a ScaleIn that names no worker that could leave."""
    told = f"nothing was removed; {unmatched(spec, roster, scaler)}"
    if unknown(spec, roster, scaler):
        return replace(_ended(scaler, succeeded=False, message=told), reason=Reason.UNKNOWN_WORKER)
    return _ended(scaler, succeeded=True, message=told)


def _ended(scaler: Scaler, *, succeeded: bool, message: str, pods: tuple[str, ...] = ()) -> _Report:
    kind = Type.SCALE_SUCCEEDED if succeeded else Type.SCALE_FAILED
    told = f"; {', '.join(scaler.unused)}: no effect" if scaler.unused else ""
    reason = scale_reason(grows=scaler.source is Source.SCALE_OUT, succeeded=succeeded)
    return _Report(kind, reason, f"{message}{told}", pods)


def _news(scaler: Scaler, kind: Type, reason: str, message: str, pods: tuple[str, ...] = ()) -> _Report | None:
    return None if kind in scaler.conditions else _Report(kind, reason, message, pods)


def _under_way(scaler: Scaler) -> str:
    if scaler.source is Source.SCALE_OUT:
        return f"waiting until the new workers are Ready, {scaler.seconds} s at most"
    return f"waiting until the workers are not in use, {scaler.seconds} s at most"


def _written(spec: JobSpec, scaler: Scaler, report: _Report, now: datetime) -> list[Action]:
    said: Mapping[Type, Said] = {report.type: (True, report.reason, report.message)}
    made = {**scaler.conditions, **conditions(JobStatus(scaler.conditions), said, now=now)}
    status = write_scaler_status(scaler.source, made.values(), report.pods)
    write = WriteStatus(scaler.kind, scaler.name, scaler.uid, status, report.message)
    is_end = report.type in (Type.SCALE_SUCCEEDED, Type.SCALE_FAILED)
    return [_told(spec, scaler, report, now), write] if is_end else [write]


def _told(spec: JobSpec, scaler: Scaler, report: _Report, now: datetime) -> Create:
    key = JobKey(scaler.kind, spec.key.namespace, scaler.name)
    owner = Owner(scaler.api_version, scaler.kind, key, scaler.uid)
    is_warning = report.type is Type.SCALE_FAILED
    body = event(
        owner,
        digest(scaler.uid, report.type),
        warning=is_warning,
        reason=report.reason,
        message=report.message,
        now=now,
    )
    return Create(body, report.message, once=True)


def _adoption(owner: Owner, scaler: Scaler) -> Patch:
    """Return the patch that makes the job the owner of a scaler, so that both are deleted together."""
    reference = owner_reference(owner)
    if scaler.is_controlled:
        reference = {**reference, "controller": False}
    add: Operation = (
        {"op": "add", "path": "/metadata/ownerReferences/-", "value": reference}
        if scaler.owners
        else {"op": "add", "path": "/metadata/ownerReferences", "value": [reference]}
    )
    return Patch(scaler.kind, scaler.name, (is_object(scaler.uid), add), "it is deleted together with its job")
