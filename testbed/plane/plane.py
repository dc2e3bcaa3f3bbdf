"""
One control plane without nodes: started, hurt and stopped.

Its processes are children of whoever starts it and end with that, by SIGKILL if need be. All its files are in one
folder; logs stay there when it has ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.kube import commandlines, kubeconfig, pki
from testbed.kube.commandlines import Site
from testbed.kube.errors import ClusterError
from testbed.kube.kubectl import Kubectl
from testbed.kube.paths import PROJECT
from testbed.kube.programs import Binaries
from testbed.kube.wait import until
from testbed.plane import children, kwok, nodes, place
from testbed.plane.children import Child

ETCD, APISERVER, KWOK = "etcd", "apiserver", "kwok"
CONTROLLER_MANAGER, SCHEDULER = "controller-manager", "scheduler"

NODES = ("node-1", "node-2", "node-3", "node-4")

_READY_WITHIN = 120.0
_KWOK_USER = "kwok"

# What the tests need of it; every other one would take processor time for nothing.
_CONTROLLERS = (
    "serviceaccount-controller", "namespace-controller", "garbage-collector-controller", "job-controller",
    "statefulset-controller", "node-lifecycle-controller", "taint-eviction-controller",
    "resourcequota-controller", "pod-garbage-collector-controller", "disruption-controller",
)  # fmt: skip

# Kubernetes' own controllers wait less than in a cluster, and leave something to the one under test.
_QPS = 500
# As many times as much at once; so it is with Kubernetes' defaults.
_BURST = 1.5


@dataclass(frozen=True)
class Plane:
    """A control plane that runs here, or in another process."""

    site: Site
    binaries: Binaries

    @property
    def kubectl(self) -> Kubectl:
        """An administrator's."""
        return Kubectl(self.binaries.kubectl, self.site.kubeconfig("admin"))

    def is_ready(self) -> bool:
        return commandlines.is_ready(self.site)


@dataclass(frozen=True)
class OwnPlane(Plane):
    """One that this process has started, so that it may be hurt."""

    qps: int = _QPS
    """How many writes a second each of Kubernetes' controllers may make."""
    children: dict[str, Child] = field(default_factory=dict)

    def start(self, component: str) -> None:
        """Start a component, which doesn't run."""
        argv = _command(component, self)
        self.children[component] = children.start(argv, self.site.folder / f"{component}.log")

    def wait_until_ready(self) -> None:
        child = self.children[APISERVER]
        remedy = f"see {child.log}"
        until(lambda: self.is_ready() or child.is_over, within=_READY_WITHIN, what="the API server", remedy=remedy)
        if child.is_over:
            raise ClusterError("the API server has ended", remedy=remedy)


@contextmanager
def running(
    folder: Path, binaries: Binaries, *, names: Iterable[str] = NODES, qps: int = _QPS
) -> Iterator[OwnPlane]:
    """A plane with these nodes, which is gone after the block."""
    with bare(folder, binaries, qps=qps) as plane:
        plane.kubectl("apply", "--kustomize", str(PROJECT / "crds"))
        for component in (CONTROLLER_MANAGER, SCHEDULER, KWOK):
            plane.start(component)
        nodes.add(plane.kubectl, names)
        yield plane


@contextmanager
def bare(folder: Path, binaries: Binaries, *, qps: int = _QPS) -> Iterator[OwnPlane]:
    """An API server that knows Kubernetes' own types alone, which is gone after the block."""
    plane = OwnPlane(place.fresh(folder), binaries, qps)
    _write_files(plane.site)
    try:
        plane.start(ETCD)
        plane.start(APISERVER)
        plane.wait_until_ready()
        yield plane
    finally:
        _stop(list(plane.children.values()))


def _stop(started: list[Child]) -> None:
    """All of a sudden: nothing of it is of use to anybody after this."""
    for child in reversed(started):
        child.kill()


def _write_files(site: Site) -> None:
    pki.create(site.secrets, users=[(_KWOK_USER, pki.MASTERS)], addresses=[site.address], names=["localhost"])
    for component, user in (
        ("admin", pki.ADMIN),
        (CONTROLLER_MANAGER, pki.CONTROLLER_MANAGER),
        (SCHEDULER, pki.SCHEDULER),
        (KWOK, _KWOK_USER),
    ):
        kubeconfig.write(site.kubeconfig(component), site, user)
    _scheduler_file(site).write_text(json.dumps(_scheduler_settings(site)))
    kwok.write_settings(_kwok_file(site))


def _command(component: str, plane: OwnPlane) -> list[str]:
    site, binaries = plane.site, plane.binaries
    commands: dict[str, Callable[[], list[str]]] = {
        ETCD: lambda: commandlines.etcd(binaries.etcd, site),
        APISERVER: lambda: commandlines.apiserver(
            binaries.apiserver,
            site,
            # Loopback addresses are no endpoints of a Service, and nobody looks for this one by its Service.
            "--endpoint-reconciler-type=none",
            # No name server knows these nodes.
            "--kubelet-preferred-address-types=InternalIP",
        ),
        CONTROLLER_MANAGER: lambda: commandlines.controller_manager(
            binaries.controller_manager,
            site,
            f"--controllers={','.join(_CONTROLLERS)}",
            f"--kube-api-qps={plane.qps}",
            f"--kube-api-burst={plane.qps * _BURST:.0f}",
        ),
        SCHEDULER: lambda: commandlines.scheduler(binaries.scheduler, site, f"--config={_scheduler_file(site)}"),
        KWOK: lambda: kwok.command(binaries.kwok, site.kubeconfig(KWOK), _kwok_file(site)),
    }
    return commands[component]()


def _scheduler_settings(site: Site) -> dict[str, object]:
    """What no flag says any more."""
    connection = {"kubeconfig": str(site.kubeconfig(SCHEDULER)), "qps": _QPS, "burst": int(_QPS * _BURST)}
    # Otherwise it looks at all pods of all nodes for each that it schedules.
    nothing_by_default = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "PodTopologySpreadArgs",
        "defaultConstraints": [],
        "defaultingType": "List",
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": connection,
        "profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": nothing_by_default}]}],
    }


def _scheduler_file(site: Site) -> Path:
    return site.folder / "scheduler.json"


def _kwok_file(site: Site) -> Path:
    return site.folder / "kwok.yaml"
