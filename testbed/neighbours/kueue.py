"""Kueue: its manager, its CRDs and webhooks, and queues with a quota."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.ground import Ground, Namespace
from testbed.kube.kubectl import Kubectl, Manifest
from testbed.kube.programs import neighbours
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob
from testbed.neighbours import objects, webhooks
from testbed.neighbours.programs import running
from testbed.neighbours.webhooks import Door
from testbed.plane.children import Child

NAME = "kueue"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"

_GROUP = "kueue.x-k8s.io"
_VERSION = f"{_GROUP}/v1beta2"
_SYSTEM = "kueue-system"
_WEBHOOKS = f"mpirt-test-{NAME}"
_SERVED_WITHIN = 60.0
_METRICS = "/etc/kueue/metrics/certs"


@contextmanager
def kueue(
    cluster: Ground, folder: Path, *, within: Collection[str], kubeconfig: Path | None = None
) -> Iterator[Child]:
    """Kueue for MPIJobs of these namespaces, by an administrator's kubeconfig unless it gets another one."""
    found = neighbours.ensure(NAME)
    at = webhooks.door(folder / "certificate")
    settings = folder / "kueue.json"
    settings.write_text(json.dumps(_settings(at)))
    argv: list[str | Path] = [
        *_with_certificate(at),
        found.program,
        f"--config={settings}",
        "--feature-gates=VisibilityOnDemand=false",
    ]
    environment = {"KUBECONFIG": str(kubeconfig or cluster.kubectl.kubeconfig)}
    crds = objects.documents(sorted((found.manifests / "crd/bases").glob("*.yaml")))
    hooks = webhooks.configurations(
        objects.documents([found.manifests / "webhook/manifests.yaml"]),
        at,
        _WEBHOOKS,
        wanted=_is_wanted,
        within=within,
    )
    crds = [webhooks.with_conversion(crd, at) for crd in crds]
    ready = f"http://{at.health}/readyz"
    with (
        objects.passing(cluster.kubectl, _WEBHOOKS, _GROUP, crds, _namespace(), *hooks),
        running(argv, folder / "kueue.log", ready, environment) as child,
    ):
        yield child


@contextmanager
def queue(
    namespace: Namespace, name: str, cpu: str, *, flavor: Mapping[str, Any] | None = None, preempts: bool = False
) -> Iterator[str]:
    """
    A LocalQueue and a ClusterQueue of that name with a flavor and so much CPU; gone after the block.

    `flavor` is what its nodes have in common: what Kueue adds to the pods that it admits. `preempts`: whether
    workloads of a higher priority displace others of the queue.
    """
    cluster = namespace.ground.kubectl
    quota = {"name": name, "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    made = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
        "preemption": {"withinClusterQueue": "LowerPriority"} if preempts else {},
    }
    cluster.apply(
        _object("ResourceFlavor", name, spec=dict(flavor or {})), _object("ClusterQueue", name, spec=made)
    )
    namespace.kubectl.apply(_object("LocalQueue", name, spec={"clusterQueue": name}))
    until(
        lambda: is_true(cluster.get(f"clusterqueues.{_GROUP}", name), "Active"),
        within=_SERVED_WITHIN,
        what=f"the ClusterQueue {name} to be active",
    )
    try:
        yield name
    finally:
        namespace.kubectl("delete", f"localqueues.{_GROUP}/{name}", "--wait=false")
        cluster("delete", f"clusterqueues.{_GROUP}/{name}", f"resourceflavors.{_GROUP}/{name}", "--wait=false")


def priority(name: str, value: int) -> Manifest:
    """Return a class that workloads may have."""
    return {**_object("WorkloadPriorityClass", name), "value": value, "description": "of a test"}


def queued(job: Manifest, queue: str, *, priority: str = "") -> Manifest:
    """Return the job with the labels by which Kueue admits it."""
    labels = {QUEUE_LABEL: queue, **({PRIORITY_LABEL: priority} if priority else {})}
    return {**job, "metadata": {**job["metadata"], "labels": labels}}


def _object(kind: str, name: str, **fields: Any) -> Manifest:
    return {"apiVersion": _VERSION, "kind": kind, "metadata": {"name": name}, **fields}


def _with_certificate(at: Door) -> list[str]:
    """Return the words that run Kueue with this certificate for metrics, too, for which its path is fixed."""
    lines = (
        f"mount -t tmpfs tmpfs /etc; mkdir -p {_METRICS}; cp {at.folder}/tls.crt {at.folder}/tls.key {_METRICS}"
    )
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", f'{lines}; exec "$@"', "sh"]


def _settings(at: Door) -> dict[str, Any]:
    return {
        "apiVersion": f"config.{_GROUP}/v1beta2",
        "kind": "Configuration",
        "namespace": _SYSTEM,
        "health": {"healthProbeBindAddress": at.health},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": at.address, "port": at.port, "certDir": str(at.folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 50, "burst": 100},
        "integrations": {"frameworks": ["kubeflow.org/mpijob"]},
    }


def _is_wanted(hook: Mapping[str, Any]) -> bool:
    [rule] = hook["rules"]
    return bool(rule["resources"] == ["mpijobs"])


def _namespace() -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _SYSTEM}}


def workload(job: MpiJob) -> Mapping[str, Any]:
    """Kueue's object of the job; empty if there is none."""
    found = workloads(job.namespace.kubectl)
    owned = (one for one in found if one["metadata"]["ownerReferences"][0]["name"] == job.name)
    return next(owned, {})


def workloads(kubectl: Kubectl) -> list[Manifest]:
    """The workloads of a namespace."""
    found: list[Manifest] = kubectl.get(f"workloads.{_GROUP}")
    return found


def is_true(workload: Mapping[str, Any], kind: str) -> bool:
    rows = workload.get("status", {}).get("conditions", [])
    return any(row["type"] == kind and row["status"] == "True" for row in rows)
