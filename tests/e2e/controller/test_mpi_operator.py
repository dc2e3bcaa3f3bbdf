"""
Beside mpi-operator 0.8, a real one, in the same namespace: each job is run by one of the two, and stays with it.

The jobs are mpi-operator's own kind of job, and those that it runs need no ssh: their launcher runs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.ground import Ground, Namespace
from testbed.mpijobs import MpiJob, submit
from testbed.neighbours.mpi_operator import mpi_operator
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed, job_name
from tests.promises import promise
from tests.support import sizes

# Somebody else's cluster can't reach this process, or has an operator of its own.
pytestmark = pytest.mark.usefixtures("own_cluster")

CLAIM = {"managedBy": "mpirt.dev/controller"}
MPIRUN = ("mpirun", "--allow-run-as-root", "-n", "2", "hostname")
JOBS = sizes.of(merge=2, full=6)


@pytest.fixture(scope="module")
def claimed(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A controller that leaves jobs alone that don't name it."""
    installed = deployed.install(
        cluster, tmp_path_factory.mktemp("claimed"), environment={"MPIRT_JOBS": "claimed"}
    )
    yield installed
    installed.remove()


@pytest.fixture
def shared(claimed: Deployed) -> Namespace:
    """The namespace in which both look for jobs."""
    return claimed.namespace


KINDS = "mpijobs.kubeflow.org,configmaps,secrets,roles,services,statefulsets,jobs,pods"


def objects(job: MpiJob) -> list[Any]:
    """The job, and what belongs to it, by whatever controller."""
    return [
        each
        for each in job.namespace.kubectl.get(KINDS, "--show-managed-fields")
        if each["metadata"]["name"].startswith(f"{job.name}-") or each["metadata"]["name"] == job.name
    ]


def kinds(job: MpiJob) -> set[str]:
    return {str(each["kind"]) for each in objects(job)}


def writers(job: MpiJob) -> set[str]:
    """Who has written the job's status and its objects, without Kubernetes' own controllers and the test."""
    found = {field["manager"] for each in objects(job) for field in each["metadata"].get("managedFields", [])}
    kubernetes = {
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kubectl-client-side-apply",
        "kubectl-patch",
    }
    return found - kubernetes


@promise(
    "With --jobs=claimed each job is run by mpi-operator or by this controller, never by both.", of="neighbours"
)
def test_jobs_of_both_are_never_touched_by_the_other(shared: Namespace, tmp_path: Path) -> None:
    with mpi_operator(shared, tmp_path):
        ours = [submit(shared, job_name("ours"), "openmpi4", MPIRUN, runPolicy=CLAIM) for _ in range(JOBS)]
        theirs = [submit(shared, job_name("theirs"), "busybox", ["true"], workers=1) for _ in range(JOBS)]
        for job in [*ours, *theirs]:
            job.wait_for_end()

        assert [writers(job) for job in ours] == [{"mpirt-controller"}] * JOBS
        assert [writers(job) for job in theirs] == [{"mpi-operator"}] * JOBS
        assert all("StatefulSet" in kinds(job) and "Secret" not in kinds(job) for job in ours)
        assert all("Secret" in kinds(job) and "StatefulSet" not in kinds(job) for job in theirs)
        assert [sorted(job.log()) for job in ours] == [
            [f"{job.name}-worker-{number}" for number in range(2)] for job in ours
        ]
