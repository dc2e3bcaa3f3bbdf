"""
Jobs whose spec is or becomes invalid: the API server refuses numbers out of a job's limits, and the run policy is
carried out whatever else is invalid.

The jobs live side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, NEVER
from tests.api.controllers import Controller, job_name
from tests.promises import promise
from tests.support import trainings

WITHIN = 120.0
TRUE = ("true",)
FOREVER = {"Launcher": {ENDS: NEVER}}
# No schema can know the containers' names.
INVALID = {"mainContainer": "nowhere"}
PROBLEM = "spec.mainContainer: no container of the workers is named 'nowhere'"

POLICIES: dict[str, dict[str, Any]] = {
    "suspended": {},
    "cleaned": {"cleanPodPolicy": "Running"},
    "deleted": {"ttlSecondsAfterFinished": 1},
    "overdue": {"activeDeadlineSeconds": 3600},
}
SUSPENDED = {"job-supervisor.kube-ai.io/job-suspended": "true"}
ELASTIC = {"minReplicas": 1, "maxReplicas": 3}


@pytest.fixture(scope="module")
def running(controller: Controller) -> Iterator[dict[str, MpiJob]]:
    """Running jobs by what is to happen to them; their specs have become invalid."""
    made = {
        what: submit(
            controller.namespace, job_name(what), "busybox", TRUE, workers=1, annotations=FOREVER, runPolicy=of
        )
        for what, of in POLICIES.items()
    }
    for job in made.values():
        job.wait_for("Running")
        job.change(**INVALID)
    for job in made.values():
        job.wait_for_reason("MPIJobFailedValidation")
    yield made
    for job in made.values():
        job.delete()


def reason(job: MpiJob) -> str:
    return str(job.condition("Running").get("reason"))


def let_end(job: MpiJob) -> None:
    labels = f"training.kubeflow.org/job-name={job.name},training.kubeflow.org/job-role=launcher"
    job.namespace.kubectl("annotate", "pods", f"--selector={labels}", f"{ENDS}=0", "--overwrite")


@promise(
    "The runPolicy of a job with an invalid spec still counts: suspend, deadline, clean-up and TTL.", of="MPIJob"
)
class TestARunningJobWhoseSpecIsInvalid:
    def test_gives_its_places_back_when_it_is_suspended(self, running: dict[str, MpiJob]) -> None:
        job = running["suspended"]

        job.change(runPolicy={"suspend": True})

        job.wait_for("Suspended")
        job.wait(lambda: job.pods("worker") == job.pods("launcher") == [], "no pods")
        job.wait(lambda: active(job) == 0, "no active pod in its status")
        assert (reason(job), job.condition("Running")["message"]) == ("MPIJobFailedValidation", PROBLEM)

    def test_is_cleaned_up_when_it_has_ended(self, running: dict[str, MpiJob]) -> None:
        job = running["cleaned"]

        let_end(job)

        job.wait_for("Succeeded")
        job.wait(lambda: not job.pods("worker"), "no worker")

    def test_is_deleted_after_its_ttl(self, running: dict[str, MpiJob]) -> None:
        job = running["deleted"]

        let_end(job)

        until(lambda: not job.exists(f"{job.RESOURCE}/{job.name}"), within=WITHIN, what="the job to be deleted")

    def test_fails_at_its_deadline(self, running: dict[str, MpiJob]) -> None:
        job = running["overdue"]

        # It has run for longer than that.
        job.change(runPolicy={"activeDeadlineSeconds": 1})

        job.wait_for("Failed")
        assert job.condition("Failed")["reason"].startswith("DeadlineExceeded")


@promise("The API server refuses a number of workers out of a job's limits.", of="MPIJob")
def test_a_number_of_workers_out_of_the_limits_of_an_elastic_job_is_refused(jobs: Namespace) -> None:
    job = submit(jobs, job_name("elastic"), "busybox", TRUE, elastic=ELASTIC, runPolicy={"suspend": True})

    assert "mpiReplicaSpecs.Worker.replicas must be from elastic.minReplicas to elastic.maxReplicas" in scaled(
        jobs, f"mpijobs.kubeflow.org/{job.name}", 4
    )
    assert scaled(jobs, f"mpijobs.kubeflow.org/{job.name}", 3) == ""
    assert replicas(job) == 3


@promise("The API server refuses a number of workers out of a job's limits.", of="MPIJob")
def test_more_workers_than_any_job_may_have_are_refused(jobs: Namespace) -> None:
    job = submit(jobs, job_name("large"), "busybox", TRUE, runPolicy={"suspend": True})

    assert "should be less than or equal to 10000" in scaled(jobs, f"mpijobs.kubeflow.org/{job.name}", 10_001)


@promise("The API server refuses to scale a TrainingJob out of minReplicas and maxReplicas.", of="TrainingJob")
def test_a_number_of_workers_out_of_the_limits_of_a_training_job_is_refused(jobs: Namespace) -> None:
    job = trainings.submit(jobs, job_name("limited"), replicas=2, least=2, most=3, on_job=SUSPENDED)
    name = f"{trainings.CRDS[0]}/{job.name}"

    for number in (1, 4):
        assert "replicas must be from minReplicas to maxReplicas" in scaled(jobs, name, number)
    assert scaled(jobs, name, 3) == ""
    assert job.replicas() == 3


def test_a_job_that_is_out_of_its_limits_already_can_be_suspended_and_brought_back(jobs: Namespace) -> None:
    job = submit(jobs, job_name("beyond"), "busybox", TRUE, workers=5, elastic=ELASTIC)
    job.wait_for_reason("MPIJobFailedValidation")

    job.change(runPolicy={"suspend": True})

    job.wait_for("Suspended")
    assert scaled(jobs, f"mpijobs.kubeflow.org/{job.name}", 3) == ""
    job.wait_for_reason("MPIJobSuspended")


def scaled(namespace: Namespace, name: str, number: int) -> str:
    """Why the API server refuses to scale an object; empty if it does not."""
    return namespace.kubectl("scale", name, f"--replicas={number}", check=False).stderr


def active(job: MpiJob) -> int:
    return sum(each["active"] for each in job.status()["replicaStatuses"].values())


def replicas(job: MpiJob) -> int:
    return int(job.body()["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"])
