"""
The deadlines of a job.

Owns: how long the report of an end is held back, when activeDeadlineSeconds is over, and how long a job waits for
its workers.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Type
from mpirt.controller.model.spec import JobSpec, RunPolicy
from mpirt.controller.observed.facts import JobEnd, is_finished, is_over, job_end
from mpirt.controller.observed.losses import are_settled, are_unheard
from mpirt.controller.observed.observe import Observed

# A Job and its pod arrive by separate watches, in any order. An end is reported once, together with its cause.
CAUSE_WITHIN = timedelta(seconds=5)
# From the end of the last container until its kubelet has reported it and the Job is marked as finished.
END_WITHIN = timedelta(seconds=15)
# How long the workers' kubelets have to report what ended together with a launcher that has not told how its
# commands have ended; and how long if it had lost a connection right before, to a worker that died, or because the
# API server was away; or if mpiexec of MPICH has not waited for its proxies.
WORD_WITHIN = timedelta(seconds=3)
WORD_OF_UNHEARD = timedelta(seconds=30)


def awaited(spec: JobSpec | None, run: RunPolicy, observed: Observed) -> datetime | None:
    """
    Return until when an end is held back; None if it is not.

    Because the Job or its pod does not show it yet, or a worker may have been lost.
    """
    end = job_end(observed)
    if end is not None and end.succeeded:
        return None if spec is None else _believed_at(spec, observed, end)
    if end is None and run.suspended:
        # The launcher Job is about to be deleted, and its end does not count any more.
        return None
    if end is None:
        since, within = _succeeded_since(observed) or _exhausted_since(run, observed), END_WITHIN
    else:
        since, within = _unexplained_since(observed, end), CAUSE_WITHIN
    return None if since is None else since + within


def due(run: RunPolicy, observed: Observed) -> datetime | None:
    """Return when activeDeadlineSeconds is over, if it is set. It includes the time spent waiting for workers."""
    started = observed.status.started
    if run.deadline is None or run.suspended or started is None or is_finished(observed.status):
        return None
    return started + timedelta(seconds=run.deadline)


def patience_ends(run: RunPolicy, observed: Observed) -> datetime | None:
    """Return until when the job may wait for its workers; None if it has a launcher, or may wait for ever."""
    status = observed.status
    if run.patience is None or run.suspended or status.started is None or is_finished(status):
        return None
    if kinds.JOB in observed.mine or status.is_true(Type.RUNNING):
        return None
    running = status.conditions.get(Type.RUNNING)
    since = status.started if running is None else max(status.started, running.changed)
    return since + timedelta(seconds=run.patience)


def shortened_run(spec: JobSpec) -> JobSpec:
    """Return the spec with a deadline of 1 s: it counts from the launcher Job's start, so the Job ends at once."""
    return replace(spec, run=replace(spec.run, deadline=1))


def _believed_at(spec: JobSpec, observed: Observed, end: JobEnd) -> datetime | None:
    """Return until when a node may still report that a worker was lost, which would make the success none."""
    if is_over(observed) or not spec.needs_every_worker:
        return None
    last = observed.launchers[-1] if observed.launchers else None
    since = end.at if last is None or last.ended is None else last.ended
    if since is None or (last is not None and are_settled(spec, observed, last.name)):
        return None
    if last is None or not are_unheard(spec, observed, last.name):
        return since + WORD_WITHIN
    return max(since, observed.heard or since) + WORD_OF_UNHEARD


def _unexplained_since(observed: Observed, end: JobEnd) -> datetime | None:
    """Return when the Job failed, if its pod does not show a failure yet: the cause is still to come."""
    pods = observed.launchers
    is_seen = any(pod.phase == "Failed" for pod in pods) and all(pod.is_over for pod in pods)
    return None if is_over(observed) or is_seen else end.at


def _succeeded_since(observed: Observed) -> datetime | None:
    """Return when the launcher's pod succeeded, if its Job does not show that yet."""
    if not observed.launchers or observed.live(kinds.JOB) is None or observed.disbelieved is not None:
        return None
    last = observed.launchers[-1]
    return last.ended if last.phase == "Succeeded" else None


def _exhausted_since(run: RunPolicy, observed: Observed) -> datetime | None:
    """Return when the last allowed attempt failed; None while another may follow."""
    pods = observed.launchers
    may_try = len(pods) <= run.retries or any(pod.phase != "Failed" for pod in pods)
    if may_try or observed.live(kinds.JOB) is None:
        return None
    return pods[-1].ended
