"""
What is reported about changes of a job's workers: by the job, and by its ScaleIns and ScaleOuts.

Owns: the conditions WorkersCreated, WorkersReady, LauncherCreated, Scaling, ScaleSucceeded and ScaleFailed, the
owner references of ScaleIns and ScaleOuts, and the events about outcomes and drains. An outcome is written to its
ScaleIn before the job's status forgets the change, so a controller that is killed in between finds it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from mpirt.controller.dialects.training_job import write_scaler_status
from mpirt.controller.manifests.supporting import adoption, owner_reference
from mpirt.controller.messages.events import announcement, transition
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.messages.status import Said, conditions, said_before
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Patch, WriteStatus, is_object
from mpirt.controller.model.conditions import JobStatus, Reason, Type, scale_reason
from mpirt.controller.model.reading import digest
from mpirt.controller.model.roster import Change, Outcome, Roster, Source
from mpirt.controller.model.spec import JobKey, JobSpec, Owner, Scaler
from mpirt.controller.observed.facts import Observed
from mpirt.controller.scaling.changes import Step, leaving, next_scaler, refusal, unknown, unmatched

_MILESTONES = (Type.WORKERS_CREATED, Type.WORKERS_READY, Type.LAUNCHER_CREATED)
_ENDS = (Type.SCALE_SUCCEEDED, Type.SCALE_FAILED)
_EDITED = "the number of replicas was changed"
_WAITS = "waiting until the job runs and earlier changes of its workers are done"


def with_scaling(
    status: JobStatus,
    roster: Roster | None,
    outcome: Outcome | None,
    observed: Observed,
    workers: Readiness,
) -> JobStatus:
    """Return the status with the roster and with what it means; unchanged if there is no roster."""
    if roster is None:
        return status
    before = observed.status.conditions
    said = {kind: said_before(one) for kind, one in before.items() if kind in (*_MILESTONES, *_ENDS)}
    if Type.LAUNCHER_CREATED not in before:
        said |= _milestones(roster, observed, workers)
    if roster.change is not None:
        said[Type.SCALING] = True, Reason.SCALING, change_text(roster.change)
    elif Type.SCALING in before:
        said[Type.SCALING] = False, before[Type.SCALING].reason, before[Type.SCALING].message
    if outcome is not None:
        kind, reason = _end_of(grows=bool(outcome.change.joining), succeeded=outcome.succeeded)
        said[kind] = True, reason, f"{_cause(outcome.change)}: {outcome.message}"
    running = tuple(pod.name for pod in observed.workers if pod.phase == "Running" and pod.deleted is None)
    made = conditions(before, said, now=observed.now)
    return replace(status, conditions={**status.conditions, **made}, roster=roster, running=running)


def _milestones(roster: Roster, observed: Observed, workers: Readiness) -> dict[Type, Said]:
    """Return the milestones on a job's way to its launcher, as far as it has come."""
    said: dict[Type, Said] = {}
    if roster.names and not roster.pending:
        said[Type.WORKERS_CREATED] = True, Reason.WORKERS_CREATED, f"{len(roster.names)} workers are created."
    if workers.wanted and workers.ready >= workers.wanted:
        said[Type.WORKERS_READY] = True, Reason.WORKERS_READY, "All workers are Ready."
    if observed.live(kinds.JOB) is not None:
        said[Type.LAUNCHER_CREATED] = True, Reason.LAUNCHER_CREATED, "The launcher is created."
    return said


def change_text(change: Change) -> str:
    """Return a sentence about a change."""
    verb = "join" if change.joining else "leave"
    return f"{_cause(change)}: {', '.join(change.workers)} will {verb}"


def _cause(change: Change) -> str:
    return f"{change.source} {change.name}" if change.name else _EDITED


def _end_of(*, grows: bool, succeeded: bool) -> tuple[Type, Reason]:
    return _ENDS[not succeeded], scale_reason(grows=grows, succeeded=succeeded)


def drain_events(owner: Owner, before: Roster, after: Roster, now: datetime) -> list[Create]:
    """Return the events about workers that begin to leave their nodes."""
    known = {one.name for one in before.drains}
    return [
        announcement(
            owner,
            digest(owner.uid, drain.name, drain.source),
            warning=False,
            reason=drain.source,
            message=f"{drain.name} leaves: {drain.why}; another worker takes its place",
            now=now,
        )
        for drain in after.drains
        if drain.name not in known
    ]


@dataclass(frozen=True, slots=True)
class _Report:
    """What is reported about a scaler."""

    type: Type
    reason: str
    message: str
    pods: tuple[str, ...] = ()


def scaler_actions(
    spec: JobSpec,
    roster: Roster,
    observed: Observed,
    step: Step,
    *,
    is_over: bool,
) -> list[Action]:
    """Return the writes to the job's ScaleIns and ScaleOuts. `roster` is the one in the job's status."""
    actions: list[Action] = []
    for scaler in observed.scalers:
        if scaler.is_over or scaler.deleting:
            continue
        if spec.owner.uid not in scaler.owners:
            reference = {**owner_reference(spec.owner), "controller": not scaler.is_controlled}
            add = adoption(reference, first=not scaler.owners)
            why = "it is deleted together with its job"
            actions.append(Patch(scaler.kind, scaler.name, (is_object(scaler.uid), add), why))
        elif (report := _report(spec, roster, observed, step, scaler, is_over=is_over)) is not None:
            actions += _written(spec, scaler, report, observed.now)
    return actions


def _report(
    spec: JobSpec,
    roster: Roster,
    observed: Observed,
    step: Step,
    scaler: Scaler,
    *,
    is_over: bool,
) -> _Report | None:
    """Return what is new about a scaler; None if nothing is."""
    outcome, change = step.outcome, step.roster.change
    if outcome is not None and outcome.change.uid == scaler.uid:
        others = unmatched(spec, roster, scaler)
        message = f"{outcome.message}; {others}" if others else outcome.message
        return _outcome(scaler, message, succeeded=outcome.succeeded, pods=outcome.change.workers)
    if change is not None and change.uid == scaler.uid:
        return _news(scaler, Type.SCALING, Reason.SCALING, _awaited(scaler), change.workers)
    if scaler.problem or is_over:
        return _outcome(scaler, scaler.problem or "the job has ended", succeeded=False)
    is_next = next_scaler(observed) == scaler and roster.change is None and observed.running_launcher is not None
    if is_next and (refused := refusal(spec, roster, scaler)):
        return _outcome(scaler, refused, succeeded=False)
    if is_next and scaler.source is Source.SCALE_IN and not leaving(roster, scaler):
        return _without_workers(spec, roster, scaler)
    return _news(scaler, Type.CREATED, "", _WAITS)


def _without_workers(spec: JobSpec, roster: Roster, scaler: Scaler) -> _Report:
    """Return the outcome of a ScaleIn that names no worker that could leave."""
    message = f"nothing was removed; {unmatched(spec, roster, scaler)}"
    if unknown(spec, roster, scaler):
        return replace(_outcome(scaler, message, succeeded=False), reason=Reason.UNKNOWN_WORKER)
    return _outcome(scaler, message, succeeded=True)


def _outcome(scaler: Scaler, message: str, *, succeeded: bool, pods: tuple[str, ...] = ()) -> _Report:
    kind, reason = _end_of(grows=scaler.source is Source.SCALE_OUT, succeeded=succeeded)
    unused = f"; {', '.join(scaler.unused)}: no effect" if scaler.unused else ""
    return _Report(kind, reason, f"{message}{unused}", pods)


def _news(scaler: Scaler, kind: Type, reason: str, message: str, pods: tuple[str, ...] = ()) -> _Report | None:
    return None if kind in scaler.conditions else _Report(kind, reason, message, pods)


def _awaited(scaler: Scaler) -> str:
    event = "the new workers are Ready" if scaler.source is Source.SCALE_OUT else "the workers are not in use"
    return f"waiting until {event}, {scaler.seconds} s at most"


def _written(spec: JobSpec, scaler: Scaler, report: _Report, now: datetime) -> list[Action]:
    made = conditions(scaler.conditions, {report.type: (True, report.reason, report.message)}, now=now)
    status = write_scaler_status(scaler.source, {**scaler.conditions, **made}.values(), report.pods)
    write = WriteStatus(scaler.kind, scaler.name, scaler.uid, status, report.message)
    if report.type not in _ENDS:
        return [write]
    key = JobKey(scaler.kind, spec.key.namespace, scaler.name)
    owner = Owner(scaler.api_version, scaler.kind, key, scaler.uid)
    is_warning = report.type is Type.SCALE_FAILED
    return [transition(owner, None, made[report.type], warning=is_warning, now=now), write]
