"""
Where a benchmark takes place: a namespace of its own on the test cluster, with workers or a controller in it.

Owns: finding or starting the cluster, and removing the namespace, whatever happened in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e import ground, manifests
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed
from tests.e2e.ground import Ground, Namespace
from tests.kube.progress import step

_GONE_WITHIN = "120s"


@contextmanager
def fresh_namespace() -> Iterator[Namespace]:
    """A namespace on the cluster of MPIRT_TEST_KUBECONFIG, else on our own, which is started if it must be."""
    with _fresh_ground() as (cluster, folder):
        yield ground.fresh_namespace(cluster, folder)


@contextmanager
def fresh_controller() -> Iterator[Deployed]:
    """The same with a controller in it, installed as people install it, which looks at nothing else."""
    with _fresh_ground() as (cluster, folder):
        with step("a controller"):
            controller = deployed.install(cluster, folder)
        yield controller


@contextmanager
def _fresh_ground() -> Iterator[tuple[Ground, Path]]:
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
