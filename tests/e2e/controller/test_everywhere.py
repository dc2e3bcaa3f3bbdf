"""The controller for all namespaces, installed as the README says, and removed as docs/operations.md says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import render
from tests.e2e.controller.deployed import job_name
from tests.e2e.controller.mpijobs import submit
from tests.e2e.ground import Ground, Namespace
from tests.kube import paths
from tests.kube.wait import until

SYSTEM = "mpirt-system"

# This controller would act on the jobs of all other tests.
pytestmark = pytest.mark.alone


@pytest.fixture
def everywhere(own_cluster: Ground, tmp_path: Path) -> Iterator[Ground]:
    """
    The file of `make install.yaml` with this run's images. When it is removed, the CRDs stay.

    Meanwhile two controllers see the jobs of the run's own namespace.
    """
    images = render.Images(controller=own_cluster.image("controller"), runtime=own_cluster.image("runtime"))
    file = tmp_path / "install.yaml"
    file.write_text(render.rendered(render.FORMS["cluster"], images, SYSTEM), encoding="utf-8")
    kubectl = own_cluster.kubectl.inside(SYSTEM)
    try:
        kubectl("apply", "--filename", str(file))
        kubectl("rollout", "status", "deployment/mpirt-controller", "--timeout=150s", timeout=180)
        yield own_cluster
    finally:
        # Who removes a namespace may have others to remove first, and nobody may act meanwhile.
        kubectl("scale", "deployment/mpirt-controller", "--replicas=0", check=False)
        until(lambda: kubectl.get("pods") == [], within=90, what="the controllers of all namespaces to be gone")
        kubectl("delete", "namespace", SYSTEM, "--wait=false")
        kubectl("delete", "clusterrole,clusterrolebinding", "mpirt-controller")


def test_it_runs_a_job_in_a_namespace_that_it_never_heard_of_and_the_demo_refuses_to_run_beside_it(
    everywhere: Ground, namespace: Namespace
) -> None:
    job = submit(namespace, job_name("any"), "openmpi4", ["mpirun", "--allow-run-as-root", "-n", "2", "hostname"])
    demo = subprocess.run(
        [sys.executable, "-m", "demo"],
        check=False,
        cwd=paths.PROJECT,
        env={
            **os.environ,
            "CLUSTER": "current",
            "REGISTRY": "registry.example.com",
            "KUBECONFIG": str(paths.KUBECONFIG),
            "PATH": f"{everywhere.kubectl.program.parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    job.wait_for_end()

    assert len([line for line in job.log() if line.startswith(f"{job.name}-worker-")]) == 2
    assert demo.returncode == 1
    assert f"mpirt-controller in namespace {SYSTEM} acts on the MPIJobs of all namespaces" in demo.stderr
