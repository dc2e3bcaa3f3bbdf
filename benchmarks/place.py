"""
Where a benchmark takes place: a namespace of its own on the test cluster, with workers in it.

Owns: finding or starting the cluster, and removing the namespace, whatever happened in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e import ground
from tests.e2e.ground import Namespace
from tests.kube.progress import step

_GONE_WITHIN = "120s"


@contextmanager
def fresh_namespace() -> Iterator[Namespace]:
    """A namespace on the cluster of MPIRT_TEST_KUBECONFIG, else on our own, which is started if it must be."""
    cluster = ground.find()
    with tempfile.TemporaryDirectory(prefix="mpirt-benchmark-") as folder:
        namespace = ground.fresh_namespace(cluster, Path(folder))
        try:
            yield namespace
        finally:
            with step("cleaning up"):
                # Pods first: the namespace controller retries ever more rarely while some are left.
                gone = f"--timeout={_GONE_WITHIN}"
                namespace.kubectl("delete", "statefulsets,pods", "--all", "--grace-period=1", gone, timeout=150)
                cluster.kubectl("delete", "namespace", namespace.name, gone, timeout=150)
