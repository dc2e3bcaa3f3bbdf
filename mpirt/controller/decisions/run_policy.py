"""
The run policy of a job: suspension, deadlines, retries, TTL and clean-up.

Owns: which pods cleanPodPolicy deletes and when the job itself is deleted; when activeDeadlineSeconds is over, how
long a job waits for its workers, and how long the report of an end is held back.

Nothing is deleted before the status says why: to a controller that comes later, a deletion would look like the
cause of the end.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpirt.controller.dialects.base import Dialect
from mpirt.controller.messages.events import status_actions
from mpirt.controller.messages.readiness import readiness
from mpirt.controller.messages.status import failed_status
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, Operation, Patch, Plan, earliest, is_object, pointer
from mpirt.controller.model.conditions import Reason, Type
from mpirt.controller.model.objectnames import GAVE_UP, GAVE_UP_ANNOTATION, PATIENCE_ANNOTATION
from mpirt.controller.model.reading import moment, number
from mpirt.controller.model.spec import CleanPods, JobSpec, RunPolicy
from mpirt.controller.observed.facts import JobEnd, Observed
from mpirt.controller.observed.history import history
from mpirt.controller.observed.losses import are_settled, are_unheard


def is_suspended(run: RunPolicy, observed: Observed) -> bool:
    """Whether the job is suspended, and its status says so."""
    return run.suspended and observed.status.is_true(Type.SUSPENDED)


def wants_workers(spec: JobSpec, observed: Observed) -> bool:
    """
    Whether the job should have workers. They never end by themselves, so cleanPodPolicy Running deletes them all.

    A finished job keeps its workers only with cleanPodPolicy None, and never gets new ones.
    """
    if observed.written_end is None:
        return spec.has_workers and not is_suspended(spec.run, observed)
    has_some = bool(observed.workers) or kinds.STATEFUL_SET in observed.mine
    return spec.run.clean is CleanPods.NONE and spec.has_workers and has_some


def launcher_cleanup(run: RunPolicy, observed: Observed) -> list[Action]:
    """Return the deletions of the launchers' pods if the policy is All. The Job stays: it shows how it ended."""
    if observed.written_end is None or run.clean is not CleanPods.ALL:
        return []
    return [
        Delete(kinds.POD, pod.name, pod.uid, "the job has finished and cleanPodPolicy is All")
        for pod in (*observed.launchers, *observed.kept_launchers)
        if pod.deleted is None
    ]


def expiry(run: RunPolicy, end: JobEnd | None) -> datetime | None:
    """Return when the TTL of a finished job expires; None if it has none or has not finished."""
    if end is None or end.at is None or run.ttl is None:
        return None
    return end.at + timedelta(seconds=run.ttl)


# A Job and its pod arrive by separate watches, in any order. An end is reported once, together with its cause.
CAUSE_WITHIN = timedelta(seconds=5)
# From the end of the last container until its kubelet has reported it and the Job is marked as finished.
END_WITHIN = timedelta(seconds=15)
# How long the workers' kubelets have to report what ended together with a launcher that has not reported how its
# commands have ended; and how long if it had lost a connection right before, to a worker that died, or because the
# API server was away; or if mpiexec of MPICH has not waited for its proxies.
WORD_WITHIN = timedelta(seconds=3)
WORD_OF_UNHEARD = timedelta(seconds=30)


DEADLINE = "activeDeadlineSeconds"
"""The field of a launcher Job."""
_CREATED = "creationTimestamp"


def awaited(spec: JobSpec | None, run: RunPolicy, observed: Observed) -> datetime | None:
    """
    Return until when an end is held back; None if it is not.

    Because the Job or its pod does not show it yet, or a worker may have been lost.
    """
    end = observed.end
    if end is not None and end.succeeded:
        return None if spec is None else _believed_at(spec, observed, end)
    if end is None and run.suspended:
        # The launcher Job is about to be deleted, and its end does not count any more.
        return None
    if end is None:
        since, within = _over_since(observed), END_WITHIN
    else:
        since, within = _unexplained_since(observed, end), CAUSE_WITHIN
    return None if since is None else since + within


def due(run: RunPolicy, observed: Observed) -> datetime | None:
    """Return when activeDeadlineSeconds is over, if it is set. It includes the time spent waiting for workers."""
    started = observed.status.started
    if run.deadline is None or run.suspended or started is None or observed.status.is_finished:
        return None
    return started + timedelta(seconds=run.deadline)


def is_overdue(run: RunPolicy, observed: Observed) -> bool:
    """Whether activeDeadlineSeconds is over."""
    deadline = due(run, observed)
    return deadline is not None and deadline <= observed.now


def patience_ends(run: RunPolicy, observed: Observed) -> datetime | None:
    """Return until when the job may wait for its workers; None if it has a launcher, or may wait for ever."""
    status = observed.status
    if run.patience is None or run.suspended or status.started is None or status.is_finished:
        return None
    if kinds.JOB in observed.mine or status.is_true(Type.RUNNING):
        return None
    running = status.conditions.get(Type.RUNNING)
    since = status.started if running is None else max(status.started, running.changed)
    return since + timedelta(seconds=run.patience)


def deadline_left(run: RunPolicy, observed: Observed) -> int | None:
    """
    Return the deadline of the launcher Job: Kubernetes counts from the Job's own start, not from the job's.

    It is set long before it is over: a change right then may cost the Job the reason of its end.
    """
    job, started = observed.live(kinds.JOB), observed.status.started
    since = None if job is None else moment(job.status, "startTime") or moment(job.body["metadata"], _CREATED)
    if run.deadline is None or job is None or started is None or since is None:
        return run.deadline
    left = max(1, run.deadline - max(0, int((since - started).total_seconds())))
    before = number(job.spec, DEADLINE)
    # Kubernetes' times are in whole seconds.
    return before if before and abs(before - left) <= 1 else left


def _believed_at(spec: JobSpec, observed: Observed, end: JobEnd) -> datetime | None:
    """Return until when a node may still report that a worker was lost, which would make the success none."""
    if observed.is_over or not spec.needs_every_worker:
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
    return None if observed.is_over or is_seen else end.at


def _over_since(observed: Observed) -> datetime | None:
    """Return when the launcher's pod ended, if its Job does not show that yet, and no other attempt follows."""
    if not observed.launchers or observed.live(kinds.JOB) is None or observed.failure is not None:
        return None
    last = observed.launchers[-1]
    return last.ended if last.is_over else None


def plan_at_limit(
    dialect: Dialect,
    run: RunPolicy,
    observed: Observed,
    *,
    spec: JobSpec | None = None,
    problem: str = "",
) -> Plan | None:
    """
    Return the plan for a job one of whose limits is reached: it is deleted, or it fails; None if it may go on.

    A deadline and a patience end it here only without a launcher Job: Kubernetes enforces the deadline of that. A
    lost patience is said first where Arena looks for it. `problem`: what is invalid in the job, if it has no spec.
    """
    expires = expiry(run, observed.end)
    # The end is reported before the job is deleted, however short its TTL is.
    if expires is not None and expires <= observed.now and observed.status.is_finished:
        owner, why = observed.owner, f"ttlSecondsAfterFinished={run.ttl} has expired"
        return Plan((Delete(owner.kind, owner.key.name, owner.uid, why),))
    if observed.end is not None or (kinds.JOB in observed.mine and observed.failure is None):
        return None
    patience = patience_ends(run, observed)
    if is_overdue(run, observed):
        reason, said = Reason.DEADLINE, f"the job was active longer than activeDeadlineSeconds={run.deadline}"
    elif patience is not None and patience <= observed.now:
        reason = Reason.NO_PATIENCE
        said = f"the job waited longer than {PATIENCE_ANNOTATION}={run.patience} for its workers"
        if not run.gave_up:
            return Plan((_gave_up(observed, {"op": "add", "value": GAVE_UP}, why=said),))
    else:
        return None
    said = f"{said}; {problem if spec is None else readiness(spec, observed)}"
    status = failed_status(reason, said, observed, history(spec, observed))
    return Plan(tuple(status_actions(dialect.write_status, spec, observed, status)[0]))


def next_limit(run: RunPolicy, observed: Observed) -> datetime | None:
    """Return when the next of the job's limits is reached; a deadline that is over has had its effect."""
    deadline = None if is_overdue(run, observed) else due(run, observed)
    return earliest(expiry(run, observed.end), patience_ends(run, observed), deadline)


def no_longer_given_up(spec: JobSpec, observed: Observed) -> list[Action]:
    """Return the change of a job that runs again after it had lost its patience."""
    if not spec.run.gave_up or observed.status.is_finished:
        return []
    return [_gave_up(observed, {"op": "remove"}, why="the job runs again")]


def _gave_up(observed: Observed, change: Operation, *, why: str) -> Patch:
    path = pointer("metadata", "annotations", GAVE_UP_ANNOTATION)
    owner = observed.owner
    return Patch(owner.kind, owner.key.name, (is_object(owner.uid), {**change, "path": path}), why)
