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


def wants_workers(spec: JobSpec, end: JobEnd | None) -> bool:
    """Whether there are to be workers. They never end by themselves, so Running means all of them."""
    wants = not spec.run.suspended if end is None else spec.run.clean is CleanPods.NONE
    return wants and spec.has_workers


def launcher_cleanup(spec: JobSpec, observed: Observed, end: JobEnd | None) -> list[Action]:
    """The launcher's pods, where they are to go. The Job stays: without it the job would run again."""
    if end is None or spec.run.clean is not CleanPods.ALL:
        return []
    return [
        Delete(kinds.POD, pod.name, pod.uid, "the job is over: cleanPodPolicy All")
        for pod in observed.launchers
        if pod.deleted is None
    ]


def expiry(spec: JobSpec, end: JobEnd | None) -> datetime | None:
    """When the job is to be deleted."""
    if end is None or end.at is None or spec.run.ttl is None:
        return None
    return end.at + timedelta(seconds=spec.run.ttl)
