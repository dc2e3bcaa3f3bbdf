"""
What is true of a job, and how it is said.

Owns: the state, and the conditions with their reasons and messages; why something died is causes.py's. Nothing
here is remembered but what the last status says: that a job has run before, and what was told at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto

from mpirt.controller.messages import causes
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.messages.sentences import trouble
from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Condition, JobStatus, Reason, Type
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import (
    JobEnd,
    failures,
    is_finished,
    is_outdated,
    job_end,
    launcher_counts,
    running_launcher,
    worker_counts,
)
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.pod_events import why_unmade
from mpirt.controller.observed.pods import Pod


class State(Enum):
    """How far a job is."""

    STARTING = auto()
    RUNNING = auto()
    RESTARTING = auto()
    SUSPENDED = auto()
    FINISHED = auto()


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a job from being acted on."""

    reason: Reason
    message: str


Said = tuple[bool, str, str]
"""Status, reason and message of a condition."""


def state_of(spec: JobSpec, observed: Observed) -> State:
    """Where the job is, by what there is and by whether it has run before."""
    if job_end(observed) is not None:
        return State.FINISHED
    if spec.run.suspended:
        return State.SUSPENDED
    job = observed.mine.get(kinds.JOB)
    if running_launcher(observed) is not None and job is not None and not is_outdated(spec, job):
        return State.RUNNING
    before = observed.status
    has_run = before.is_true(Type.RUNNING) or before.is_true(Type.RESTARTING) or failures(observed) > 0
    return State.RESTARTING if has_run else State.STARTING


def job_status(
    spec: JobSpec, observed: Observed, workers: Readiness, obstacle: Obstacle | None, *, now: datetime
) -> JobStatus:
    """The status as it is to be."""
    before = observed.status
    state, end, launcher = state_of(spec, observed), job_end(observed), running_launcher(observed)
    said = {Type.CREATED: _created(spec), **_past(observed)}
    match state:
        case State.FINISHED if end is not None:
            said |= finished(spec, observed, end)
        case State.SUSPENDED:
            message = f"{_title(observed)} is suspended."
            said |= {
                Type.SUSPENDED: (True, Reason.SUSPENDED, message),
                Type.RUNNING: (False, Reason.SUSPENDED, message),
            }
        case State.RUNNING if launcher is not None:
            said[Type.RUNNING] = _running(spec, observed, workers, launcher)
        case State.RESTARTING:
            said[Type.RESTARTING] = (True, Reason.RESTARTING, causes.of_restart(spec, observed))
            said[Type.RUNNING] = _not_running(observed, workers)
        case _:
            said[Type.RUNNING] = _not_running(observed, workers)
    if obstacle is not None:
        said[Type.RUNNING] = (said[Type.RUNNING][0], obstacle.reason, obstacle.message)
    is_new_run = state is not State.FINISHED and is_finished(before)
    return JobStatus(
        conditions=conditions(before, said, now=now),
        launcher=launcher_counts(observed),
        workers=worker_counts(observed),
        started=None if state is State.SUSPENDED else (None if is_new_run else before.started) or now,
        completed=end.at if end is not None else None,
        written=before.written,
    )


def invalid_status(problem: str, observed: Observed, *, now: datetime) -> JobStatus:
    """The status of a job whose spec can't be. What runs runs on, and its end is told as ever."""
    before, end = observed.status, job_end(observed)
    said: dict[Type, Said] = {kind: _as_it_was(one) for kind, one in before.conditions.items()}
    said.setdefault(Type.CREATED, (True, Reason.CREATED, f"{_title(observed)} is created."))
    if end is not None:
        said |= {**_past(observed), **finished(None, observed, end)}
    elif kinds.JOB in observed.mine:
        message = f"The changed spec is not acted on, what ran before goes on: {problem}"
        said[Type.RUNNING] = (before.is_true(Type.RUNNING), Reason.INVALID, message)
    else:
        said |= {kind: (False, Reason.INVALID, problem) for kind in _HOLDING if kind in said}
        said |= _restarted(observed)
        said |= {Type.FAILED: (True, Reason.INVALID, problem), Type.RUNNING: (False, Reason.INVALID, problem)}
    return replace(
        before,
        conditions=conditions(before, said, now=now),
        launcher=launcher_counts(observed),
        workers=worker_counts(observed),
        completed=end.at if end is not None else None,
    )


_RESTARTED = "The launcher had to start again: "
# None of these is so if the job has Failed.
_HOLDING = (Type.SUSPENDED, Type.RUNNING, Type.SUCCEEDED)


def finished(spec: JobSpec | None, observed: Observed, end: JobEnd) -> dict[Type, Said]:
    """The conditions of a job that is over. What was said when it ended stays: its pods may be gone by now."""
    before = observed.status
    if is_finished(before) and before.completed == end.at:
        return {
            kind: (one.status, one.reason, _with_late_news(observed, one, end))
            for kind, one in before.conditions.items()
            if kind not in (Type.CREATED, Type.RESTARTING)
        }
    if end.succeeded:
        message = f"{_title(observed)} successfully completed."
        return {
            Type.SUCCEEDED: (True, Reason.SUCCEEDED, message),
            Type.RUNNING: (False, Reason.SUCCEEDED, message),
        }
    reason = f"{end.reason or Reason.FAILED}{causes.reason_of(observed)}"
    message = causes.of_end(spec, observed, end)
    return {Type.FAILED: (True, reason, message), Type.RUNNING: (False, reason, message)}


def _with_late_news(observed: Observed, told: Condition, end: JobEnd) -> str:
    is_of_end = not end.succeeded and told.type in (Type.FAILED, Type.RUNNING)
    return causes.known_later(observed, told.message, end) if is_of_end else told.message


def conditions(before: JobStatus, said: Mapping[Type, Said], *, now: datetime) -> dict[Type, Condition]:
    """What is said, with the times at which it came to be so."""
    made = {}
    for kind, (status, reason, message) in said.items():
        old = before.conditions.get(kind)
        is_same = old is not None and (old.status, old.reason, old.message) == (status, str(reason), message)
        changed = old.changed if old is not None and old.status == status else now
        updated = old.updated if old is not None and is_same else now
        made[kind] = Condition(kind, status, str(reason), message, changed, updated)
    return made


def _title(observed: Observed) -> str:
    return f"{observed.owner.kind} {observed.owner.key}"


def _as_it_was(one: Condition) -> Said:
    return one.status, one.reason, one.message


def _created(spec: JobSpec) -> Said:
    told = [f"{spec.owner.kind} {spec.key} is created.", *(f"{notice}." for notice in spec.notices)]
    return True, Reason.CREATED, " ".join(told)


def _past(observed: Observed) -> dict[Type, Said]:
    """Conditions that were said before, as they are if nothing makes them true now."""
    before = observed.status
    ended = (False, Reason.RUN_AGAIN, "The launcher Job was deleted, so the job runs again.")
    valid = (False, Reason.VALID, "The spec can be acted on.")
    has_failed = before.conditions.get(Type.FAILED)
    was_invalid = has_failed is not None and has_failed.reason in (Reason.INVALID, Reason.VALID)
    untrue: dict[Type, Said] = {
        Type.SUSPENDED: (False, Reason.RESUMED, "The job is resumed."),
        Type.SUCCEEDED: ended,
        Type.FAILED: valid if was_invalid else ended,
    }
    return {kind: one for kind, one in untrue.items() if kind in before.conditions} | _restarted(observed)


def _restarted(observed: Observed) -> dict[Type, Said]:
    """That it was restarted, if it ever was, and why: what nodes report late is often the cause."""
    before = observed.status.conditions.get(Type.RESTARTING)
    if before is None:
        return {}
    cause = causes.of_earlier_attempt(observed, before.message.removeprefix(_RESTARTED))
    return {Type.RESTARTING: (False, Reason.RUNNING, f"{_RESTARTED}{cause}")}


def _running(spec: JobSpec, observed: Observed, workers: Readiness, launcher: Pod) -> Said:
    is_well = spec.workers.elastic is not None and workers.ready >= workers.wanted
    deaths = "" if is_well else causes.while_running(spec, observed, launcher)
    if launcher.cut_off is not None:
        lost = f"Launcher pod {launcher.name} was lost with its node {launcher.node}"
        return True, Reason.LAUNCHER_FAILED, f"{lost}; {deaths}" if deaths else lost
    running = f"Launcher pod {launcher.name} runs on node {launcher.node}"
    if deaths:
        return True, Reason.WORKER_FAILED, f"{running}; {deaths}"
    return True, Reason.RUNNING, f"{running}; {workers.counted}"


def _not_running(observed: Observed, workers: Readiness) -> Said:
    job = observed.mine.get(kinds.JOB)
    if job is None:
        return False, Reason.WORKERS_NOT_READY, str(workers)
    waiting = [pod for pod in observed.leftovers if not pod.is_over]
    current = [pod for pod in observed.launchers if not pod.is_over]
    if waiting:
        told = f"the launcher waits until {waiting[0].name} of an earlier one is gone"
    elif current:
        told = f"launcher pod {trouble(current[-1]) or current[-1].name}"
    elif job.deleting:
        told = "the launcher is being removed"
    else:
        why = why_unmade(observed.unmade, job.uid, observed.launchers)
        told = f"the launcher's pod {why or 'is not there yet'}"
    return False, Reason.LAUNCHER_NOT_RUNNING, f"{told}; {workers}"
