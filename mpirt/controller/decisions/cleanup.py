"""
What is left of a job that is over.

Owns: the decisions which pods go by the clean-up policy, and when the job itself goes.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete
from mpirt.controller.model.spec import CleanPods, JobSpec
from mpirt.controller.observed.facts import JobEnd
from mpirt.controller.observed.observe import Observed


def wants_workers(spec: JobSpec, observed: Observed, end: JobEnd | None) -> bool:
    """
    Whether there are to be workers. They never end by themselves, so cleanPodPolicy Running means all of them.

    Of a job that is over none are made again.
    """
    if end is None:
        return spec.has_workers and not spec.run.suspended
    return spec.run.clean is CleanPods.NONE and spec.has_workers and kinds.STATEFUL_SET in observed.mine


def launcher_cleanup(spec: JobSpec, observed: Observed, end: JobEnd | None) -> list[Action]:
    """The launcher's pods, where they are to go. The Job stays: it tells how the job ended."""
    if end is None or spec.run.clean is not CleanPods.ALL:
        return []
    return [
        Delete(kinds.POD, pod.name, pod.uid, "the job has finished and cleanPodPolicy is All")
        for pod in observed.launchers
        if pod.deleted is None
    ]


def expiry(spec: JobSpec, end: JobEnd | None) -> datetime | None:
    """When the job is to be deleted."""
    if end is None or end.at is None or spec.run.ttl is None:
        return None
    return end.at + timedelta(seconds=spec.run.ttl)
