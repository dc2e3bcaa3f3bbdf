"""
The kinds of objects that the controller reads and writes, and what each is called where.

Owns: the table. A new kind is a line here, one in the controller's roles in deploy/, and a builder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """Where objects of a kind live in the API."""

    api_version: str
    kind: str
    plural: str
    page: int = 500
    """How many are listed at once: each page is held whole, with all that isn't kept of its objects."""

    @property
    def group(self) -> str:
        """The API group; empty for the core's."""
        return self.api_version.rpartition("/")[0]


MPI_JOB = "MPIJob"
CONFIG_MAP = "ConfigMap"
SERVICE_ACCOUNT = "ServiceAccount"
ROLE = "Role"
ROLE_BINDING = "RoleBinding"
SERVICE = "Service"
STATEFUL_SET = "StatefulSet"
JOB = "Job"
POD = "Pod"
EVENT = "Event"
# Events, too: those in which a node says that it has evicted a pod.
EVICTION = "Eviction"

_RBAC = "rbac.authorization.k8s.io/v1"

RESOURCES: Mapping[str, Resource] = {
    one.kind: one
    for one in (
        # The keeper in it makes each of them some 100 kB long.
        Resource("v1", CONFIG_MAP, "configmaps", page=20),
        Resource("v1", SERVICE_ACCOUNT, "serviceaccounts"),
        Resource(_RBAC, ROLE, "roles"),
        Resource(_RBAC, ROLE_BINDING, "rolebindings"),
        Resource("v1", SERVICE, "services"),
        Resource("apps/v1", STATEFUL_SET, "statefulsets"),
        Resource("batch/v1", JOB, "jobs"),
        Resource("v1", POD, "pods"),
        Resource("v1", EVENT, "events"),
        Resource("v1", EVICTION, "events"),
    )
}

# What a job owns, in the order in which it is made: each stands on those before it. The launcher Job comes last,
# and when the workers are Ready.
OWNED = (CONFIG_MAP, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SERVICE, STATEFUL_SET, JOB)
