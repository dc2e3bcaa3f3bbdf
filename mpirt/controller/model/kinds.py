"""
The kinds of objects that the controller reads and writes, and their names in the API.

Owns: the table, and the gang schedulers for which the controller creates PodGroups: their API, labels and
annotations. A new kind needs a line here, one in the controller's roles in deploy/, and a builder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind in the API: its version, name and plural."""

    api_version: str
    kind: str
    plural: str
    page: int = 500
    """Objects per page of a list: a page is held in memory whole, with all fields that are not kept later."""

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]


MPI_JOB = "MPIJob"
TRAINING_JOB = "TrainingJob"
SCALE_IN = "ScaleIn"
SCALE_OUT = "ScaleOut"
CONFIG_MAP = "ConfigMap"
SERVICE_ACCOUNT = "ServiceAccount"
ROLE = "Role"
ROLE_BINDING = "RoleBinding"
SERVICE = "Service"
STATEFUL_SET = "StatefulSet"
JOB = "Job"
POD = "Pod"
NODE = "Node"
DISRUPTION_BUDGET = "PodDisruptionBudget"
# Only with a gang scheduler, on which its API group depends.
POD_GROUP = "PodGroup"
EVENT = "Event"
# A launcher Job that was deleted, as it was before; empty if that is unknown.
GONE_JOB = "gone Job"
# Events as well, but watched separately: those in which a kubelet reports that it has evicted a pod.
EVICTION = "Eviction"

_RBAC = "rbac.authorization.k8s.io/v1"

RESOURCES: Mapping[str, Resource] = {
    one.kind: one
    for one in (
        # The keeper's files, for all architectures, make each of them some 330 kB long.
        Resource("v1", CONFIG_MAP, "configmaps", page=8),
        Resource("v1", SERVICE_ACCOUNT, "serviceaccounts"),
        # Each names the workers of a job: up to 760 kB of 10,000.
        Resource(_RBAC, ROLE, "roles", page=20),
        Resource(_RBAC, ROLE_BINDING, "rolebindings"),
        Resource("v1", SERVICE, "services"),
        Resource("apps/v1", STATEFUL_SET, "statefulsets"),
        Resource("batch/v1", JOB, "jobs"),
        Resource("v1", POD, "pods"),
        # Each lists its images, which makes it some 20 kB long.
        Resource("v1", NODE, "nodes", page=50),
        Resource("policy/v1", DISRUPTION_BUDGET, "poddisruptionbudgets"),
        Resource("v1", EVENT, "events"),
        Resource("v1", EVICTION, "events"),
    )
}

# What the controller does without if it may not read it.
OPTIONAL = frozenset({DISRUPTION_BUDGET})

# The jobs whose workers are pods that this controller creates itself.
WITH_BARE_WORKERS = frozenset({TRAINING_JOB})

# The objects that ask for a change of a TrainingJob's workers.
SCALERS = (SCALE_IN, SCALE_OUT)

# The objects that a job owns, in the order of their creation: each needs those before it. The launcher Job comes
# last, with its rights; with WaitForWorkersReady only once enough workers are Ready.
OWNED = (
    CONFIG_MAP,
    SERVICE_ACCOUNT,
    SERVICE,
    DISRUPTION_BUDGET,
    POD_GROUP,
    STATEFUL_SET,
    ROLE,
    ROLE_BINDING,
    JOB,
)


# Volcano has a kind of its own; any other name is a scheduler with the coscheduling plugin of
# kubernetes-sigs/scheduler-plugins, as in mpi-operator's option of the same name.
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
        return Resource(version, POD_GROUP, "podgroups")

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
