"""
Workers that get a successor: those that died, and those that leave because of their nodes or their template.

Owns: which dead workers are replaced and how soon, and how a worker is drained. A successor has a number that was
never used: launchers remember the names of hosts on which something failed. While no launcher runs, every dead
worker is replaced, because the job can't start without it; while one runs, the worker's restartPolicy decides.

A worker on a node that is about to go stops being a host at once, unless too few would be left: then its successor
must be Ready first. It goes when no command runs in it, at the latest so long before the node goes that its grace
period fits in. Workers of an earlier template leave one after the other, each after its successor is Ready,
however long that takes. Nothing is undone if the reason vanishes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.backoff import delay
from mpirt.controller.model.actions import earliest
from mpirt.controller.model.reading import number
from mpirt.controller.model.roster import Drain, Roster, Source
from mpirt.controller.model.spec import BarePods, JobSpec, Restart
from mpirt.controller.observed.facts import Observed, is_dead, is_gone, is_outdated, is_usable
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.observed.pods import Pod
from mpirt.controller.scaling.changes import DEFAULT_LIMIT, is_idle
from mpirt.controller.scaling.room import room_for_drains, size_of_drain

# The delays between replacements of a job's workers: none at first, then growing. A worker that dies whenever it
# is started must not keep a cluster busy.
_FIRST, _LONGEST = 10.0, 300.0
# After so long without a replacement the next one is immediate again.
_QUIET = timedelta(minutes=10)

# The codes of containers that were killed by a signal: retryable by the convention of Kubeflow's operators.
_RETRYABLE = range(129, 255)

# Kubernetes' own default.
_GRACE = 30


def with_replacements(
    spec: JobSpec, bare: BarePods, roster: Roster, observed: Observed
) -> tuple[Roster, datetime | None]:
    """Return the roster with fresh names in place of dead workers, or when there will be some."""
    dead = tuple(_replaced(spec, bare, roster, observed))
    if not dead:
        return roster, None
    due = _due(roster, observed.now)
    if due > observed.now:
        return roster, due
    fresh = roster.fresh(spec.key.name, len(dead))
    instead = dict(zip(dead, fresh, strict=True))
    hired = roster.hired(fresh)
    change = hired.change
    if change is not None:
        change = replace(change, joining=tuple(instead.get(name, name) for name in change.joining))
    kept = (name for name in roster.names if name not in instead)
    followed = replace(
        hired,
        names=(*kept, *(instead[name] for name in roster.names if name in instead)),
        change=change,
        drains=tuple(replace(one, after=instead.get(one.after, one.after)) for one in hired.drains),
        replaced=1 if _is_quiet(roster, observed.now) else roster.replaced + 1,
        replaced_at=observed.now,
    )
    return followed, None


def _members(roster: Roster) -> list[str]:
    """Return those whose death matters: not those that leave, nor those whose pods have not been created yet."""
    return [name for name in roster.everybody if name not in roster.leaving and name not in roster.pending]


def _is_quiet(roster: Roster, now: datetime) -> bool:
    return roster.replaced_at is None or roster.replaced_at + _QUIET <= now


def _due(roster: Roster, now: datetime) -> datetime:
    if roster.replaced_at is None or _is_quiet(roster, now):
        return now
    return roster.replaced_at + timedelta(seconds=delay(roster.replaced - 1, _FIRST, _LONGEST))


def _replaced(spec: JobSpec, bare: BarePods, roster: Roster, observed: Observed) -> Iterator[str]:
    pods, runs = observed.workers_by_name, observed.running_launcher is not None
    awaited = {one.after for one in roster.drains}
    for name in _members(roster):
        pod = pods.get(name)
        # It is not in use yet, and perhaps never becomes Ready: its template was changed.
        is_useless = is_outdated(pod, spec) and (not runs or name in awaited)
        if is_useless or (is_dead(pod) and (not runs or _is_missed(name, spec, bare, roster, observed))):
            yield name


def _is_missed(name: str, spec: JobSpec, bare: BarePods, roster: Roster, observed: Observed) -> bool:
    """Whether another worker takes the place of this one, which died while the launcher runs."""
    died = (pod for pod in (*observed.workers, *observed.departed) if pod.name == name)
    return name not in roster.names or _allows(bare.restart, next(died, None), spec.workers.template.main)


def _allows(restart: Restart, pod: Pod | None, main: str) -> bool:
    """Whether the policy replaces a worker that died; None: its pod is gone, and nothing is known of its end."""
    if restart is Restart.ALWAYS:
        return True
    if restart is Restart.NEVER or pod is None or pod.phase != "Failed":
        return False
    return restart is Restart.ON_FAILURE or _is_retryable(pod, main)


def _is_retryable(pod: Pod, main: str) -> bool:
    ended = [one.ended for one in pod.main_first(main) if one.ended is not None and not one.init]
    return bool(ended) and (ended[0].is_lost or ended[0].code in _RETRYABLE)


def with_drains(spec: JobSpec, roster: Roster, observed: Observed) -> tuple[Roster, datetime | None]:
    """Return the roster with the drains begun and carried on, and when the time of one is over."""
    pods = observed.workers_by_name
    roster = replace(roster, drains=tuple(_carried_on(roster, observed)))
    room = room_for_drains(roster, observed.status.running) if observed.nodes else 0
    for name in roster.staying:
        pod = pods.get(name)
        if pod is not None and not is_dead(pod) and (signal := _signal(spec, observed, pod)) is not None:
            is_enough = _left_without(pod, roster, pods) >= _least(spec, roster)
            until, why = observed.now + _time_left(spec, signal), f"node {pod.node} {signal.why}"
            drain = Drain(name, signal.source, why, until)
            if (room := room - size_of_drain(drain, name)) < 0:
                break
            roster = _begun(spec, roster, drain, waits=not is_enough)
    ends = (
        one.until
        for one in roster.drains
        if one.until is not None and not one.committed and one.until > observed.now
    )
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
    # Drains that wait for the one that leaves wait for its successor.
    others = tuple(replace(one, after=successor) if one.after == drain.name else one for one in roster.drains)
    leaves = replace(drain, after=successor if waits else "")
    return replace(roster.hired((successor,)), names=names, drains=(*others, leaves))


def _time_left(spec: JobSpec, signal: Signal) -> timedelta:
    """Return how long a worker may be in use before it is asked to end; half of a notice at least."""
    grace = max(0, number(spec.workers.template.spec, "terminationGracePeriodSeconds", _GRACE))
    return timedelta(seconds=max(signal.notice - grace, signal.notice // 2))


def _carried_on(roster: Roster, observed: Observed) -> Iterator[Drain]:
    pods = observed.workers_by_name
    for drain in roster.drains:
        pod = pods.get(drain.name)
        if pod is None or is_gone(pod):
            continue
        is_over = drain.until is not None and drain.until <= observed.now
        if drain.committed or is_over or (not drain.after and pod.held and is_idle(pod, observed)):
            yield replace(drain, after="", committed=True)
        elif drain.after and is_usable(pods.get(drain.after)):
            yield replace(drain, after="", until=drain.until or observed.now + DEFAULT_LIMIT)
        else:
            yield drain
