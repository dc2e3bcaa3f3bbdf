"""
Workers on nodes that are about to go.

Owns: how a worker leaves such a node. It stops being a host at once, unless too few would be left: then its
successor must be Ready first. It goes when no command runs in it, at the latest so long before the node goes that
its grace period fits in. Nothing is undone if the signal vanishes: the successor is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.model.actions import earliest
from mpirt.controller.model.reading import number
from mpirt.controller.model.roster import Drain, Roster, Source
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.members import all_usable, is_dead, is_gone, pods_by_name
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.pods import Pod
from mpirt.controller.scaling.departures import is_idle

# Kubernetes' own default.
_GRACE = 30


def with_drains(
    spec: JobSpec, roster: Roster, observed: Observed, *, now: datetime
) -> tuple[Roster, datetime | None]:
    """Return the roster with the drains begun and carried on, and when the time of one is over."""
    pods = pods_by_name(observed)
    roster = replace(roster, drains=tuple(_carried_on(roster, observed, now)))
    for name in roster.staying:
        pod = pods.get(name)
        if pod is None or is_dead(pod) or (found := _signal(spec, observed, pod)) is None:
            continue
        roster = _begun(spec, roster, pod, found, observed=observed, now=now)
    return roster, earliest(*(one.until for one in roster.drains if not one.committed and one.until > now))


def _signal(spec: JobSpec, observed: Observed, pod: Pod) -> Signal | None:
    signal = observed.nodes.get(pod.node)
    if signal is None or (signal.source is Source.NODE_CORDONED and not spec.workers.leave_cordoned):
        return None
    return signal


def _begun(
    spec: JobSpec, roster: Roster, pod: Pod, signal: Signal, *, observed: Observed, now: datetime
) -> Roster:
    """Return the roster in which this worker leaves, and a fresh one is wanted in its place."""
    [successor] = roster.fresh(spec.key.name, 1)
    least = spec.workers.elastic.least if spec.workers.elastic is not None else len(roster.names)
    left = [name for name in roster.staying if name != pod.name and all_usable((name,), observed)]
    drain = Drain(
        pod.name,
        signal.source,
        f"node {pod.node} {signal.why}",
        now + _time_left(spec, signal),
        after=successor if len(left) < least else "",
    )
    names = tuple(name for name in roster.names if name != pod.name)
    return replace(roster.hired((successor,)), names=(*names, successor), drains=(*roster.drains, drain))


def _time_left(spec: JobSpec, signal: Signal) -> timedelta:
    """Return how long a worker may be in use before it is told to end; half of a notice at least."""
    grace = number(spec.workers.template.spec, "terminationGracePeriodSeconds", _GRACE)
    return timedelta(seconds=max(signal.notice - grace, signal.notice // 2))


def _carried_on(roster: Roster, observed: Observed, now: datetime) -> Iterator[Drain]:
    pods = pods_by_name(observed)
    for drain in roster.drains:
        pod = pods.get(drain.name)
        if pod is None or is_gone(pod):
            continue
        is_over = drain.until <= now
        if drain.committed or is_over or (not drain.after and pod.held and is_idle(pod, observed)):
            yield replace(drain, after="", committed=True)
        elif drain.after and _has_successor(roster, drain, observed):
            yield replace(drain, after="")
        else:
            yield drain


def _has_successor(roster: Roster, drain: Drain, observed: Observed) -> bool:
    """Whether the successor is Ready; one that died has another in its place."""
    return all_usable((drain.after,), observed) or drain.after not in roster.names
