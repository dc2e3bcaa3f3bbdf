"""
Workers that leave because of their nodes or their template, each with a successor.

Owns: how such a worker leaves. On a node that is about to go it stops being a host at once, unless too few would
be left: then its successor must be Ready first. It goes when no command runs in it, at the latest so long before
the node goes that its grace period fits in. Workers of an earlier template leave one after the other, each after
its successor is Ready, however long that takes. Nothing is undone if the reason vanishes: the successor is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.model.actions import earliest
from mpirt.controller.model.reading import number
from mpirt.controller.model.roster import Drain, Roster, Source
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import Observed, is_dead, is_gone, is_outdated, is_usable
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.observed.pods import Pod
from mpirt.controller.scaling.departures import DEFAULT_LIMIT, is_idle
from mpirt.controller.scaling.room import room_for_drains, size_of_drain

# Kubernetes' own default.
_GRACE = 30


def with_drains(
    spec: JobSpec, roster: Roster, observed: Observed, *, now: datetime
) -> tuple[Roster, datetime | None]:
    """Return the roster with the drains begun and carried on, and when the time of one is over."""
    pods = observed.workers_by_name
    roster = replace(roster, drains=tuple(_carried_on(roster, observed, now)))
    room = room_for_drains(roster, observed.status.running) if observed.nodes else 0
    for name in roster.staying:
        pod = pods.get(name)
        if pod is not None and not is_dead(pod) and (signal := _signal(spec, observed, pod)) is not None:
            is_enough = _left_without(pod, roster, pods) >= _least(spec, roster)
            until, why = now + _time_left(spec, signal), f"node {pod.node} {signal.why}"
            drain = Drain(name, signal.source, why, until)
            if (room := room - size_of_drain(drain, name)) < 0:
                break
            roster = _begun(spec, roster, drain, waits=not is_enough)
    ends = (one.until for one in roster.drains if one.until is not None and not one.committed and one.until > now)
    return roster, earliest(*ends)


def with_new_template(spec: JobSpec, roster: Roster, observed: Observed) -> Roster:
    """Return the roster in which one worker of an earlier template begins to leave, if no other one does."""
    if roster.drains:
        return roster
    pods = observed.workers_by_name
    outdated = (name for name in roster.names if not is_dead(pod := pods.get(name)) and is_outdated(pod, spec))
    if (old := next(outdated, None)) is None:
        return roster
    drain = Drain(old, Source.TEMPLATE, "the workers' template was changed", None)
    return _begun(spec, roster, drain, waits=True)


def _least(spec: JobSpec, roster: Roster) -> int:
    return spec.workers.elastic.least if spec.workers.elastic is not None else len(roster.names)


def _left_without(pod: Pod, roster: Roster, pods: Mapping[str, Pod]) -> int:
    """Return how many Ready workers there are besides this one."""
    return sum(name != pod.name and is_usable(pods.get(name)) for name in roster.staying)


def _signal(spec: JobSpec, observed: Observed, pod: Pod) -> Signal | None:
    signal = observed.nodes.get(pod.node)
    if signal is None or (signal.source is Source.NODE_CORDONED and not spec.workers.leave_cordoned):
        return None
    return signal


def _begun(spec: JobSpec, roster: Roster, drain: Drain, *, waits: bool) -> Roster:
    """Return the roster in which this worker leaves, and a fresh one is wanted in its place."""
    [successor] = roster.fresh(spec.key.name, 1)
    names = (*(name for name in roster.names if name != drain.name), successor)
    # Whoever waits for the one that leaves now waits for its successor.
    others = tuple(replace(one, after=successor) if one.after == drain.name else one for one in roster.drains)
    leaves = replace(drain, after=successor if waits else "")
    return replace(roster.hired((successor,)), names=names, drains=(*others, leaves))


def _time_left(spec: JobSpec, signal: Signal) -> timedelta:
    """Return how long a worker may be in use before it is asked to end; half of a notice at least."""
    grace = max(0, number(spec.workers.template.spec, "terminationGracePeriodSeconds", _GRACE))
    return timedelta(seconds=max(signal.notice - grace, signal.notice // 2))


def _carried_on(roster: Roster, observed: Observed, now: datetime) -> Iterator[Drain]:
    pods = observed.workers_by_name
    for drain in roster.drains:
        pod = pods.get(drain.name)
        if pod is None or is_gone(pod):
            continue
        is_over = drain.until is not None and drain.until <= now
        if drain.committed or is_over or (not drain.after and pod.held and is_idle(pod, observed)):
            yield replace(drain, after="", committed=True)
        elif drain.after and is_usable(pods.get(drain.after)):
            yield replace(drain, after="", until=drain.until or now + DEFAULT_LIMIT)
        else:
            yield drain
