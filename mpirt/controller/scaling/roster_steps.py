"""
What becomes of a roster: the next state, given what is observed.

Owns: the order in which a job's workers change. Only one change is under way at a time: an edit of the number of
replicas comes first, then the oldest ScaleIn or ScaleOut, then a new template. Workers that died are replaced,
and workers on nodes that are about to go are drained, at any time. Nothing here touches a pod: the roster is
written to the status first, and bare_workers.py acts on what is written there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from mpirt.controller.model.actions import earliest
from mpirt.controller.model.objectnames import worker_number
from mpirt.controller.model.roster import Change, Outcome, Roster, Source
from mpirt.controller.model.spec import BarePods, JobSpec
from mpirt.controller.observed.facts import Observed, is_dead
from mpirt.controller.scaling.departures import continued, limit_of, undone
from mpirt.controller.scaling.drains import with_drains, with_new_template
from mpirt.controller.scaling.replacements import with_replacements
from mpirt.controller.scaling.requests import scaler_change


@dataclass(frozen=True, slots=True)
class Step:
    """The roster to write next, and when to look again."""

    roster: Roster
    again: datetime | None = None
    outcome: Outcome | None = None
    """How the change that was under way has ended, if it has."""


def next_step(spec: JobSpec, bare: BarePods, observed: Observed, *, runs: bool, now: datetime) -> Step:
    """Return the next state of the job's roster. `runs`: whether the job should have workers now."""
    roster = bare.roster
    if roster is None:
        return Step(_first(spec, bare, observed))
    roster = roster.seen(frozenset(observed.workers_by_name))
    if not runs:
        quiet = replace(undone(roster), drains=(), replaced=0, replaced_at=None)
        return Step(quiet, outcome=_stopped(roster.change))
    roster, replace_again = with_replacements(spec, bare, roster, observed, now=now)
    roster, drain_again = with_drains(spec, roster, observed, now=now)
    outcome = None
    if roster.change is None:
        roster = _begun(spec, bare, roster, observed, now=now)
    else:
        roster, outcome = continued(spec, bare, roster, roster.change, observed, now=now)
    return Step(roster, earliest(replace_again, drain_again, _limit(roster.change, now)), outcome)


def _stopped(change: Change | None) -> Outcome | None:
    return None if change is None else Outcome(change, succeeded=False, message="the job does not run any more")


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


def _begun(spec: JobSpec, bare: BarePods, roster: Roster, observed: Observed, *, now: datetime) -> Roster:
    """Return the roster with the next change begun, if there is one."""
    if bare.replicas > len(roster.names):
        fresh = roster.fresh(spec.key.name, bare.replicas - len(roster.names))
        return replace(roster.hired(fresh), names=(*roster.names, *fresh), replicas=bare.replicas)
    if bare.replicas < len(roster.names):
        leaving = roster.names[bare.replicas :]
        return replace(roster, replicas=bare.replicas, change=Change(Source.REPLICAS, now, leaving=leaving))
    if bare.replicas != roster.replicas:
        roster = replace(roster, replicas=bare.replicas)
    if observed.running_launcher is None:
        return roster
    change = scaler_change(spec, roster, observed, now=now)
    if change is not None:
        return replace(roster.hired(change.joining), change=change)
    return with_new_template(spec, roster, observed)
