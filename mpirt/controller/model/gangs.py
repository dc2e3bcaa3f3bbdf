"""
The gang schedulers for which the controller creates PodGroups.

Owns: the names of their API, labels and annotations. Volcano has a kind of its own; any other name is a scheduler
with the coscheduling plugin of kubernetes-sigs/scheduler-plugins, as in mpi-operator's option of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mpirt.controller.model import kinds
from mpirt.controller.model.kinds import Resource

VOLCANO = "volcano"

# A job's queue, where its spec names none.
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"

_VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
_PLUGIN_LABEL = "scheduling.x-k8s.io/pod-group"


@dataclass(frozen=True, slots=True)
class GangScheduler:
    """A gang scheduler, by the name that pods ask for it by."""

    name: str

    @property
    def is_volcano(self) -> bool:
        return self.name == VOLCANO

    @property
    def groups(self) -> Resource:
        """The PodGroups that it reads."""
        version = "scheduling.volcano.sh/v1beta1" if self.is_volcano else "scheduling.x-k8s.io/v1alpha1"
        return Resource(version, kinds.POD_GROUP, "podgroups")

    @property
    def remedy(self) -> str:
        """What to do if they are not served."""
        installed = "Volcano" if self.is_volcano else "the coscheduling plugin's CRD"
        return f"install {installed}, or run the controller without --gang-scheduling; waiting until it is served"

    def labels(self, group: str) -> Mapping[str, str]:
        """Return the labels by which a pod belongs to a group."""
        return {} if self.is_volcano else {_PLUGIN_LABEL: group}

    def annotations(self, group: str) -> Mapping[str, str]:
        """Return the annotations by which a pod belongs to a group."""
        return {_VOLCANO_ANNOTATION: group} if self.is_volcano else {}
