"""
Pod templates: the user's, with what the job needs added.

Owns: adding to a template without removing anything. What the user has set stays: if the user sets a variable of
the same name as ours, or a toleration for the same taint, ours is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mpirt.controller.model import kinds
from mpirt.controller.model.kinds import GangScheduler
from mpirt.controller.model.objectnames import object_name
from mpirt.controller.model.reading import rows, text
from mpirt.controller.model.spec import JobSpec, Settings, Template

# Longer than most nodes take to restart their kubelet or their network, but short for a job that waits.
TOLERATED_SECONDS = 60
# The taints of a node that reports that it can't run pods, or that is unreachable.
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EFFECT = "NoExecute"


def pod_template(
    template: Template, *, labels: Mapping[str, str], annotations: Mapping[str, str], spec: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a pod template with this spec; labels and annotations of ours override the user's."""
    metadata = {
        "labels": {**template.labels, **labels},
        "annotations": {**template.annotations, **annotations},
    }
    return {"metadata": metadata, "spec": dict(spec)}


def with_main(template: Template, main: Mapping[str, Any]) -> list[Any]:
    """Return the template's containers, with `main` in place of the main container."""
    return [main if one["name"] == template.main else one for one in template.spec["containers"]]


def main_container(template: Template) -> dict[str, Any]:
    """The container that runs the MPI."""
    return next(dict(one) for one in template.spec["containers"] if one["name"] == template.main)


def containers_beside(template: Template) -> list[dict[str, Any]]:
    """The containers that run beside the main one."""
    return [dict(one) for one in template.spec["containers"] if one["name"] != template.main]


def extended(
    container: Mapping[str, Any], *, env: Mapping[str, str], mounts: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the container with the variables that it does not set yet, and the mounts added."""
    given = container.get("env") or []
    taken = {one["name"] for one in given}
    return {
        **container,
        "env": [*given, *({"name": name, "value": text} for name, text in env.items() if name not in taken)],
        "volumeMounts": [*(container.get("volumeMounts") or []), *mounts],
    }


def dns_policy(pod: Mapping[str, Any]) -> dict[str, str]:
    """Return a policy by which pods on the host's network use the cluster's DNS, unless the user sets another."""
    if pod.get("hostNetwork") and pod.get("dnsPolicy") in (None, "", "ClusterFirst"):
        return {"dnsPolicy": "ClusterFirstWithHostNet"}
    return {}


def with_search(pod: Mapping[str, Any], domain: str) -> dict[str, Any]:
    """Return the pod's DNS settings with one more search domain."""
    given: Mapping[str, Any] = pod.get("dnsConfig") or {}
    searches: Sequence[str] = given.get("searches") or []
    return {**given, "searches": [*searches, *([] if domain in searches else [domain])]}


def priority(spec: JobSpec, pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the scheduling policy's priority class, if the template has none."""
    if spec.scheduling and spec.scheduling.priority_class and not pod.get("priorityClassName"):
        return {"priorityClassName": spec.scheduling.priority_class}
    return {}


def gang_of(spec: JobSpec, template: Template, settings: Settings) -> GangScheduler | None:
    """Return the gang scheduler whose PodGroup the template's pods are members of; None if they are of none."""
    gang = settings.gang_scheduler
    if gang is None or not spec.has_workers:
        return None
    # Without the workers there is no group; a template that names another scheduler keeps it.
    asked = {each.spec.get("schedulerName") or gang.name for each in (spec.workers.template, template)}
    return gang if asked == {gang.name} else None


def membership(
    spec: JobSpec, template: Template, settings: Settings
) -> tuple[Mapping[str, str], Mapping[str, str], dict[str, str]]:
    """Return the labels, annotations and fields of a member of the job's PodGroup; empty for other pods."""
    gang = gang_of(spec, template, settings)
    if gang is None:
        return {}, {}, {}
    name = object_name(kinds.POD_GROUP, spec.key.name)
    return gang.labels(name), gang.annotations(name), {"schedulerName": gang.name}


def with_tolerations(pod: Mapping[str, Any]) -> list[Any]:
    """Return the tolerations of a pod spec, and ours for the taints of lost nodes that they don't cover."""
    ours = [
        {"key": key, "operator": "Exists", "effect": _EFFECT, "tolerationSeconds": TOLERATED_SECONDS}
        for key in _TAINTS
        if not _is_about(pod, key)
    ]
    return [*(pod.get("tolerations") or []), *ours]


def _is_about(pod: Mapping[str, Any], key: str) -> bool:
    """Whether a toleration covers the taint, by Kubernetes' own rule: key and effect match, or are empty."""
    return any(
        text(row, "key") in (key, "") and text(row, "effect") in (_EFFECT, "") for row in rows(pod, "tolerations")
    )
