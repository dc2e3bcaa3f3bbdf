"""
The objects that a job should have, but for its pods and its launcher Job, in the order of their creation.

Owns: when a job has a PodDisruptionBudget, what a gang scheduler changes for it, and whom its Role names. No I/O,
no clock.

The budget refuses every eviction of a worker, so it blocks a drain until the controller has moved the workers. It
exists only while the controller does that: not when the job is over, and not while the controller can't see which
nodes are cordoned, or can't act on the job.

A gang contains the launcher, so its pod has to exist from the start: it waits for the workers in an init
container. Otherwise the workers would wait for its pod, and it for Ready workers.

A right by name is a right in whatever pod has the name, so the Role names only pods that the job owns. A
StatefulSet gives a pod's name to the next one within milliseconds, also while no controller runs. So a name stays
while the job runs, unless the StatefulSet can't create that pod: another one may have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mpirt.controller.decisions.launching import is_time
from mpirt.controller.decisions.run_policy import wants_workers
from mpirt.controller.dialects.training_job import LEAVE_CORDONED_ANNOTATION
from mpirt.controller.manifests.config_map import config_map, keepers_for_nodes
from mpirt.controller.manifests.pod_group import least_members, pod_group
from mpirt.controller.manifests.supporting import (
    disruption_budget,
    own_account,
    role,
    role_binding,
    service,
    service_account,
)
from mpirt.controller.manifests.workers import stateful_set
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Delete, Manifest
from mpirt.controller.model.attempts import History, dump_history
from mpirt.controller.model.kinds import VOLCANO, GangScheduler
from mpirt.controller.model.objectnames import HISTORY_ANNOTATION, worker_number
from mpirt.controller.model.reading import number
from mpirt.controller.model.spec import Creation, JobSpec, Scheduling, Settings
from mpirt.controller.observed.facts import JobEnd, Observed, is_dead
from mpirt.controller.observed.pods import why_not_created
from mpirt.controller.observed.slim import named_workers
from mpirt.controller.scaling.worker_actions import replicas_now

_UNSEEN = (
    f"metadata.annotations[{LEAVE_CORDONED_ANNOTATION}]: has no effect: the controller may not list nodes, "
    "so evictions are not refused"
)


def as_nodes_are_seen(spec: JobSpec, observed: Observed) -> JobSpec:
    """Return the spec whose workers stay on cordoned nodes, with a notice, if the controller can't see nodes."""
    if not spec.workers.leave_cordoned or observed.sees_nodes:
        return spec
    return replace(spec, workers=replace(spec.workers, leave_cordoned=False), notices=(*spec.notices, _UNSEEN))


def wanted_budget(spec: JobSpec, end: JobEnd | None, *, has_workers: bool) -> list[Manifest]:
    """Return the budget of a job that needs one."""
    return [disruption_budget(spec)] if spec.workers.leave_cordoned and has_workers and end is None else []


def budget_removal(observed: Observed) -> list[Delete]:
    """Return the deletion of the budget, if there is one."""
    live = observed.live(kinds.DISRUPTION_BUDGET)
    why = "the controller can't move the workers, so evictions are not refused"
    return [] if live is None else [Delete(live.kind, live.name, live.uid, why)]


_POLICY = "spec.runPolicy.schedulingPolicy"


def with_gang(spec: JobSpec, settings: Settings) -> JobSpec:
    """Return the spec as the gang scheduler has it carried out, with notices about what it does not use."""
    ignored = [] if spec.scheduling is None else list(_without_effect(spec, spec.scheduling, settings))
    spec = replace(spec, notices=(*spec.notices, *ignored)) if ignored else spec
    if not least_members(spec, settings):
        return spec
    return replace(spec, launcher=replace(spec.launcher, creation=Creation.AT_STARTUP))


def wanted_group(spec: JobSpec, observed: Observed, settings: Settings) -> list[Manifest]:
    """Return the PodGroup of a job that needs one."""
    gang, least = settings.gang_scheduler, least_members(spec, settings)
    return [] if gang is None or not least else [pod_group(spec, settings, gang, _now(least, observed))]


def _now(least: int, observed: Observed) -> int:
    """
    Return how many members have to start together observed.now.

    While the launcher runs, the number does not grow: members that are recreated would have to wait for those with
    which the job is scaled up.
    """
    live = observed.live(kinds.POD_GROUP)
    if live is None or not any(pod.phase == "Running" for pod in observed.launchers):
        return least
    before = number(live.spec, "minMember")
    return min(least, before) if before > 0 else least


def _without_effect(spec: JobSpec, policy: Scheduling, settings: Settings) -> Iterator[str]:
    """Yield a sentence for each setting that has no effect, beginning with its path."""
    gang, is_member = settings.gang_scheduler, least_members(spec, settings) > 0
    given = {
        "minAvailable": policy.least,
        "queue": policy.queue,
        "minResources": policy.resources,
        "scheduleTimeoutSeconds": policy.timeout,
    }
    for name, value in given.items():
        if value and (why := _why_unused(name, gang, is_member=is_member)):
            yield f"{_POLICY}.{name}: has no effect: {why}"


def _why_unused(name: str, gang: GangScheduler | None, *, is_member: bool) -> str:
    if gang is None:
        return "the controller runs without --gang-scheduling"
    if not is_member:
        return f"the workers are not scheduled by {gang.name}"
    if name == "queue" and not gang.is_volcano:
        return f"only Volcano has queues, and the job is scheduled by {gang.name}"
    if name == "scheduleTimeoutSeconds" and gang.is_volcano:
        return f"{VOLCANO} does not read it"
    return ""


def launcher_rights(spec: JobSpec, observed: Observed, workers: Readiness) -> list[Manifest]:
    """Return the Role and its binding: not earlier than they are needed, since they change with each worker."""
    is_there = bool(observed.mine.keys() & {kinds.ROLE, kinds.ROLE_BINDING})
    if not (is_there or not spec.has_workers or _is_needed(spec, observed, workers)):
        return []
    return [role(spec, _may_enter(spec, observed)), role_binding(spec)]


def _is_needed(spec: JobSpec, observed: Observed, workers: Readiness) -> bool:
    """Whether a launcher may use its rights soon: one that starts before its workers takes a second for that."""
    if not spec.starts_before_workers:
        return kinds.JOB in observed.mine or is_time(spec, workers)
    is_about_to = any(pod.node for pod in observed.launchers)
    return is_about_to or observed.workers_by_name.keys() >= set(spec.workers.names)


def _may_enter(spec: JobSpec, observed: Observed) -> list[str]:
    """Return the names of the pods in which the launcher may start commands."""
    if not wants_workers(spec, observed):
        return []
    if spec.workers.bare is not None:
        # Their names are never used again.
        return [pod.name for pod in observed.workers if not is_dead(pod)]
    owned = {pod.name for pod in observed.workers}
    expected = _expected(spec, observed, owned) if observed.written_end is None else set()
    return sorted(owned | expected, key=worker_number)


def _expected(spec: JobSpec, observed: Observed, owned: set[str]) -> set[str]:
    """Return the workers that had a right and are about to be created again."""
    workers, role = observed.live(kinds.STATEFUL_SET), observed.live(kinds.ROLE)
    if workers is None or role is None:
        return set()
    absent = (named_workers(spec.key.name, role.body) & set(spec.workers.names)) - owned
    failed, made = observed.failed_creates, observed.workers
    return {name for name in absent if not why_not_created(failed, workers.uid, made, name)}


def wanted_objects(
    spec: JobSpec,
    observed: Observed,
    settings: Settings,
    workers: Readiness,
    happened: History,
) -> list[Manifest]:
    """Return the desired objects, except for the launcher Job."""
    end = observed.written_end
    has_workers = wants_workers(spec, observed)
    return [
        # The keeper's files are there only while there are workers: those of many finished jobs would fill etcd.
        _with_history(config_map(spec, keepers_for_nodes(settings) if has_workers else {}), observed, happened),
        *([] if own_account(spec) else [service_account(spec)]),
        service(spec),
        *wanted_budget(spec, end, has_workers=has_workers),
        *(wanted_group(spec, observed, settings) if has_workers and end is None else []),
        *(_stateful_set(spec, observed, settings) if has_workers and spec.workers.bare is None else []),
        *launcher_rights(spec, observed, workers),
    ]


def _stateful_set(spec: JobSpec, observed: Observed, settings: Settings) -> list[Manifest]:
    replicas, has_previous = replicas_now(spec, observed), bool(observed.previous_workers)
    is_over = observed.written_end is not None
    return [stateful_set(spec, settings, replicas=replicas, has_previous=has_previous, over=is_over)]


def _with_history(manifest: Manifest, observed: Observed, happened: History) -> Manifest:
    """Return the ConfigMap, with the history in an annotation if the CRD drops it from the status."""
    status = observed.status
    if not status.conditions or status.history is not None or happened.is_plain:
        return manifest
    metadata = {**manifest["metadata"], "annotations": {HISTORY_ANNOTATION: dump_history(happened)}}
    return {**manifest, "metadata": metadata}
