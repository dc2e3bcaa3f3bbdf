"""
ScaleIns and ScaleOuts: which one is next, which workers it means, and whether it is allowed.

Owns: the choice and the limits. A list of names means exactly these workers; one that is not there any more is
done already, and a name that no worker ever had is reported. Nothing here ever takes "none" for "all".
"""

from __future__ import annotations

from datetime import datetime

from mpirt.controller.model.roster import Change, Roster, Source
from mpirt.controller.model.spec import JobSpec, Scaler
from mpirt.controller.observed.facts import Observed


def scaler_change(spec: JobSpec, roster: Roster, observed: Observed, *, now: datetime) -> Change | None:
    """Return the change that the oldest ScaleIn or ScaleOut asks for; None if none asks for any."""
    scaler = next_scaler(observed)
    if scaler is None or refusal(spec, roster, scaler):
        return None
    change = Change(
        scaler.source,
        now,
        name=scaler.name,
        uid=scaler.uid,
        seconds=scaler.seconds,
        force=scaler.force,
        leaving=leaving(roster, scaler),
        joining=roster.fresh(spec.key.name, scaler.count or 0) if scaler.source is Source.SCALE_OUT else (),
    )
    return change if change.leaving or change.joining else None


def next_scaler(observed: Observed) -> Scaler | None:
    """Return the oldest ScaleIn or ScaleOut without an outcome."""
    return next((one for one in observed.scalers if not one.is_over and not one.deleting), None)


def leaving(roster: Roster, scaler: Scaler) -> tuple[str, ...]:
    """Return the workers that a ScaleIn removes: those that it names, or those with the highest numbers."""
    if scaler.source is not Source.SCALE_IN:
        return ()
    if scaler.pods is not None:
        return tuple(name for name in roster.names if name in scaler.pods)
    return roster.names[len(roster.names) - (scaler.count or 0) :] if scaler.count else ()


def unknown(spec: JobSpec, roster: Roster, scaler: Scaler) -> tuple[str, ...]:
    """Return the names in a ScaleIn that no worker of the job ever had."""
    return tuple(name for name in scaler.pods or () if not roster.has_had(spec.key.name, name))


def unmatched(spec: JobSpec, roster: Roster, scaler: Scaler) -> str:
    """Return what is known of the names in a ScaleIn that mean no worker that could leave; empty if all do."""
    strange, there = unknown(spec, roster, scaler), leaving(roster, scaler)
    gone = [name for name in scaler.pods or () if name not in (*strange, *there)]
    told = [f"no worker of the job is named {', '.join(strange)}"] if strange else []
    return "; ".join([*told, *([f"already gone or leaving: {', '.join(gone)}"] if gone else [])])


def refusal(spec: JobSpec, roster: Roster, scaler: Scaler) -> str:
    """Return why a ScaleIn or ScaleOut is not carried out; empty if it is."""
    if scaler.problem:
        return scaler.problem
    limits = spec.workers.elastic
    there = len(roster.names)
    if scaler.source is Source.SCALE_OUT:
        if limits is None or there + (scaler.count or 0) <= limits.most:
            return ""
        return f"{there} workers and {scaler.count} more are above the limit of {limits.most}"
    least = 1 if limits is None else limits.least
    fewer = there - (len(leaving(roster, scaler)) if scaler.pods is not None else scaler.count or 0)
    if fewer >= least:
        return ""
    return f"of {there} workers {max(fewer, 0)} would be left, below minReplicas={least}"
