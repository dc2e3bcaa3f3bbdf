"""
An MPIJob with spec.elastic that is scaled down while its launcher runs: its highest workers leave with proof.

That a training loses no step by it stands in tests/e2e/training/test_mpijobs.py: no container runs here, and pods
answer by the proxy whether they are in use.
"""

from __future__ import annotations

import json

import pytest

from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, NEVER
from tests.api.apiproxy import Write
from tests.api.beds import Bed
from tests.api.controllers import job_name
from tests.promises import promise

# Later answers than the first, so that one of them was given after everything was known.
ASKED = 3
LONG_AGO = "2020-01-01T00:00:00Z"
DRAINING, SINCE = "mpirt.dev/draining", "mpirt.dev/draining-since"


@pytest.fixture
def job(bed: Bed) -> MpiJob:
    """One that runs with four workers."""
    made = submit(
        bed.namespace,
        job_name("down"),
        "busybox",
        ("true",),
        workers=4,
        worker={"topologySpreadConstraints": []},
        annotations={"Launcher": {ENDS: NEVER}},
        elastic={"minReplicas": 1, "maxReplicas": 4},
    )
    made.wait_for("Running")
    return made


@promise("Workers of an MPIJob that is scaled down are deleted only when no command runs in them.", of="MPIJob")
def test_workers_that_leave_are_deleted_only_when_all_of_them_are_free(bed: Bed, job: MpiJob) -> None:
    before = uids(job)
    bed.proxy.busy[job.worker(2)] = 1

    scale(job, 2)
    wait_until_asked(bed, job, 2)
    meanwhile = uids(job), job.hosts(), shrinks(bed, job)
    bed.proxy.busy.clear()
    wait_for_workers(job, 0, 1)

    [shrunk] = shrinks(bed, job)
    answers = [answer for answer in bed.proxy.answers(job.worker(2)) if answer.at < shrunk.at]
    assert meanwhile == (before, [job.worker(0), job.worker(1)], [])
    assert sorted({answer.sessions for answer in answers}) == [0, 1]
    assert [answer.sessions for answer in answers[-2:]] == [0, 0]


@promise(
    "Of an MPIJob that is scaled down the highest workers leave, and the others stay as they are.", of="MPIJob"
)
def test_the_workers_with_the_highest_numbers_leave_and_the_others_stay_unchanged(bed: Bed, job: MpiJob) -> None:
    before = uids(job)

    scale(job, 3)
    wait_for_workers(job, 0, 1, 2)

    assert uids(job) == {name: uid for name, uid in before.items() if name != job.worker(3)}
    assert [bed.proxy.answers(job.worker(number)) for number in range(3)] == [[], [], []]
    assert job.holds("Running")


@promise("A worker in use that is not needed any more is deleted after 5 min.", of="MPIJob")
def test_a_worker_in_use_is_deleted_when_it_has_been_leaving_for_five_minutes(bed: Bed, job: MpiJob) -> None:
    bed.proxy.busy[job.worker(3)] = 1
    scale(job, 3)
    wait_until_asked(bed, job, 3)
    assert len(uids(job)) == 4

    since = f"{SINCE}={LONG_AGO}"
    job.namespace.kubectl("annotate", "pod", job.worker(3), since, "--overwrite")
    wait_for_workers(job, 0, 1, 2)

    assert {answer.sessions for answer in bed.proxy.answers(job.worker(3))} == {1}


@promise("A worker that is needed again before it is deleted is a host again.", of="MPIJob")
def test_a_worker_that_is_wanted_again_before_it_is_free_is_a_host_again(bed: Bed, job: MpiJob) -> None:
    before = uids(job)
    bed.proxy.busy[job.worker(3)] = 1
    scale(job, 3)
    wait_until_asked(bed, job, 3)

    scale(job, 4)
    wanted = [job.worker(number) for number in range(4)]
    job.wait(lambda: job.hosts() == wanted, "four hosts")
    job.wait(lambda: not marked(job), "no mark")

    assert uids(job) == before
    assert shrinks(bed, job) == []


def scale(job: MpiJob, replicas: int) -> None:
    """As people do it."""
    job.namespace.kubectl("scale", f"mpijobs.kubeflow.org/{job.name}", f"--replicas={replicas}")


def uids(job: MpiJob) -> dict[str, str]:
    """The workers' pods that are there and not on their way out."""
    found = (pod["metadata"] for pod in job.pods("worker"))
    return {each["name"]: each["uid"] for each in found if "deletionTimestamp" not in each}


def marked(job: MpiJob) -> list[str]:
    """The workers that are no hosts."""
    found = (pod["metadata"] for pod in job.pods("worker"))
    return [each["name"] for each in found if DRAINING in each["annotations"]]


def shrinks(bed: Bed, job: MpiJob) -> list[Write]:
    """The writes by which workers are deleted: each makes the StatefulSet smaller."""
    patches = (write for write in bed.proxy.writes() if str(write) == "PATCH statefulsets" and write.is_good)
    return [write for write in patches if job.name in write.name and "/spec/replicas" in json.dumps(write.content)]


def wait_until_asked(bed: Bed, job: MpiJob, number: int) -> None:
    """Until the worker has answered some times, and that it is in use."""
    pod = job.worker(number)
    job.wait(lambda: len(bed.proxy.answers(pod)) >= ASKED, f"{pod} to be asked")


def wait_for_workers(job: MpiJob, *numbers: int) -> None:
    wanted = [job.worker(number) for number in numbers]
    job.wait(lambda: sorted(uids(job)) == wanted, f"{wanted}")
