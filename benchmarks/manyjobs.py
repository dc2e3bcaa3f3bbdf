"""
Many MPIJobs at once in a namespace: created, counted with all that is made of them, and removed.

Owns: how this is asked for, so that the asking costs those who are measured little. Decides nothing.
"""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from testbed.ground import Namespace
from testbed.kube.errors import ClusterError
from testbed.kube.wait import until
from testbed.mpijobs import manifest
from testbed.plane.stages import ENDS, NEVER

WITHIN = 3600.0

_BETWEEN_COUNTS = 1.0
_AT_ONCE = 4

# Where they are asked for.
_OBJECTS = {
    "ConfigMap": "api/v1/namespaces/{}/configmaps",
    "Secret": "api/v1/namespaces/{}/secrets",
    "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts",
    "Role": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Service": "api/v1/namespaces/{}/services",
    "StatefulSet": "apis/apps/v1/namespaces/{}/statefulsets",
    "Job": "apis/batch/v1/namespaces/{}/jobs",
    "Pod": "api/v1/namespaces/{}/pods",
}
_MPI_JOBS = "apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs"


def job(name: str, *, workers: int, pod: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a job whose launcher goes on until it is told to end; `pod` is what all its pods have in common."""
    return manifest(
        name,
        "none",
        ("true",),
        workers=workers,
        # A spread over nodes would cost the scheduler more than all the rest.
        worker={"topologySpreadConstraints": [], **(pod or {})},
        launcher=pod or {},
        container={},
        annotations={"Launcher": {ENDS: NEVER}},
    )


def create(namespace: Namespace, bodies: Sequence[Mapping[str, Any]]) -> None:
    """Create these jobs, as fast as the API server takes them."""
    pieces = [bodies[start::_AT_ONCE] for start in range(_AT_ONCE)]

    def create_some(piece: Sequence[Mapping[str, Any]]) -> None:
        # One request for each, where apply makes two, and without the looks at all schemas.
        everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": piece})
        namespace.kubectl("create", "--filename=-", "--validate=false", stdin=everything, timeout=WITHIN)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(create_some, filter(None, pieces)))


def remove_all(namespace: Namespace, before: Mapping[str, int]) -> float:
    """
    Remove all jobs by one request, and leave what they own to Kubernetes, as everybody does who deletes a job.

    Returns after how many seconds there is only what was there before.
    """
    begun = time.monotonic()
    until(lambda: _are_asked_to_go(namespace), within=WITHIN, what="the end of all jobs")
    for kind, count in before.items():
        wait_for(namespace, kind, count, operator.le)
    return time.monotonic() - begun


def counts(namespace: Namespace, kinds: Iterable[str]) -> dict[str, int]:
    """Return how many objects of each kind there are."""
    return {kind: _count(namespace, kind) for kind in kinds}


def wait_for(namespace: Namespace, kind: str, wanted: int, holds: Callable[[int, int], bool]) -> None:
    """Wait until this holds between the number of that kind and the wanted one."""
    patiently(lambda: holds(_count(namespace, kind), wanted), what=f"{wanted} of {kind}")


def patiently(question: Callable[[], bool], *, what: str) -> None:
    """Wait until the answer is yes, and ask rarely."""

    def is_so() -> bool:
        # An API server that is busy may not answer; there is a next time.
        with suppress(ClusterError):
            if question():
                return True
        # Asking all the time would cost half a core, which those who are measured need.
        time.sleep(_BETWEEN_COUNTS)
        return False

    until(is_so, within=WITHIN, what=what)


def running(namespace: Namespace) -> int:
    """Return how many jobs run."""
    path = '--output=jsonpath={range .items[*]}{.status.conditions[?(@.type=="Running")].status} {end}'
    return namespace.kubectl("get", "mpijobs.kubeflow.org", path).stdout.split().count("True")


def _are_asked_to_go(namespace: Namespace) -> bool:
    """Whether no job is left. The API server deletes one after the other, and gives up after half a minute."""
    where = "/" + _MPI_JOBS.format(namespace.name)
    namespace.kubectl("delete", "--raw", where, check=False)
    return not json.loads(namespace.kubectl("get", "--raw", f"{where}?limit=1").stdout)["items"]


def _count(namespace: Namespace, kind: str) -> int:
    """How many there are in the namespace: of a list of one the server says how many more it has."""
    found = json.loads(
        namespace.kubectl("get", "--raw", f"/{_OBJECTS[kind].format(namespace.name)}?limit=1").stdout
    )
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))
