"""
The controller for all namespaces, installed and removed as the README says.

Tests that use it run alone: it would act on the jobs of all others.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.ground import Ground
from tests.kube import paths
from tests.kube.wait import until

SYSTEM = "mpirt-system"


@contextmanager
def passing(cluster: Ground, folder: Path) -> Iterator[None]:
    """
    deploy/ with this run's images; `folder` is for a copy of it. It is removed after the block, the CRDs stay.

    Meanwhile two controllers see the jobs of the run's own namespace.
    """
    for name in ("crds", "deploy"):
        shutil.copytree(paths.PROJECT / name, folder / name)
    deployment = folder / "deploy/base/deployment.yaml"
    text = deployment.read_text(encoding="utf-8")
    for name in ("controller", "runtime"):
        text = text.replace(f"mpirt/{name}:latest", cluster.image(name))
    deployment.write_text(text, encoding="utf-8")
    kubectl = cluster.kubectl.inside(SYSTEM)
    try:
        kubectl("apply", "--kustomize", str(folder / "deploy"))
        kubectl("rollout", "status", "deployment/mpirt-controller", "--timeout=150s", timeout=180)
        yield
    finally:
        # Who removes a namespace may have others to remove first, and nobody may act meanwhile.
        kubectl("scale", "deployment/mpirt-controller", "--replicas=0", check=False)
        until(lambda: kubectl.get("pods") == [], within=90, what="the controllers of all namespaces to be gone")
        kubectl("delete", "namespace", SYSTEM, "--wait=false")
        kubectl("delete", "clusterrole,clusterrolebinding", "mpirt-controller")
