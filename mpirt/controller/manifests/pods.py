"""
Pod templates: the user's, with what the job needs added.

Owns: adding to a template without removing anything. What the user has set stays: if the user sets a variable of
the same name as ours, ours is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mpirt import names
from mpirt.controller.manifests import config_map as config
from mpirt.controller.model import kinds
from mpirt.controller.model.kinds import GangScheduler
from mpirt.controller.model.objectnames import object_name
from mpirt.controller.model.spec import JobSpec, Settings, Template

CONFIG_VOLUME = "mpi-job-config"

_EXECUTABLE = 0o555
_READABLE = 0o444
_MODES = {config.HOSTFILE: _READABLE, config.DEEPSPEED_HOSTFILE: _READABLE}


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


def config_volume(spec: JobSpec, files: Mapping[str, str], *, volume: str = CONFIG_VOLUME) -> dict[str, Any]:
    """Return a volume with files of the job's ConfigMap, names by keys, readable by any user of the pod."""
    return {"name": volume, "configMap": _config_files(spec, files)}


def config_volume_with(spec: JobSpec, files: Mapping[str, str], optional: Iterable[str]) -> dict[str, Any]:
    """
    Return the same volume with `optional` programs added: pods start without them, too.

    Another version of the controller may remove them from the ConfigMap while pods of this template are recreated.
    """
    others = {**_config_files(spec, {key: key for key in optional}), "optional": True}
    sources = [_config_files(spec, files), others]
    return {"name": CONFIG_VOLUME, "projected": {"sources": [{"configMap": source} for source in sources]}}


def _config_files(spec: JobSpec, files: Mapping[str, str]) -> dict[str, Any]:
    items = [{"key": key, "path": name, "mode": _MODES.get(key, _EXECUTABLE)} for key, name in files.items()]
    return {"name": object_name(kinds.CONFIG_MAP, spec.key.name), "items": items}


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


def group_labels(spec: JobSpec, template: Template, settings: Settings) -> Mapping[str, str]:
    """Return the labels by which a pod is a member of the job's PodGroup."""
    gang = gang_of(spec, template, settings)
    return {} if gang is None else gang.labels(object_name(kinds.POD_GROUP, spec.key.name))


def group_annotations(spec: JobSpec, template: Template, settings: Settings) -> Mapping[str, str]:
    """Return the annotations by which a pod is a member of the job's PodGroup."""
    gang = gang_of(spec, template, settings)
    return {} if gang is None else gang.annotations(object_name(kinds.POD_GROUP, spec.key.name))


def scheduler(spec: JobSpec, template: Template, settings: Settings) -> dict[str, str]:
    """Return the gang scheduler's name for the pods of a PodGroup."""
    gang = gang_of(spec, template, settings)
    return {} if gang is None else {"schedulerName": gang.name}


def role_variable(role: str) -> dict[str, str]:
    """Return the variable that tells programs in the pod whether it is a launcher or a worker."""
    return {names.KUBEFLOW_ROLE_VARIABLE: role}
