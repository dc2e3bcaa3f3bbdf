"""
What a gang scheduler changes for a job.

Owns: which of the job's scheduling settings have an effect, and when its launcher is created. A gang contains the
launcher, so its pod has to exist from the start: it waits for the workers in an init container. Otherwise the
workers would wait for its pod, and it for Ready workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mpirt.controller.manifests.pod_group import least_members, pod_group
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Manifest
from mpirt.controller.model.gangs import VOLCANO, GangScheduler
from mpirt.controller.model.reading import number, table
from mpirt.controller.model.spec import Creation, JobSpec, Scheduling, Settings
from mpirt.controller.observed.observe import Observed

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
    Return how many members have to start together now.

    While the launcher runs, the number does not grow: members that are recreated would have to wait for those with
    which the job is scaled up.
    """
    live = observed.live(kinds.POD_GROUP)
    if live is None or not any(pod.phase == "Running" for pod in observed.launchers):
        return least
    before = number(table(live.body, "spec"), "minMember")
    return min(least, before) if before > 0 else least


def _without_effect(spec: JobSpec, policy: Scheduling, settings: Settings) -> Iterator[str]:
    """Yield a sentence for each setting that has no effect, beginning with its path."""
    gang, is_member = settings.gang_scheduler, least_members(spec, settings) > 0
    for name in _given(policy):
        if why := _why_unused(name, gang, is_member=is_member):
            yield f"{_POLICY}.{name}: has no effect: {why}"


def _given(policy: Scheduling) -> list[str]:
    given = {
        "minAvailable": policy.least,
        "queue": policy.queue,
        "minResources": policy.resources,
        "scheduleTimeoutSeconds": policy.timeout,
    }
    return [name for name, value in given.items() if value]


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
