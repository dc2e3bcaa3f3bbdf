"""
The controller for all namespaces, installed as the README says, and removed as docs/operations.md says.

Tests that use it run alone: it would act on the jobs of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy import render
from testbed.ground import Ground
from testbed.kube.wait import until

SYSTEM = "mpirt-system"


@contextmanager
def passing(cluster: Ground, folder: Path) -> Iterator[None]:
    """
    The file of `make install.yaml` with this run's images. It is removed after the block, the CRDs stay.

    Meanwhile two controllers see the jobs of the run's own namespace.
    """
    images = render.Images(controller=cluster.image("controller"), runtime=cluster.image("runtime"))
    file = folder / "install.yaml"
    file.write_text(render.rendered(render.FORMS["cluster"], images, SYSTEM), encoding="utf-8")
    kubectl = cluster.kubectl.inside(SYSTEM)
    try:
        kubectl("apply", "--filename", str(file))
        kubectl("rollout", "status", "deployment/mpirt-controller", "--timeout=150s", timeout=180)
        yield
    finally:
        # Who removes a namespace may have others to remove first, and no controller may act meanwhile.
        kubectl("scale", "deployment/mpirt-controller", "--replicas=0", check=False)
        until(lambda: kubectl.get("pods") == [], within=90, what="the controllers of all namespaces to be gone")
        # The next installation must not find it on its way out.
        kubectl("delete", "namespace", SYSTEM, "--timeout=120s", timeout=150)
        kubectl("delete", "clusterrole,clusterrolebinding", "mpirt-controller")
