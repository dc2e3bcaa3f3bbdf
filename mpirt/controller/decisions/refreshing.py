"""
When the files of a running launcher are brought up to date.

Owns: the annotation of a launcher pod that is changed after its job's list of hosts. Kubernetes looks at the
ConfigMaps of a pod once a minute, but at once when the pod itself has changed.
"""

from __future__ import annotations

from mpirt.controller.manifests.config_map import HOSTFILE, files
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Manifest, Patch, is_object, pointer
from mpirt.controller.model.digests import digest
from mpirt.controller.model.objectnames import HOSTS_ANNOTATION
from mpirt.controller.model.reading import table, text
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.observe import Observed

_POINTER = pointer("metadata", "annotations", HOSTS_ANNOTATION)
# One digest for all of these patches: if one pod may not be changed, none may.
_QUESTION = digest(HOSTS_ANNOTATION)


def with_hosts(job: Manifest, spec: JobSpec) -> Manifest:
    """Return the launcher Job whose pods are told the list of hosts of this moment. Scaling does not change it."""
    template = job["spec"]["template"]
    annotations = {**template["metadata"]["annotations"], HOSTS_ANNOTATION: _told(spec)}
    told = {**template, "metadata": {**template["metadata"], "annotations": annotations}}
    return {**job, "spec": {**job["spec"], "template": told}}


def refreshed_launchers(spec: JobSpec, observed: Observed) -> list[Patch]:
    """
    Return the changes of launchers whose pods were told an earlier list of hosts than the ConfigMap has.

    Launchers of earlier versions have no such annotation: they see a new list within a minute.
    """
    live, wanted = observed.live(kinds.CONFIG_MAP), _told(spec)
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


def _told(spec: JobSpec) -> str:
    return digest(*spec.workers.hosts)
