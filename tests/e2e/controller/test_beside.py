"""
Beside mpi-operator, or after it.

Where its own CRD is installed, which knows v2beta1 alone, its users' jobs run as they are; what it has run to its
end stays as it is.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube import buildcache
from testbed.kube.kubectl import Kubectl, Manifest
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, manifest, submit
from testbed.neighbours import mpi_operator
from tests.e2e.controller.deployed import job_name
from tests.promises import promise

CRD = "mpijobs.kubeflow.org"


@pytest.fixture
def their_crd(own_cluster: Ground, jobs: Namespace) -> Iterator[Namespace]:
    """Theirs in the place of ours; the jobs stay. Ours comes back as it was."""
    kubectl = own_cluster.kubectl
    ours = kubectl.get("crd", CRD)
    with buildcache.exclusive(Path(tempfile.gettempdir()) / "mpirt-crds.lock"):
        replace(kubectl, mpi_operator.crd(), versions={"v2beta1"})
        try:
            yield jobs
        finally:
            replace(kubectl, ours, versions={"v2beta1", "v1"})


def replace(kubectl: Kubectl, crd: Manifest, *, versions: set[str]) -> None:
    """The CRD, when it is served. Deleting it would delete all jobs."""
    crd["metadata"] = {
        name: crd["metadata"][name] for name in ("name", "labels", "annotations") if name in crd["metadata"]
    }
    crd.pop("status", None)
    kubectl("replace", "--filename=-", stdin=json.dumps(crd))
    until(
        lambda: served(kubectl) == versions,
        within=30,
        what=f"the API server to serve MPIJobs as {versions}",
    )


def served(kubectl: Kubectl) -> set[str]:
    """The versions of MPIJob that the API server offers now."""
    said = kubectl("get", "--raw", "/apis/kubeflow.org", check=False)
    return {each["version"] for each in json.loads(said.stdout)["versions"]} if said.returncode == 0 else set()


# All tests share the CRD.
@promise("MPIJobs run with the CRD of mpi-operator or of training-operator.", of="neighbours")
@pytest.mark.alone
def test_a_job_runs_and_its_status_is_told_whole(their_crd: Namespace) -> None:
    job = MpiJob(their_crd, job_name("theirs"))
    body = manifest(
        job.name,
        their_crd.ground.image("openmpi4"),
        ["mpirun", "--allow-run-as-root", "-n", "2", "--map-by", "node", "hostname"],
        workers=2,
        worker={},
        launcher={},
        container={},
        elastic={"minReplicas": 1},
    )
    # kubectl may know the CRD by now, and then refuses by itself what the API server cuts off.
    their_crd.kubectl("create", "--validate=false", "--filename=-", stdin=json.dumps(body))
    job.wait_for_end()

    body = job.body()
    assert len([line for line in job.log() if line.startswith(f"{job.name}-worker-")]) == 2
    assert "elastic" not in body["spec"], "their CRD cuts off what it doesn't know"
    assert {each["type"]: each["status"] for each in body["status"]["conditions"]} == {
        "Running": "False",
        "Created": "True",
        "Succeeded": "True",
    }
    assert body["status"]["replicaStatuses"]["Launcher"]["succeeded"] == 1
    assert {"startTime", "completionTime"} <= body["status"].keys()


@promise(
    "A job that any other controller has run to its end is left alone, even if managedBy changes.", of="neighbours"
)
def test_a_job_that_another_controller_has_run_to_its_end_is_left_alone(jobs: Namespace) -> None:
    policy = {"managedBy": "example.com/another"}
    job = submit(jobs, job_name("ended"), "busybox", ["true"], workers=1, runPolicy=policy)
    told = say_that_it_is_over(job)

    job.change(runPolicy={"managedBy": None})

    # Who has come as far as this one has seen that one, too.
    submit(jobs, job_name("next"), "busybox", ["true"], workers=1).wait_for_end()
    label = f"training.kubeflow.org/job-name={job.name}"
    assert jobs.kubectl.get("configmaps,roles,statefulsets,jobs,pods", f"--selector={label}") == []
    assert job.status() == told


def say_that_it_is_over(job: MpiJob) -> Manifest:
    """As another controller does. Returns the status."""
    time = "2026-01-01T00:00:00Z"
    condition = {"type": "Succeeded", "status": "True", "reason": "MPIJobSucceeded", "message": "It is over."}
    times = {"lastTransitionTime": time, "lastUpdateTime": time}
    told = {"conditions": [condition | times], "completionTime": time}
    body = job.body()
    path = f"/apis/{body['apiVersion']}/namespaces/{job.namespace.name}/mpijobs/{job.name}/status"
    job.namespace.kubectl("replace", "--raw", path, "--filename=-", stdin=json.dumps({**body, "status": told}))
    return told
