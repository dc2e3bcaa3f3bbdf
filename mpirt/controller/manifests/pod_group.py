"""
The PodGroup, by which a gang scheduler starts the launcher and the workers together or not at all.

Owns: the object, and how a pod belongs to it. All of it is absent unless the controller was started with a gang
scheduler. A template that names another scheduler keeps it, and its pods are no members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mpirt.controller.manifests.launcher import launcher_template
from mpirt.controller.manifests.pods import gang_of
from mpirt.controller.manifests.supporting import head
from mpirt.controller.manifests.workers import worker_template
from mpirt.controller.model import kinds
from mpirt.controller.model.kinds import GangScheduler
from mpirt.controller.model.quantities import greatest, total
from mpirt.controller.model.spec import JobSpec, Scheduling, Settings

_NO_POLICY = Scheduling()


def pod_group(spec: JobSpec, settings: Settings, gang: GangScheduler, least: int) -> dict[str, Any]:
    """Return the job's PodGroup, of which at least `least` members start together."""
    policy = spec.scheduling or _NO_POLICY
    own = _of_volcano(spec, policy) if gang.is_volcano else _of_plugin(policy)
    resources = dict(policy.resources) or _requests(spec, settings, least)
    return {
        **head(spec, kinds.POD_GROUP, api_version=gang.groups.api_version),
        "spec": {"minMember": least, **({"minResources": resources} if resources else {}), **own},
    }


def least_members(spec: JobSpec, settings: Settings) -> int:
    """Return how many members have to start together: 0 if the job has no group."""
    if gang_of(spec, spec.workers.template, settings) is None:
        return 0
    launchers = _launchers(spec, settings)
    asked = spec.scheduling.least if spec.scheduling else None
    wanted = spec.workers.needed + launchers if asked is None else asked
    return min(wanted, spec.workers.replicas + launchers)


def _launchers(spec: JobSpec, settings: Settings) -> int:
    """Return how many launchers are members: one or none."""
    return int(gang_of(spec, spec.launcher.template, settings) is not None)


def _of_volcano(spec: JobSpec, policy: Scheduling) -> dict[str, Any]:
    queue = policy.queue or policy.default_queue
    classes = (spec.launcher.template.spec, spec.workers.template.spec)
    own = (str(pod.get("priorityClassName") or "") for pod in classes)
    priority = policy.priority_class or next(filter(None, own), "")
    return {
        **({"queue": queue} if queue else {}),
        **({"priorityClassName": priority} if priority else {}),
    }


def _of_plugin(policy: Scheduling) -> dict[str, Any]:
    # mpi-operator writes 0 where nothing is set: the plugin then rejects a waiting member at once.
    return {"scheduleTimeoutSeconds": policy.timeout} if policy.timeout else {}


def _requests(spec: JobSpec, settings: Settings, least: int) -> dict[str, str]:
    """Return what the first members request: the launcher, then workers."""
    launchers = _launchers(spec, settings)
    members = [pod_requests(launcher_template(spec, settings)["spec"])] * launchers
    members += [pod_requests(worker_template(spec, settings)["spec"])] * (least - launchers)
    return _sum(members)


def pod_requests(pod: Mapping[str, Any]) -> dict[str, str]:
    """
    Return what a pod needs to be scheduled.

    That is what its containers request together, with the sidecars, or one of its init containers with the
    sidecars before it, if that is more; and the overhead.
    """
    sidecars: list[Mapping[str, str]] = []
    starts: list[dict[str, str]] = []
    for container in pod.get("initContainers") or []:
        asked = _asked(container)
        if container.get("restartPolicy") == "Always":
            sidecars.append(asked)
        else:
            starts.append(_sum([*sidecars, asked]))
    runs = _sum([*sidecars, *(_asked(one) for one in pod["containers"])])
    most = {name: greatest(one[name] for one in (runs, *starts) if name in one) for name in _names(runs, *starts)}
    overhead = {name: str(value) for name, value in (pod.get("overhead") or {}).items()}
    return _sum([most, overhead])


def _asked(container: Mapping[str, Any]) -> dict[str, str]:
    """Return a container's requests; where it sets only a limit, that is its request, too."""
    resources = container.get("resources") or {}
    found = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: str(value) for name, value in found.items() if value is not None}


def _sum(found: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {name: total(one[name] for one in found if name in one) for name in _names(*found)}


def _names(*found: Mapping[str, str]) -> Iterator[str]:
    yield from sorted({name for one in found for name in one})
