"""
When the launcher Job is created, replaced and deleted.

Owns: the decisions about the launcher Job. Two launchers of a job never run at the same time: one is created when
all earlier pods have ended. A launcher Job that is replaced is deleted first, once the status says why: one that
vanishes otherwise was deleted by another client.

An annotation of the launcher pod is changed after its job's list of hosts: Kubernetes looks at the ConfigMaps of a
pod once a minute, but at once when the pod itself has changed.
"""

from __future__ import annotations

from dataclasses import replace

from mpirt.controller.decisions.drift import correction, owner_correction
from mpirt.controller.decisions.lost_nodes import forced_deletions
from mpirt.controller.decisions.retries import cleared
from mpirt.controller.decisions.run_policy import deadline_left, is_suspended
from mpirt.controller.manifests.config_map import HOSTFILE, files
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.supporting import owner_reference
from mpirt.controller.messages.causes import STOPS
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete, Find, Manifest, Patch, Plan, is_object, pointer
from mpirt.controller.model.attempts import Stop
from mpirt.controller.model.conditions import Type
from mpirt.controller.model.objectnames import HOSTS_ANNOTATION, object_name
from mpirt.controller.model.reading import digest, table, text
from mpirt.controller.model.spec import Creation, JobSpec, Settings
from mpirt.controller.observed.facts import RUN, Live, Observed, is_outdated, outdated
from mpirt.controller.scaling.worker_actions import all_deletions


def launcher_actions(spec: JobSpec, observed: Observed, settings: Settings, workers: Readiness) -> list[Action]:
    """Return the actions on the launcher Job, and on the pods that previous ones left behind."""
    job = observed.mine.get(kinds.JOB)
    if job is not None and job.deleting:
        return []
    if observed.end is not None:
        # Of a finished launcher Job only the owner reference still matters.
        return [] if job is None else _if_any(owner_correction(owner_reference(spec.owner), job))
    if job is None:
        awaits_verdict = observed.failure is not None and observed.written_failure != observed.failure
        return [] if spec.run.suspended or awaits_verdict else _made(spec, observed, settings, workers)
    if (stop := _stop(spec, observed, job)) is not None:
        return [removal(job, STOPS[stop])] if _is_written(stop, spec, observed) else []
    if observed.failure is not None:
        return cleared(observed, job)
    return _if_any(correction(wanted_launcher(spec, observed, settings), job))


def wanted_launcher(spec: JobSpec, observed: Observed, settings: Settings) -> Manifest:
    """Return the launcher Job, with what is left of the job's deadline."""
    left = deadline_left(spec.run, observed)
    # A copy of the spec would compute the digests of its templates again, in each plan.
    lasting = spec if left == spec.run.deadline else replace(spec, run=replace(spec.run, deadline=left))
    return launcher_job(lasting, settings)


def _if_any(action: Action | None) -> list[Action]:
    return [] if action is None else [action]


def _made(spec: JobSpec, observed: Observed, settings: Settings, workers: Readiness) -> list[Action]:
    """Return the creation of the launcher Job, or what makes way for it."""
    previous = [pod for pod in observed.previous_launchers if not pod.is_over]
    if previous:
        asked = [pod for pod in previous if pod.deleted is None]
        return [Delete(kinds.POD, pod.name, pod.uid, "its launcher Job was deleted") for pod in asked]
    if not is_time(spec, workers) or observed.paused_until is not None or _has_old_workers(spec, observed):
        return []
    wanted = wanted_launcher(spec, observed, settings)
    return [Create(with_hosts(wanted, spec), str(workers), digest(wanted))]


def _stop(spec: JobSpec, observed: Observed, job: Live) -> Stop | None:
    """Return why a launcher Job that has not ended is removed; None if it is not."""
    if spec.run.suspended:
        return Stop.SUSPENDED
    return outdated(spec, job) if observed.failure is None else None


def _is_written(stop: Stop, spec: JobSpec, observed: Observed) -> bool:
    """Whether the status says that the launcher runs no more, and why."""
    if stop is Stop.SUSPENDED:
        return is_suspended(spec.run, observed)
    return not observed.status.is_true(Type.RUNNING)


def is_time(spec: JobSpec, workers: Readiness) -> bool:
    """Whether enough workers are Ready for the launcher to be created."""
    return spec.launcher.creation is Creation.AT_STARTUP or workers.ready >= spec.workers.needed


def removal(job: Live, why: str) -> Delete:
    """Return the deletion of the launcher Job, which stays visible until its pods are gone."""
    return Delete(kinds.JOB, job.name, job.uid, why, foreground=True)


def _has_old_workers(spec: JobSpec, observed: Observed) -> bool:
    """Whether pods have the names of workers and are about to be replaced: commands might be started in them."""
    if not spec.starts_before_workers:
        return False
    known = [pod for pod in observed.workers if pod.template]
    return bool(observed.previous_workers) or any(is_outdated(pod, spec) for pod in known)


_POINTER = pointer("metadata", "annotations", HOSTS_ANNOTATION)
# One digest for all of these patches: if one pod may not be changed, none may.
_QUESTION = digest(HOSTS_ANNOTATION)


def with_hosts(job: Manifest, spec: JobSpec) -> Manifest:
    """Return the launcher Job whose pods are annotated with the current hosts. Scaling does not change it."""
    template = job["spec"]["template"]
    annotations = {**template["metadata"]["annotations"], HOSTS_ANNOTATION: _hosts_digest(spec)}
    annotated = {**template, "metadata": {**template["metadata"], "annotations": annotations}}
    return {**job, "spec": {**job["spec"], "template": annotated}}


def refreshed_launchers(spec: JobSpec, observed: Observed) -> list[Patch]:
    """
    Return the changes of launcher pods whose annotation names an earlier list of hosts than the ConfigMap has.

    A pod without the annotation, which another client has removed, sees a new list within a minute.
    """
    live, wanted = observed.live(kinds.CONFIG_MAP), _hosts_digest(spec)
    if live is None or any(rejection.digest == _QUESTION for rejection in observed.rejections):
        return []
    if text(table(live.body, "data"), HOSTFILE) != digest(files(spec)[HOSTFILE]):
        return []
    change = {"op": "replace", "path": _POINTER, "value": wanted}
    return [
        Patch(kinds.POD, pod.name, (is_object(pod.uid), change), "the list of hosts has changed", _QUESTION)
        for pod in observed.launchers
        if pod.hosts and pod.hosts != wanted and not pod.is_over and pod.deleted is None
    ]


def _hosts_digest(spec: JobSpec) -> str:
    return digest(*spec.workers.hosts)


def plan_of_missed(observed: Observed) -> Plan | None:
    """Return the plan that looks for a launcher Job which should be there, and isn't; None if none is missed."""
    if observed.gone_job is not None or not observed.is_missed or observed.status.is_finished:
        return None
    name = object_name(kinds.JOB, observed.owner.key.name)
    return Plan((Find(kinds.JOB, name, "the launcher Job has vanished"),))


def plan_of_rerun(observed: Observed) -> Plan:
    """Return the plan that prepares a rerun: delete the finished run with its pods, also those on lost nodes."""
    why = "a rerun was requested"
    before = [live for kind in RUN if (live := observed.live(kind)) is not None]
    removed = (Delete(one.kind, one.name, one.uid, why, foreground=True) for one in before)
    kept = (pod for pod in observed.kept_launchers if pod.deleted is None)
    launchers = (Delete(kinds.POD, pod.name, pod.uid, why) for pod in kept)
    workers = all_deletions(observed) if observed.status.roster is not None else []
    healed, heal_again = forced_deletions(observed)
    return Plan((*removed, *launchers, *workers, *healed), heal_again)
