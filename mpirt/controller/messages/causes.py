"""
Messages that say why a launcher was restarted, or why a job failed.

Owns: the sentences about attempts and deaths. They name workers first, because the launcher's last lines are long.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from mpirt import names
from mpirt.controller.messages.sentences import LAUNCHER_POD, listed, pod_end
from mpirt.controller.model.attempts import Attempt, History, How, PodEnd, Stop
from mpirt.controller.observed.facts import JobEnd

# The reason of a Job without attempts left. Ends for other reasons have nothing to do with how its last pod ended.
_NO_MORE_ATTEMPTS = "BackoffLimitExceeded"
# How the last pod ends if the Job ends for another reason: the Job itself deletes it.
_BY_THE_JOB = frozenset({How.DELETED, How.GONE})
# How long mpirun may take to notice that a worker is gone.
_RIGHT_BEFORE = timedelta(seconds=10)

STOPS: Mapping[Stop, str] = {
    Stop.LAUNCHER_CHANGED: "the launcher's template was changed",
    Stop.WORKERS_CHANGED: "the workers' template was changed",
    Stop.JOB_DELETED: "the launcher Job was deleted",
    Stop.SUSPENDED: "the job was suspended",
    Stop.WORKER_LOST: "a worker was lost while the launcher ran",
}


def while_running(attempt: Attempt) -> str:
    """Return the workers that died since the launcher started; empty if none did."""
    return listed([pod_end(death) for death in attempt.deaths], attempt.more)


def of_attempt(attempt: Attempt) -> str:
    """Return why an attempt ended."""
    if attempt.stopped is Stop.WORKER_LOST:
        return f"{while_running(attempt) or STOPS[Stop.WORKER_LOST]}; {_no_success(attempt)}"
    if attempt.stopped is not None:
        return STOPS[attempt.stopped]
    end = attempt.ended
    return "; ".join(filter(None, (while_running(attempt), launcher_end(end) if end is not None else "")))


def _no_success(attempt: Attempt) -> str:
    return (
        f"{LAUNCHER_POD}{attempt.launcher} ended with code 0 all the same, which does not count as a success; if "
        f'the job copes with the loss of workers, annotate it with {names.TOLERATES_ANNOTATION}: "true"'
    )


def of_restart(history: History) -> str:
    """Return why the launcher was last restarted; empty if it never was."""
    ended = [one for one in history.attempts[:-1] if one.ended or one.stopped]
    return of_attempt(ended[-1]) if ended else ""


def of_end(history: History, end: JobEnd) -> str:
    """Return why the job has failed for good."""
    last = history.last
    is_told = (
        last is not None
        and last.ended is not None
        and (last.stopped or end.reason == _NO_MORE_ATTEMPTS or last.ended.how not in _BY_THE_JOB)
    )
    return "; ".join(filter(None, (end.message, of_attempt(last) if last is not None and is_told else "")))


def before_success(history: History) -> str:
    """
    Return the workers that died right before the launcher ended with 0; empty if none did.

    mpirun of Open MPI 5 (PRRTE 3) loses the exit code when it loses a worker. Only the times tell such an end from
    a good one, and those of kubelets have no fractions of a second.
    """
    last = history.last
    if last is None or last.ended is None or last.ended.at is None or last.ended.code != 0:
        return ""
    since, until = last.ended.at - _RIGHT_BEFORE, last.ended.at
    return listed([pod_end(one) for one in last.deaths if one.at is not None and since <= one.at <= until], 0)


def reason_of(history: History) -> str:
    """Return the cause of the last attempt's failure as a suffix of the reason, as mpi-operator appends it."""
    end = history.last.ended if history.last is not None else None
    if end is None:
        return ""
    word = "Evicted" if end.how is How.EVICTED else end.reason
    is_of_pod = end.how in (How.EVICTED, How.FAILED, How.EXITED)
    return f"/{word}" if is_of_pod and word not in ("", "Error", "Completed") else ""


def launcher_end(end: PodEnd) -> str:
    """Return how a launcher's pod ended, with its last lines."""
    words = f": {end.message}" if end.how is How.EXITED and end.message else ""
    return f"{LAUNCHER_POD}{pod_end(end, name_container=False)}{words}"
