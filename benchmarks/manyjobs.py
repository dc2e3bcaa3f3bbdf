"""
Many MPIJobs at once in a namespace, on nodes that KWOK plays: created, counted, left alone, and removed.

Owns: what is measured meanwhile, and how it is asked for, so that the asking costs those that are measured little.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.programs import cpu_seconds
from testbed.ground import Namespace
from testbed.kube.errors import ClusterError
from testbed.kube.progress import step
from testbed.kube.wait import until
from testbed.mpijobs import manifest
from testbed.plane.stages import ENDS, NEVER
from tests.support.metrics import Rest

WITHIN = 3600.0
IDLE_SECONDS = 60.0
# Longer than mere counts in a status may be kept back.
AT_REST = 12.0

_BETWEEN_COUNTS = 1.0
_AT_ONCE = 4
_MPI_JOBS = "apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs"
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
KINDS = ("ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Service", "StatefulSet", "Job")
"""What mpirt makes of a job, besides its pods: one of each."""


@dataclass(frozen=True, slots=True)
class Side:
    """A controller that runs, and how its writes are counted."""

    name: str
    namespace: Namespace
    pid: int
    kinds: Sequence[str]
    """What a job is made of, besides its pods: one of each."""
    writes: Callable[[], int]
    """How many it has made so far, without those of its lease."""

    def writes_at_rest(self) -> int:
        """The same, when it has written nothing for a while."""
        rest = Rest(self.writes)
        until(lambda: rest.seconds() > AT_REST, within=WITHIN, what=f"{self.name} to come to rest")
        return self.writes()


def counts(side: Side) -> dict[str, int]:
    """How many objects of each kind there are."""
    return {kind: _count(side.namespace, kind) for kind in (*side.kinds, "Pod")}


def many(
    side: Side, before: Mapping[str, int], bodies: Sequence[Mapping[str, Any]], workers: int
) -> dict[str, float]:
    """
    Create many jobs at once, beside the objects that there were, and leave them alone for a minute once all run.

    Returns the seconds until all objects exist (made) and all jobs run, the CPU seconds until then and in that
    minute (idle_cpu), and the writes.
    """
    namespace, jobs = side.namespace, len(bodies)
    with step(f"{jobs} jobs of {side.name}"):
        writes, cpu = side.writes(), cpu_seconds(side.pid)
        began = time.monotonic()
        _create(namespace, bodies)
        for kind, count in before.items():
            each = workers + 1 if kind == "Pod" else 1
            _patiently(
                lambda: _count(namespace, kind) >= count + jobs * each,  # noqa: B023  called before the next round
                what=f"{jobs * each} more of {kind}",
            )
        made = time.monotonic() - began
        _patiently(lambda: _running(namespace) >= jobs, what=f"{jobs} jobs that run")
        running = time.monotonic() - began
        writes, cpu = side.writes_at_rest() - writes, cpu_seconds(side.pid) - cpu
    with step("peace"):
        idle = cpu_seconds(side.pid)
        time.sleep(IDLE_SECONDS)
        idle = cpu_seconds(side.pid) - idle
    return {"made": made, "running": running, "writes": writes, "cpu": cpu, "idle_cpu": idle}


def remove_all(namespace: Namespace, before: Mapping[str, int]) -> float:
    """Delete the jobs alone, as everybody does; returns after how many seconds all that was theirs is gone."""
    with step("the end of all jobs"):
        began = time.monotonic()
        until(lambda: _are_deleted(namespace), within=WITHIN, what="the end of all jobs")
        for kind, count in before.items():
            _patiently(lambda: _count(namespace, kind) <= count, what=f"the end of each {kind}")  # noqa: B023
        return time.monotonic() - began


def jobs_of(count: int, workers: int, pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Jobs whose launchers go on until they are deleted; `pod` is what all their pods have in common."""
    # A spread over nodes would cost the scheduler more than all the rest.
    worker = {"topologySpreadConstraints": [], **pod}
    ends = {"Launcher": {ENDS: NEVER}}
    return [
        manifest(f"many-{number}", "none", ("true",), workers=workers, worker=worker, launcher=pod, container={},
                 annotations=ends)
        for number in range(count)
    ]  # fmt: skip


def peak_megabytes(pid: int) -> float:
    """The most that a process has had in memory so far."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024 / 1e6


def _create(namespace: Namespace, bodies: Sequence[Mapping[str, Any]]) -> None:
    """Create these jobs, as fast as the API server takes them."""

    def create_some(piece: Sequence[Mapping[str, Any]]) -> None:
        # One request for each, where apply makes two, and without the looks at all schemas.
        everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": piece})
        namespace.kubectl("create", "--filename=-", "--validate=false", stdin=everything, timeout=WITHIN)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(create_some, filter(None, (bodies[start::_AT_ONCE] for start in range(_AT_ONCE)))))


def _are_deleted(namespace: Namespace) -> bool:
    """Whether no job is left. The API server deletes one after the other, and gives up after half a minute."""
    where = "/" + _MPI_JOBS.format(namespace.name)
    namespace.kubectl("delete", "--raw", where, check=False)
    return not json.loads(namespace.kubectl("get", "--raw", f"{where}?limit=1").stdout)["items"]


def _patiently(question: Callable[[], bool], *, what: str) -> None:
    """Wait until the answer is yes. Asking all the time would cost half a core, which the controller needs."""

    def is_so() -> bool:
        # A busy API server may not answer; there is a next time.
        with suppress(ClusterError):
            if question():
                return True
        time.sleep(_BETWEEN_COUNTS)
        return False

    until(is_so, within=WITHIN, what=what)


def _running(namespace: Namespace) -> int:
    """How many jobs run."""
    path = '--output=jsonpath={range .items[*]}{.status.conditions[?(@.type=="Running")].status} {end}'
    return namespace.kubectl("get", "mpijobs.kubeflow.org", path).stdout.split().count("True")


def _count(namespace: Namespace, kind: str) -> int:
    """How many there are in the namespace: with a list of one the server says how many more it has."""
    found = json.loads(
        namespace.kubectl("get", "--raw", f"/{_OBJECTS[kind].format(namespace.name)}?limit=1").stdout
    )
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))
