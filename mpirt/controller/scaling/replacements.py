"""
Workers that died, and who takes their place.

Owns: which dead workers are replaced, and how soon. A replacement has a number that was never used: launchers
remember the names of hosts on which something failed. While no launcher runs, every dead worker is replaced,
because the job can't start without it; while one runs, the worker's restartPolicy decides. A successor that is
still waited for is replaced if the template was changed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.model.roster import Change, Roster
from mpirt.controller.model.spec import BarePods, JobSpec, Restart
from mpirt.controller.observed.facts import Observed, is_dead, is_outdated
from mpirt.controller.observed.pods import Pod

# The delays between replacements of a job's workers: none at first, then growing. A worker that dies whenever it
# is started must not keep a cluster busy.
_FIRST = timedelta(seconds=10)
_LONGEST = timedelta(minutes=5)
# After so long without a replacement the next one is immediate again.
_QUIET = timedelta(minutes=10)

# The codes of containers that were killed by a signal: retryable by the convention of Kubeflow's operators.
_RETRYABLE = range(129, 255)


def with_replacements(
    spec: JobSpec, bare: BarePods, roster: Roster, observed: Observed, *, now: datetime
) -> tuple[Roster, datetime | None]:
    """Return the roster with fresh names in place of dead workers, or when there will be some."""
    dead = tuple(_replaced(spec, bare, roster, observed))
    if not dead:
        return roster, None
    due = _due(roster, now)
    if due > now:
        return roster, due
    fresh = roster.fresh(spec.key.name, len(dead))
    instead = dict(zip(dead, fresh, strict=True))
    hired = roster.hired(fresh)
    names = tuple(name for name in roster.names if name not in instead)
    joining = hired.change.joining if hired.change is not None else ()
    return (
        replace(
            hired,
            names=(*names, *(instead[name] for name in roster.names if name in instead)),
            change=_with_joining(hired.change, tuple(instead.get(name, name) for name in joining)),
            drains=tuple(replace(one, after=instead.get(one.after, one.after)) for one in hired.drains),
            replaced=roster.replaced + 1 if not _is_quiet(roster, now) else 1,
            replaced_at=now,
        ),
        None,
    )


def _members(roster: Roster) -> list[str]:
    """Return those whose death matters: not those that leave, nor those whose pods have not been created yet."""
    return [name for name in roster.everybody if name not in roster.leaving and name not in roster.pending]


def _with_joining(change: Change | None, joining: tuple[str, ...]) -> Change | None:
    return None if change is None else replace(change, joining=joining)


def _is_quiet(roster: Roster, now: datetime) -> bool:
    return roster.replaced_at is None or roster.replaced_at + _QUIET <= now


def _due(roster: Roster, now: datetime) -> datetime:
    if roster.replaced_at is None or _is_quiet(roster, now):
        return now
    # The exponent is capped because timedelta overflows.
    delay: timedelta = min(_LONGEST, _FIRST * 2.0 ** min(roster.replaced - 1, 30))
    return roster.replaced_at + delay


def _replaced(spec: JobSpec, bare: BarePods, roster: Roster, observed: Observed) -> Iterator[str]:
    pods, runs = observed.workers_by_name, observed.running_launcher is not None
    awaited = {one.after for one in roster.drains}
    for name in _members(roster):
        pod = pods.get(name)
        # Nobody uses it yet, and perhaps it never becomes Ready: its template was changed.
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
