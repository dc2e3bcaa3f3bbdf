"""Jobs as others write them, on a real API server: without workers, placed by Kueue, and as published."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, manifest, submit
from tests.api.controllers import job_name
from tests.promises import promise
from tests.support.mpi_operator_examples import EXAMPLES, example

INDEX = "training.kubeflow.org/replica-index"
GATES = [{"name": "kueue.x-k8s.io/topology"}]


def indices(job: MpiJob) -> list[str]:
    """The ranks that the job's workers carry, in the order of the workers."""
    pods = sorted(job.pods("worker"), key=lambda pod: str(pod["metadata"]["name"]))
    return [pod["metadata"]["labels"].get(INDEX, "") for pod in pods]


@promise("A job without Worker runs its launcher alone.", of="MPIJob")
def test_a_job_without_workers_runs_to_its_end_and_makes_no_stateful_set(jobs: Namespace) -> None:
    name = job_name("alone")
    image = jobs.ground.image("busybox")
    body = manifest(name, image, ("true",), workers=1, worker={}, launcher={}, container={})
    del body["spec"]["mpiReplicaSpecs"]["Worker"]
    jobs.kubectl.apply(body)
    job = MpiJob(jobs, name)

    job.wait_for_end()

    assert jobs.kubectl.get("statefulsets", f"--selector=app={name}") == []
    rules = jobs.kubectl.get("role", f"{name}-launcher")["rules"]
    assert [rule["resources"] for rule in rules] == [["pods"]]


@promise(
    "Workers that Kueue places by topology carry their ranks in training.kubeflow.org/replica-index.",
    of="neighbours",
)
@pytest.mark.parametrize(
    ("works_too", "ranks"),
    [pytest.param(False, ["0", "1"], id="workers alone"), pytest.param(True, ["1", "2"], id="with the launcher")],
)
def test_workers_that_kueue_holds_back_by_topology_carry_their_ranks(
    jobs: Namespace, ranks: list[str], *, works_too: bool
) -> None:
    """With the permissions of deploy/."""
    held: dict[str, Any] = {"schedulingGates": GATES}
    job = submit(jobs, job_name("rank"), "busybox", ("true",), worker=held, runLauncherAsWorker=works_too)

    until(lambda: indices(job) == ranks, within=60, what="the workers' ranks", instead=lambda: indices(job))

    jobs.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")


@promise("The examples that mpi-operator publishes run unchanged.", of="neighbours")
@pytest.mark.parametrize("path", EXAMPLES)
@pytest.mark.sample(2)
def test_a_published_example_runs_to_its_end(jobs: Namespace, path: str) -> None:
    """KWOK plays no probes: that none is left which fails is shown in tests/unit and tests/e2e."""
    name = job_name("published")
    body = example(path, image=jobs.ground.image("busybox"), cpu="10m", memory="16Mi")
    body["metadata"]["name"] = name
    body["spec"]["runPolicy"].pop("ttlSecondsAfterFinished", None)
    jobs.kubectl.apply(body)

    MpiJob(jobs, name).wait_for_end()
