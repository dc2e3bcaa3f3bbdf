"""
What else happens in a job's life: it is over, run again, suspended, in somebody's way, or refused.

The jobs do next to nothing, and live side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, NEVER
from tests.api.controllers import Controller, job_name
from tests.promises import promise

WITHIN = 120.0

DONE = ("true",)
FOREVER = {"Launcher": {ENDS: NEVER}}

OVER = {
    "None": {"cleanPodPolicy": "None"},
    "Running": {"cleanPodPolicy": "Running"},
    "All": {"cleanPodPolicy": "All"},
    "TTL": {"ttlSecondsAfterFinished": 1},
}
# What no schema of ours says, but only the API server.
REFUSED = {"nodeSelector": {"not a label": "x"}}


class Taken(NamedTuple):
    """A job one of whose names was taken by another object, and what was visible meanwhile."""

    job: MpiJob
    running: dict[str, Any]
    config: dict[str, Any]
    workers: list[dict[str, Any]]


@pytest.fixture(scope="module")
def over(controller: Controller) -> dict[str, MpiJob]:
    """Jobs that have something to do for a moment, by what is to happen after it."""
    return {
        what: submit(controller.namespace, job_name(what.lower()), "busybox", DONE, workers=1, runPolicy=policy)
        for what, policy in OVER.items()
    }


@pytest.fixture(scope="module")
def taken(controller: Controller) -> Taken:
    """The name is free when all has been seen, so that the job goes on while other tests run."""
    kubectl, name = controller.namespace.kubectl, job_name("taken")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-config"}, "data": {"a": "b"}}
    kubectl.apply(config)
    job = submit(controller.namespace, name, "busybox", DONE, workers=1)
    job.wait_for_reason("ErrResourceExists")
    seen = Taken(job, job.condition("Running"), kubectl.get("configmap", f"{name}-config"), job.pods("worker"))
    kubectl("delete", "configmap", f"{name}-config")
    return seen


@pytest.fixture(scope="module")
def long(controller: Controller) -> Iterator[MpiJob]:
    """A job that does not end by itself."""
    job = submit(controller.namespace, job_name("long"), "busybox", DONE, workers=1, annotations=FOREVER)
    yield job
    job.delete()


@promise("An object of the name that a job needs is left alone if it is not the job's, and reported.", of="MPIJob")
def test_an_object_of_somebody_elses_is_left_alone_and_told_of(
    over: dict[str, MpiJob], long: MpiJob, taken: Taken
) -> None:
    words = (
        f"ConfigMap {taken.job.name}-config exists and has no owner, and is left alone; "
        "delete it or rename the job"
    )
    assert (taken.running["status"], taken.running["message"]) == ("False", words)
    assert events(taken.job, "ErrResourceExists") == [words]
    assert (taken.config["data"], taken.config["metadata"].get("ownerReferences")) == ({"a": "b"}, None)
    assert taken.workers == []


@promise("At the end of a job cleanPodPolicy decides which pods stay.", of="MPIJob")
@pytest.mark.parametrize(
    ("policy", "workers", "launchers"),
    [("All", 0, 0), ("Running", 0, 1), ("None", 1, 1)],
)
def test_when_a_job_is_over_its_pods_go_by_the_policy(
    over: dict[str, MpiJob], policy: str, workers: int, launchers: int
) -> None:
    job = over[policy]
    job.wait_for_end()

    counts = {"worker": workers, "launcher": launchers}
    job.wait(lambda: {role: len(job.pods(role)) for role in counts} == counts, f"{counts}")
    assert job.holds("Succeeded")
    assert job.exists(f"job/{job.name}-launcher")


@promise("With ttlSecondsAfterFinished the MPIJob is deleted, with all that belongs to it.", of="MPIJob")
def test_with_a_time_to_live_the_job_itself_goes_and_all_of_it(over: dict[str, MpiJob]) -> None:
    job = over["TTL"]
    until(lambda: not job.exists(f"mpijobs.kubeflow.org/{job.name}"), within=WITHIN, what="the job to be gone")

    belongings = f"--selector=training.kubeflow.org/job-name={job.name}"
    kinds = "all,configmaps,roles,rolebindings,serviceaccounts"
    until(lambda: not job.namespace.kubectl.get(kinds, belongings), within=WITHIN, what="nothing of it")


@promise("A finished job stays finished when its launcher Job is deleted.", of="MPIJob")
def test_a_finished_job_whose_launcher_job_is_deleted_stays_as_it_ended(over: dict[str, MpiJob]) -> None:
    job = over["Running"]
    job.wait_for_end()
    until(lambda: not job.pods("worker"), within=WITHIN, what="its workers to be gone")
    before = job.status()

    job.namespace.kubectl("delete", "job", f"{job.name}-launcher")
    have_it_looked_at(job)

    assert not job.exists(f"job/{job.name}-launcher")
    assert not job.exists(f"statefulset/{job.name}-worker")
    assert job.status()["conditions"] == before["conditions"]


@promise("A finished job runs again when the annotation mpirt.dev/rerun gets another value.", of="MPIJob")
def test_a_finished_job_runs_again_by_an_annotation_with_another_value(over: dict[str, MpiJob]) -> None:
    job = over["All"]
    job.wait_for_end()
    ended = job.status()["completionTime"]

    annotate(job, "mpirt.dev/rerun=once-more")

    until(lambda: job.status().get("completionTime", ended) != ended, within=WITHIN, what="another end")
    job.wait_for_end()
    assert job.status()["startTime"] >= ended
    assert job.status()["rerun"] == "once-more"
    assert events(job, "MPIJobRunAgain") == ["The job runs again."]


@promise("With mpirt.dev/rerun-when-deleted the deletion of its launcher Job runs a job again.", of="MPIJob")
def test_a_finished_job_runs_again_by_the_deletion_of_its_launcher_job_where_it_says_so(jobs: Namespace) -> None:
    job = submit(jobs, job_name("when-deleted"), "busybox", DONE, workers=1)
    annotate(job, "mpirt.dev/rerun-when-deleted=true")
    job.wait_for_end()
    [first] = job.pods("launcher")

    job.namespace.kubectl("delete", "job", f"{job.name}-launcher")

    def again() -> bool:
        return job.holds("Succeeded") and [one["metadata"]["uid"] for one in job.pods("launcher")] not in (
            [],
            [first["metadata"]["uid"]],
        )

    until(again, within=WITHIN, what="another launcher, and its end", instead=job.status)


@promise("The time of activeDeadlineSeconds counts while workers are Pending, too.", of="MPIJob")
def test_the_time_that_a_job_may_take_counts_while_its_workers_are_pending(jobs: Namespace) -> None:
    job = submit(
        jobs,
        job_name("late"),
        "busybox",
        DONE,
        workers=1,
        worker={"nodeSelector": {"no-such": "node"}},
        runPolicy={"activeDeadlineSeconds": 3, "cleanPodPolicy": "Running"},
        annotations=FOREVER,
    )
    job.wait_for("Failed")

    failed = job.condition("Failed")
    assert failed["reason"] == "DeadlineExceeded"
    assert "; 0 of 1 workers are Ready: " in failed["message"]
    until(lambda: not job.pods("worker"), within=WITHIN, what="its worker to be gone")


@promise("A suspended job has no pods, and starts again when it is resumed.", of="MPIJob")
def test_a_suspended_job_has_no_pods_and_starts_anew_when_it_is_resumed(long: MpiJob) -> None:
    long.wait_for("Running")

    long.change(runPolicy={"suspend": True})

    long.wait_for("Suspended")
    until(lambda: long.pods("worker") == long.pods("launcher") == [], within=WITHIN, what="its pods to be gone")
    status = long.status()
    assert (status["conditions"][-1]["type"], status.get("startTime")) == ("Suspended", None)

    long.change(runPolicy={"suspend": False})

    long.wait_for("Running")
    assert long.condition("Suspended")["reason"] == "MPIJobResumed"


@promise(
    "A template that the API server rejects is reported with its words before anything is created.", of="MPIJob"
)
@pytest.mark.parametrize("replica", ["Launcher", "Worker"])
def test_a_template_that_the_api_server_refuses_is_told_with_its_words(jobs: Namespace, replica: str) -> None:
    job = submit(jobs, job_name("refused"), "busybox", DONE, workers=1, **{replica.lower(): REFUSED})
    told = job.wait_for_reason("MPIJobFailedValidation")

    assert told["message"].startswith(f"spec.mpiReplicaSpecs.{replica}.template: the API server refuses it: ")
    assert 'spec.template.spec.nodeSelector: Invalid value: "not a label": ' in told["message"]
    assert job.condition("Failed") == {}
    # It was found before anything was made.
    assert not job.exists(f"configmap/{job.name}-config")


@promise("A job whose template was rejected runs once the template is corrected.", of="MPIJob")
def test_a_job_whose_template_was_refused_runs_once_it_is_mended(jobs: Namespace) -> None:
    job = submit(jobs, job_name("mended"), "busybox", DONE, workers=1, worker=REFUSED)
    job.wait_for_reason("MPIJobFailedValidation")

    job.change(mpiReplicaSpecs={"Worker": {"template": {"spec": {"nodeSelector": None}}}})

    job.wait_for_end()


@promise("An object of the name that a job needs is left alone if it is not the job's, and reported.", of="MPIJob")
def test_a_job_goes_on_when_the_name_is_free(taken: Taken) -> None:
    taken.job.wait_for_end()


def annotate(job: MpiJob, *words: str) -> None:
    job.namespace.kubectl("annotate", "mpijobs.kubeflow.org", job.name, *words)


def have_it_looked_at(job: MpiJob) -> None:
    """Do something that the controller undoes, and wait until it has: it has seen all that was before."""
    job.namespace.kubectl("delete", "configmap", f"{job.name}-config")
    until(lambda: job.exists(f"configmap/{job.name}-config"), within=WITHIN, what="the ConfigMap to be back")


def events(job: MpiJob, reason: str) -> list[str]:
    about = f"--field-selector=involvedObject.kind=MPIJob,involvedObject.name={job.name},reason={reason}"
    return [event["message"] for event in job.namespace.kubectl.get("events", about)]
