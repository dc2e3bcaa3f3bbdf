"""The controller for all namespaces, installed as the README says, and removed as docs/operations.md says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube import paths
from testbed.mpijobs import submit
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import SYSTEM, job_name
from tests.promises import promise

# This controller would act on the jobs of all other tests.
pytestmark = pytest.mark.alone


@pytest.fixture
def cluster_wide(own_cluster: Ground, tmp_path: Path) -> Iterator[Ground]:
    """A cluster with this controller."""
    with deployed.everywhere(own_cluster, tmp_path):
        yield own_cluster


@promise("The controller for all namespaces runs the jobs of any namespace.", of="installation")
@promise("make demo CLUSTER=current refuses to run beside a controller of all namespaces.", of="installation")
@promise("The controller's pod meets the restricted profile of Pod Security.", of="safety")
def test_the_controller_runs_a_job_in_a_new_namespace_and_the_demo_refuses_to_run_beside_it(
    cluster_wide: Ground, namespace: Namespace
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
            "PATH": f"{cluster_wide.kubectl.program.parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    job.wait_for_end()

    assert len([line for line in job.log() if line.startswith(f"{job.name}-worker-")]) == 2
    assert demo.returncode == 1
    assert f"mpirt-controller in namespace {SYSTEM} acts on the MPIJobs of all namespaces" in demo.stderr
