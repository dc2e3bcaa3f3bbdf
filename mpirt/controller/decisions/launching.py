"""
When the launcher Job is created, replaced, held back and deleted.

Owns: the decisions about the launcher Job. Two launchers of a job never run at the same time. A launcher Job that
is replaced is deleted first, with all its pods. One that is created while pods of a previous one are still
terminating is held back until they are gone.
"""

from __future__ import annotations

from mpirt.controller.decisions.drift import correction, owner_correction
from mpirt.controller.decisions.refreshing import with_hosts
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.meta import owner_reference
from mpirt.controller.messages.causes import STOPS
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete, Manifest
from mpirt.controller.model.attempts import Stop
from mpirt.controller.model.digests import digest
from mpirt.controller.model.spec import Creation, JobSpec, Settings
from mpirt.controller.observed.facts import job_end, outdated
from mpirt.controller.observed.observe import Live, Observed


def launcher_actions(spec: JobSpec, observed: Observed, settings: Settings, workers: Readiness) -> list[Action]:
    """Return the actions on the launcher Job, and on the pods that previous ones left behind."""
    job = observed.mine.get(kinds.JOB)
    if job is not None and job.deleting:
        return []
    if job_end(observed) is not None:
        return [] if job is None else _kept(spec, job)
    if spec.run.suspended:
        return [removal(job, "the job is suspended")] if job is not None else []
    held = any(not pod.is_over for pod in observed.previous_launchers)
    wanted = launcher_job(spec, settings, held=held)
    if job is None:
        made = Create(with_hosts(wanted, spec), _why(spec, workers), digest(wanted))
        return [*_ended_previous(observed), *([made] if _is_time(spec, workers) else [])]
    if observed.disbelieved is not None:
        # The verdict has to be in the written history first.
        is_written = observed.written_verdict == observed.disbelieved
        return [removal(job, STOPS[Stop.WORKER_LOST])] if is_written else []
    return _up_to_date(spec, job, wanted)


def _up_to_date(spec: JobSpec, job: Live, wanted: Manifest) -> list[Action]:
    """Return what brings a launcher Job that has not ended to its desired state."""
    if reason := outdated(spec, job):
        return [removal(job, STOPS[reason])]
    changed = correction(wanted, job)
    return [] if changed is None else [changed]


def _kept(spec: JobSpec, job: Live) -> list[Action]:
    """Return the correction of a finished launcher Job: only its owner reference still matters."""
    changed = owner_correction(owner_reference(spec.owner), job)
    return [] if changed is None else [changed]


def _is_time(spec: JobSpec, workers: Readiness) -> bool:
    return spec.launcher.creation is Creation.AT_STARTUP or workers.ready >= spec.workers.needed


def _why(spec: JobSpec, workers: Readiness) -> str:
    return str(workers) if spec.launcher.creation is Creation.WHEN_READY else "launcherCreationPolicy is AtStartup"


def removal(job: Live, why: str) -> Delete:
    """Return the deletion of the launcher Job, which stays visible until its pods are gone."""
    return Delete(kinds.JOB, job.name, job.uid, why, foreground=True)


def _ended_previous(observed: Observed) -> list[Action]:
    """Return the deletions of pods whose launcher Job was deleted without them."""
    return [
        Delete(kinds.POD, pod.name, pod.uid, "its launcher Job was deleted")
        for pod in observed.previous_launchers
        if not pod.is_over and pod.deleted is None
    ]
