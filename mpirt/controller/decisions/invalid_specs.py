"""
The plan for a job whose spec is invalid or rejected.

Owns: what is still done for it. Nothing is created or changed, and what runs continues with the previous spec. But
the run policy is read by itself, and carried out as far as it is valid: a job that is suspended or over gives its
pods' places back.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpirt.controller.decisions.desired import budget_removal
from mpirt.controller.decisions.dry_runs import LOOK_AGAIN
from mpirt.controller.decisions.launching import plan_of_missed, removal
from mpirt.controller.decisions.lost_nodes import forced_deletions, overlooking
from mpirt.controller.decisions.retries import judged
from mpirt.controller.decisions.rivals import is_of_another
from mpirt.controller.decisions.run_policy import (
    DEADLINE,
    awaited,
    deadline_left,
    is_suspended,
    launcher_cleanup,
    next_limit,
    plan_at_limit,
)
from mpirt.controller.dialects.base import Dialect
from mpirt.controller.messages.causes import STOPS
from mpirt.controller.messages.events import status_actions
from mpirt.controller.messages.status import failed_status, invalid_status
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, Patch, Plan, earliest, is_object, pointer
from mpirt.controller.model.attempts import Stop
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.reading import number
from mpirt.controller.model.spec import CleanPods, RunPolicy
from mpirt.controller.observed.facts import JobEnd, Observed
from mpirt.controller.observed.history import history
from mpirt.controller.scaling.worker_actions import all_deletions


def plan_of_invalid(
    dialect: Dialect,
    run: RunPolicy,
    problem: str,
    observed: Observed,
    *,
    reason: Reason = Reason.INVALID,
) -> Plan:
    """Return the plan for a job whose spec is invalid or rejected. `run`: its run policy as far as it is valid."""
    if is_of_another(observed):
        return Plan()
    if (missed := plan_of_missed(observed)) is not None:
        return missed
    observed = judged(None, run, observed)
    if (over := plan_at_limit(dialect, run, observed, problem=problem)) is not None:
        return over
    end, report_at = observed.written_end, awaited(None, run, observed)
    is_reported = report_at is None or report_at <= observed.now
    released = [
        *budget_removal(observed),
        *_released(run, observed, end),
        *_stopped_launcher(run, observed),
        *launcher_cleanup(run, observed),
    ]
    forced, force_again = forced_deletions(observed)
    look = observed.now + LOOK_AGAIN if observed.rejections else None
    again = earliest(force_again, look, next_limit(run, observed))
    if not is_reported:
        return Plan((*released, *forced), earliest(report_at, again))
    seen = overlooking(observed)
    happened = history(None, seen, suspended=run.suspended)
    status = invalid_status(reason, problem, seen, happened, suspended=run.suspended)
    said, write_again = status_actions(dialect.write_status, None, observed, status)
    return Plan((*released, *forced, *said), earliest(again, write_again))


def _released(run: RunPolicy, observed: Observed, end: JobEnd | None) -> Iterator[Action]:
    """Yield the deletions of the workers and their group, of a job that is suspended or over."""
    if end is None and not is_suspended(run, observed):
        return
    gone = {kinds.POD_GROUP}
    if end is None or run.clean is not CleanPods.NONE:
        gone.add(kinds.STATEFUL_SET)
        if observed.owner.kind in kinds.WITH_BARE_WORKERS:
            yield from all_deletions(observed)
    for kind in sorted(gone):
        if (live := observed.live(kind)) is not None:
            yield Delete(kind, live.name, live.uid, "no longer needed")


def _stopped_launcher(run: RunPolicy, observed: Observed) -> Iterator[Action]:
    """Yield what ends the launcher Job of a suspended job, and gives that of another the job's deadline."""
    job = observed.live(kinds.JOB)
    if job is None or observed.end is not None:
        return
    left = deadline_left(run, observed)
    if is_suspended(run, observed):
        yield removal(job, STOPS[Stop.SUSPENDED])
    elif left is not None and left != number(job.spec, DEADLINE):
        change = {"op": "add", "path": pointer("spec", DEADLINE), "value": left}
        yield Patch(kinds.JOB, job.name, (is_object(job.uid), change), "the job's deadline has changed")


def plan_of_impossible(dialect: Dialect, problem: str, observed: Observed) -> Plan:
    """Return the plan for a job with an error that no edit can correct: it has failed."""
    if observed.status.is_finished:
        return Plan()
    status = failed_status(Reason.INVALID_NAME, problem, observed, history(None, observed))
    return Plan(tuple(status_actions(dialect.write_status, None, observed, status)[0]))
