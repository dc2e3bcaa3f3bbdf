"""
Clean-up of a finished or suspended job.

Owns: the decisions which pods cleanPodPolicy deletes, and when the job itself is deleted. Nothing is deleted
before the status says why: to a controller that comes later, a deletion would look like the cause of the end.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete
from mpirt.controller.model.conditions import Type
from mpirt.controller.model.spec import CleanPods, JobSpec, RunPolicy
from mpirt.controller.observed.facts import JobEnd, is_over, job_end
from mpirt.controller.observed.observe import Observed


def written_end(observed: Observed) -> JobEnd | None:
    """Return how the job ended, once its status says that; None before."""
    return job_end(observed) if is_over(observed) else None


def is_suspended(run: RunPolicy, observed: Observed) -> bool:
    """Whether the job is suspended, and its status says so."""
    return run.suspended and observed.status.is_true(Type.SUSPENDED)


def wants_workers(spec: JobSpec, observed: Observed) -> bool:
    """
    Whether the job should have workers. They never end by themselves, so cleanPodPolicy Running deletes them all.

    A finished job keeps its workers only with cleanPodPolicy None, and never gets new ones.
    """
    if written_end(observed) is None:
        return spec.has_workers and not is_suspended(spec.run, observed)
    has_some = bool(observed.workers) or kinds.STATEFUL_SET in observed.mine
    return spec.run.clean is CleanPods.NONE and spec.has_workers and has_some


def launcher_cleanup(run: RunPolicy, observed: Observed) -> list[Action]:
    """Return the deletions of the launcher's pods if the policy is All. The Job stays: it shows how it ended."""
    if written_end(observed) is None or run.clean is not CleanPods.ALL:
        return []
    return [
        Delete(kinds.POD, pod.name, pod.uid, "the job has finished and cleanPodPolicy is All")
        for pod in observed.launchers
        if pod.deleted is None
    ]


def expiry(run: RunPolicy, end: JobEnd | None) -> datetime | None:
    """Return when the TTL of a finished job expires; None if it has none or has not finished."""
    if end is None or end.at is None or run.ttl is None:
        return None
    return end.at + timedelta(seconds=run.ttl)
