"""
The status of a job.

Owns: the state, and the conditions with their reasons and messages; causes.py says why something died. What must
be remembered is in the history, which is data. The last status contributes its times, whether the job has run, and
the conditions that are kept: those of a finished job or an invalid spec, and restarts whose cause is not in the
history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum, auto

from mpirt import names
from mpirt.controller.messages import causes
from mpirt.controller.messages.causes import trouble
from mpirt.controller.messages.readiness import Obstacle, Readiness
from mpirt.controller.model import kinds
from mpirt.controller.model.attempts import History, Stop
from mpirt.controller.model.conditions import Condition, JobStatus, Reason, Type
from mpirt.controller.model.reading import shortened, write_time
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import JobEnd, Observed, launcher_counts, outdated, worker_counts
from mpirt.controller.observed.pods import Pod, why_not_created

# Keeps the whole status far below etcd's limit, however long the message of an admission webhook is.
LONGEST_MESSAGE = 4096

Said = tuple[bool, str, str]
"""Status, reason and message of a condition."""
_RESTARTED = "The launcher had to start again: "
_CHECK = "A shell pipe, or mpirun of Open MPI 5, may have dropped a code other than 0: check the job's results."


class State(Enum):
    """The state of a job."""

    STARTING = auto()
    RUNNING = auto()
    RESTARTING = auto()
    SUSPENDED = auto()
    FINISHED = auto()


def state_of(spec: JobSpec, observed: Observed, history: History) -> State:
    """Return the job's state, by its objects and by whether it has run before."""
    if observed.end is not None:
        return State.FINISHED
    if spec.run.suspended:
        return State.SUSPENDED
    job, launcher = observed.mine.get(kinds.JOB), observed.running_launcher
    attempt = None if launcher is None else history.attempt_of(launcher.name)
    if attempt is not None and attempt.begun and job is not None and outdated(spec, job) is None:
        return State.RUNNING
    before = observed.status
    has_run = before.is_true(Type.RUNNING) or before.is_true(Type.RESTARTING) or observed.failures > 0
    return State.RESTARTING if has_run else State.STARTING


def job_status(
    spec: JobSpec, observed: Observed, history: History, workers: Readiness, obstacle: Obstacle | None
) -> JobStatus:
    """Return the new status of a job with a valid spec; `obstacle`: what is in its way."""
    before = observed.status
    state, end, launcher = state_of(spec, observed, history), observed.end, observed.running_launcher
    said = {Type.CREATED: _created(spec), **_past(observed, history)}
    match state:
        case State.FINISHED if end is not None:
            said |= _finished(observed, history, _with_missing_workers(end, history, workers))
        case State.SUSPENDED:
            said |= _instead(Type.SUSPENDED, Reason.SUSPENDED, f"{_title(observed)} is suspended.")
        case State.RUNNING if launcher is not None:
            said[Type.RUNNING] = _running(spec, history, workers, launcher)
        case _:
            said[Type.RUNNING] = _not_running(spec, observed, history, workers)
    if state is State.RESTARTING:
        said[Type.RESTARTING] = (True, _restart_reason(history), _why_restarting(observed, history))
    if obstacle is not None:
        # The conditions of a finished job are those that were written, by any writer.
        is_running = Type.RUNNING in said and said[Type.RUNNING][0]
        said[Type.RUNNING] = (is_running, obstacle.reason, obstacle.message)
    is_new_run = state is not State.FINISHED and before.is_finished
    started = (None if is_new_run else before.started) or observed.now
    return _status(observed, history, said, started=started, suspended=state is State.SUSPENDED)


def invalid_status(
    reason: Reason, problem: str, observed: Observed, history: History, *, suspended: bool
) -> JobStatus:
    """
    Return the status of a job whose spec is invalid or rejected.

    The job does not fail: its spec or a policy may be changed. What runs continues, unless the job is suspended,
    and its end is reported.
    """
    before, end = observed.status, observed.end
    suspended = suspended and end is None
    said = _unchanged(observed)
    if end is None and kinds.JOB in observed.mine and observed.failure is None and not suspended:
        message = f"The changed spec is ignored, and the job runs on with the previous one: {problem}"
        said[Type.RUNNING] = (before.is_true(Type.RUNNING), reason, message)
    else:
        said |= _past(observed, history)
        said |= {Type.RUNNING: (False, reason, problem)} if end is None else _finished(observed, history, end)
    if suspended:
        said[Type.SUSPENDED] = (True, Reason.SUSPENDED, f"{_title(observed)} is suspended.")
    return _status(observed, history, said, started=before.started, suspended=suspended)


def failed_status(reason: str, problem: str, observed: Observed, history: History) -> JobStatus:
    """Return the status of a job that has failed for good, without a launcher."""
    said = {**_unchanged(observed), **_past(observed, history), **_instead(Type.FAILED, reason, problem)}
    status = _status(observed, history, said, started=observed.status.started or observed.now)
    return replace(status, completed=observed.now)


def _status(
    observed: Observed,
    history: History,
    said: Mapping[Type, Said],
    *,
    started: datetime | None,
    suspended: bool = False,
) -> JobStatus:
    before, end = observed.status, observed.end
    at = None if end is None else end.at or (None if observed.is_over else observed.now)
    return replace(
        before,
        conditions=conditions(before.conditions, said, now=observed.now),
        launcher=launcher_counts(observed, suspended=suspended),
        workers=worker_counts(observed, suspended=suspended),
        started=None if suspended else started,
        completed=at,
        history=history,
    )


def _with_missing_workers(end: JobEnd, history: History, workers: Readiness) -> JobEnd:
    """Return the end of a job that has waited for its workers until its deadline, with those that are missing."""
    has_begun = history.last is not None and history.last.begun is not None
    if end.reason != Reason.DEADLINE or has_begun:
        return end
    return replace(end, message=f"{end.message}; {workers}")


def _finished(observed: Observed, history: History, end: JobEnd) -> dict[Type, Said]:
    """Return the conditions of a finished job: those set at its end, updated by what is reported later."""
    if not observed.is_over:
        reason = f"{end.reason or Reason.FAILED}{causes.reason_of(history)}"
        return _ended(observed, history, end, reason)
    others = (Type.CREATED, Type.RESTARTING)
    said = {kind: said_before(one) for kind, one in observed.status.conditions.items() if kind not in others}
    launcher = observed.launcher_end
    if launcher is not None and observed.history is not None and history != observed.history:
        # A worker's death, or the launcher's own end, was reported after the job's end.
        said |= _ended(observed, history, replace(launcher, succeeded=end.succeeded), end.reason)
    return said


def _ended(observed: Observed, history: History, end: JobEnd, reason: str) -> dict[Type, Said]:
    if not end.succeeded:
        return _instead(Type.FAILED, reason, causes.of_end(history, end))
    message = f"{_title(observed)} successfully completed."
    if deaths := causes.before_success(history):
        message += f" But right before, {deaths}. {_CHECK}"
    return _instead(Type.SUCCEEDED, Reason.SUCCEEDED, message)


def _instead(kind: Type, reason: str, message: str) -> dict[Type, Said]:
    """Return a condition that holds, and for the same reason Running that does not."""
    return {kind: (True, reason, message), Type.RUNNING: (False, reason, message)}


def conditions(
    before: Mapping[Type, Condition], said: Mapping[Type, Said], *, now: datetime
) -> dict[Type, Condition]:
    """Return the conditions with the times of their last transition and last update."""
    made = {}
    for kind, (status, reason, message) in said.items():
        old = before.get(kind)
        words = shortened(message, LONGEST_MESSAGE)
        is_same = old is not None and (old.status, old.reason, old.message) == (status, str(reason), words)
        changed = old.changed if old is not None and old.status == status else now
        updated = old.updated if old is not None and is_same else now
        made[kind] = Condition(kind, status, str(reason), words, changed, updated)
    return made


def _title(observed: Observed) -> str:
    return f"{observed.owner.kind} {observed.owner.key}"


def _unchanged(observed: Observed) -> dict[Type, Said]:
    """Return all conditions unchanged; Created is added if it is missing."""
    created = (True, Reason.CREATED, f"{_title(observed)} is created.")
    return {Type.CREATED: created, **{kind: said_before(one) for kind, one in observed.status.conditions.items()}}


def said_before(one: Condition) -> Said:
    """Return an unchanged condition."""
    return one.status, one.reason, one.message


def _created(spec: JobSpec) -> Said:
    sentences = [f"{spec.owner.kind} {spec.key} is created", *spec.notices]
    return True, Reason.CREATED, " ".join(f"{one}." for one in sentences)


def _past(observed: Observed, history: History) -> dict[Type, Said]:
    """Return the conditions that were set before, in the form that they have if they no longer hold."""
    before = observed.status
    again = (False, Reason.RUN_AGAIN, "The job runs again.")
    untrue: dict[Type, Said] = {
        Type.SUSPENDED: (False, Reason.RESUMED, "The job is resumed."),
        Type.SUCCEEDED: again,
        Type.FAILED: again,
    }
    return {kind: one for kind, one in untrue.items() if kind in before.conditions} | _restarted(observed, history)


def _restarted(observed: Observed, history: History) -> dict[Type, Said]:
    """Return the condition of a job that was restarted, with the cause, which nodes often report late."""
    before = observed.status.conditions.get(Type.RESTARTING)
    cause = causes.of_restart(history)
    if cause:
        message = f"{_RESTARTED}{cause}"
    elif before is not None:
        message = f"{_RESTARTED}{before.message}" if before.status else before.message
    else:
        return {}
    return {Type.RESTARTING: (False, Reason.RUNNING, message)}


def _restart_reason(history: History) -> Reason:
    is_lost = history.last is not None and history.last.stopped is Stop.WORKER_LOST
    return Reason.WORKER_LOST if is_lost else Reason.RESTARTING


def _why_restarting(observed: Observed, history: History) -> str:
    if history.last is not None and (cause := causes.of_attempt(history.last)):
        return cause
    before = observed.status.conditions.get(Type.RESTARTING)
    if before is not None and before.status and before.message:
        return before.message
    is_left = observed.live(kinds.JOB) is not None
    return "the launcher's pod is gone" if is_left else causes.STOPS[Stop.JOB_DELETED]


def launcher_suspended(observed: Observed) -> str:
    """
    Return the message that the launcher Job is suspended, which only others do; empty if it is not.

    The condition Running has it in place of the message about a missing launcher pod.
    """
    job = observed.live(kinds.JOB)
    if job is None or job.spec.get("suspend") is not True:
        return ""
    return (
        f"launcher Job {job.name} is suspended (spec.suspend is true); {names.CONTROLLER} never sets this field, "
        "and waits until the client that suspended the Job, Kueue for example, resumes it"
    )


def _running(spec: JobSpec, history: History, workers: Readiness, launcher: Pod) -> Said:
    is_well = spec.workers.elastic is not None and workers.ready >= workers.wanted
    attempt = history.attempt_of(launcher.name)
    deaths = "" if is_well or attempt is None else causes.while_running(attempt)
    if launcher.cut_off is not None:
        lost = f"Launcher pod {launcher.name} was lost with its node {launcher.node}"
        return True, Reason.LAUNCHER_FAILED, f"{lost}; {deaths}" if deaths else lost
    running = f"Launcher pod {launcher.name} runs on node {launcher.node}"
    if deaths:
        return True, Reason.WORKER_FAILED, f"{running}; {deaths}"
    return True, Reason.RUNNING, f"{running}; {workers.counted}"


def _not_running(spec: JobSpec, observed: Observed, history: History, workers: Readiness) -> Said:
    job = observed.mine.get(kinds.JOB)
    waiting = [pod for pod in observed.previous_launchers if not pod.is_over]
    again = history.next_attempt(observed.now) if job is None or observed.failure is not None else None
    if again is not None:
        why = f"the next attempt begins at {write_time(again)}: the last ones ended too soon"
        return False, Reason.LAUNCHER_NOT_RUNNING, f"{why}; {workers}"
    if not waiting and (job is None or (observed.running_launcher is not None and outdated(spec, job) is None)):
        return False, Reason.WORKERS_NOT_READY, str(workers)
    current = [pod for pod in observed.launchers if not pod.is_over]
    if suspended := launcher_suspended(observed):
        why = suspended
    elif waiting:
        why = f"waiting for the previous launcher pod {waiting[0].name} to terminate"
    elif current:
        why = f"launcher pod {trouble(current[-1], spec.launcher.template.main) or current[-1].name}"
    elif job is None or job.deleting:
        why = "the launcher Job is being deleted"
    else:
        missing = why_not_created(observed.failed_creates, job.uid, observed.launchers)
        why = f"the launcher's pod {missing or 'does not exist yet'}"
    # Each change of the reason is a write.
    is_early = spec.starts_before_workers and workers.ready < workers.wanted
    reason = Reason.WORKERS_NOT_READY if is_early else Reason.LAUNCHER_NOT_RUNNING
    return False, reason, f"{why}; {workers}"
