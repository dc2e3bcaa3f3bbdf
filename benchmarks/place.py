"""
Where a benchmark takes place: a namespace of its own on the test cluster, or a control plane without nodes.

Owns: finding or starting the cluster, and removing the namespace, whatever happened in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed import ground, manifests
from testbed.ground import Ground, Namespace
from testbed.kube import programs
from testbed.kube.progress import step
from testbed.plane import plane, shared
from tests.api import controllers
from tests.api.controllers import Controller
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed

_GONE_WITHIN = "120s"
_PODS_OF_A_NODE = 1000


@contextmanager
def fresh_namespace() -> Iterator[Namespace]:
    """A namespace on the cluster of MPIRT_TEST_KUBECONFIG, else on our own, which is started if it must be."""
    with fresh_ground() as (cluster, folder):
        yield ground.fresh_namespace(cluster, folder)


@contextmanager
def fresh_namespaces(count: int) -> Iterator[list[Namespace]]:
    """So many of them."""
    with fresh_ground() as (cluster, folder):
        yield [ground.fresh_namespace(cluster, folder) for _ in range(count)]


@contextmanager
def fresh_installation() -> Iterator[Deployed]:
    """A controller on the cluster, in a namespace of its own, that sees the nodes."""
    with fresh_ground() as (cluster, folder), deployed.passing(cluster, folder, sees_nodes=True) as installed:
        yield installed


@contextmanager
def fresh_controller(pods: int) -> Iterator[Controller]:
    """Two replicas of a controller on a control plane of their own, with room for so many pods."""
    with tempfile.TemporaryDirectory(prefix="mpirt-benchmark-") as name:
        folder = Path(name)
        binaries = programs.ensure(shared.version())
        names = [f"node-{number}" for number in range(1 + pods // _PODS_OF_A_NODE)]
        with plane.running(folder / "plane", binaries, names=names) as own:
            cluster = Ground(own.kubectl, is_ours=False)
            with step("a controller"):
                controller = controllers.install(own, cluster, folder, replicas=2)
            yield controller
            controller.remove()


@contextmanager
def fresh_ground() -> Iterator[tuple[Ground, Path]]:
    """The cluster and a folder; what was made of namespaces is removed at the end."""
    cluster = ground.find()
    of_this_run = f"--selector={manifests.RUN_LABEL}={cluster.run}"
    with tempfile.TemporaryDirectory(prefix="mpirt-benchmark-") as folder:
        try:
            yield cluster, Path(folder)
        finally:
            with step("cleaning up"):
                gone = f"--timeout={_GONE_WITHIN}"
                # Pods first: the namespace controller retries ever more rarely while some are left.
                for found in cluster.kubectl.get("namespaces", of_this_run):
                    inside = cluster.kubectl.inside(found["metadata"]["name"])
                    everything = "deployments,statefulsets,pods"
                    inside("delete", everything, "--all", "--grace-period=1", gone, timeout=150)
                cluster.kubectl("delete", "namespaces", of_this_run, gone, timeout=150)
