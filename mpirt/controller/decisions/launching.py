"""
When the launcher is made, replaced, held back and removed.

Owns: the decision about the launcher Job. Two launchers of a job never run at a time: one that is replaced goes
first with all its pods, and one that is made while pods of an earlier one are still ending is held back until they
are gone.
"""

from __future__ import annotations

from mpirt.controller.decisions.drift import correction
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.messages.causes import STOPS
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete
from mpirt.controller.model.digests import digest
from mpirt.controller.model.spec import Creation, JobSpec, Settings
from mpirt.controller.observed.facts import job_end, outdated
from mpirt.controller.observed.observe import Live, Observed


def launcher_actions(spec: JobSpec, observed: Observed, settings: Settings, workers: Readiness) -> list[Action]:
    """What is to be done about the launcher Job and pods that earlier ones left."""
    job = observed.mine.get(kinds.JOB)
    if job_end(observed) is not None or (job is not None and job.deleting):
        return []
    if spec.run.suspended:
        return [_removal(job, "the job is suspended")] if job is not None else []
    held = any(not pod.is_over for pod in observed.previous_launchers)
    wanted = launcher_job(spec, settings, held=held)
    if job is None:
        made = [Create(wanted, _why(spec, workers), digest(wanted))] if _is_time(spec, workers) else []
        return [*_ended_previous(observed), *made]
    if reason := outdated(spec, job):
        return [_removal(job, STOPS[reason])]
    changed = correction(wanted, job)
    return [] if changed is None else [changed]


def _is_time(spec: JobSpec, workers: Readiness) -> bool:
    return spec.launcher.creation is Creation.AT_STARTUP or workers.ready >= spec.workers.needed


def _why(spec: JobSpec, workers: Readiness) -> str:
    return str(workers) if spec.launcher.creation is Creation.WHEN_READY else "launcherCreationPolicy is AtStartup"


def _removal(job: Live, why: str) -> Delete:
    return Delete(kinds.JOB, job.name, job.uid, why, foreground=True)


def _ended_previous(observed: Observed) -> list[Action]:
    """Pods whose Job was deleted without them."""
    return [
        Delete(kinds.POD, pod.name, pod.uid, "its launcher Job was deleted")
        for pod in observed.previous_launchers
        if not pod.is_over and pod.deleted is None
    ]
