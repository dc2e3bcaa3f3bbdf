"""
Pods of a running job end badly: the job is restarted and succeeds, or fails, and says which pod and why.

What a launcher finds out itself about its workers, and ends with, is in tests/e2e: here it is told when to end.
"""

from __future__ import annotations

import re

import pytest

from testbed.kube.wait import until
from testbed.mpijobs import MpiJob
from tests.api.controllers import Controller
from tests.api.endings import FAILS, OUT_OF_MEMORY, SUCCEEDS, WITHIN, have, launcher, running
from tests.promises import promise
from tests.support.stories import Story, condition, held, told_of


@promise("A launcher that fails is tried again, up to backoffLimit times.", of="MPIJob")
def test_a_launcher_out_of_memory_is_tried_again_and_the_job_succeeds(controller: Controller) -> None:
    with running(controller, "again", retries=1) as one:
        first = launcher(one.job)
        have(one.job, first, OUT_OF_MEMORY)
        one.until("Restarting")
        have(one.job, launcher(one.job), SUCCEEDS)
        end = one.end()

        says = f"launcher pod {first} ended with code 137 (OOMKilled)"
        assert "Succeeded" in held(end)
        assert [event.message for event in one.events("MPIJobRestarting")] == [says]
        assert says in told_of(end, "Restarting")


@promise("A launcher that fails is tried again, up to backoffLimit times.", of="MPIJob")
@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.one_in(3)
def test_a_job_whose_attempts_are_used_up_fails_with_the_last_ones_cause(
    controller: Controller, retries: int
) -> None:
    with running(controller, "used-up", retries=retries) as one:
        pods = []
        for _ in range(retries + 1):
            pods.append(launcher(one.job))
            have(one.job, pods[-1], OUT_OF_MEMORY)
            until(lambda: pods[-1] in ended(one.job), within=WITHIN, what=f"the end of {pods[-1]}")
        end = one.end()

        assert condition(end, "Failed")["reason"].startswith("BackoffLimitExceeded")
        assert f"launcher pod {pods[-1]} ended with code 137 (OOMKilled)" in held(end)["Failed"]
        assert condition(end, "Running")["status"] == "False"
        assert len(one.events("MPIJobRestarting")) == retries


@promise("Workers that a finished job keeps are not recreated, and go with the job.", of="MPIJob")
def test_a_kept_worker_that_is_lost_is_not_missed_and_the_others_go_with_the_job(controller: Controller) -> None:
    with running(controller, "kept", retries=0) as one:
        have(one.job, launcher(one.job), SUCCEEDS)
        one.end()
        lost, kept = (f"{one.job.name}-worker-{number}" for number in range(2))
        kubectl = controller.namespace.kubectl

        kubectl("delete", "pod", lost, "--wait=false")

        sets = ("get", "statefulset", f"{one.job.name}-worker", "--ignore-not-found", "--output=name")
        until(lambda: not kubectl(*sets).stdout, within=WITHIN, what="the end of the StatefulSet")
        until(
            lambda: workers(one) == [kept], within=WITHIN, what=f"the end of {lost}", instead=lambda: workers(one)
        )
        [owner] = kubectl.get("pod", kept)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("MPIJob", one.job.name)
        kubectl("delete", "mpijobs.kubeflow.org", one.job.name, "--wait=false")
        until(lambda: not one.job.pods("worker"), within=WITHIN, what=f"the end of {kept}")


def workers(one: Story) -> list[str]:
    return [str(pod["metadata"]["name"]) for pod in one.job.pods("worker")]


@promise("The message of a failed job names what died first: a worker before its launcher.", of="MPIJob")
def test_a_worker_that_died_before_its_launcher_is_the_cause(controller: Controller) -> None:
    with running(controller, "worker", retries=0) as one:
        worker = f"{one.job.name}-worker-1"
        have(one.job, worker, OUT_OF_MEMORY)
        until(lambda: restarts(one.job, worker) == 1, within=WITHIN, what=f"{worker} to be started again")
        have(one.job, launcher(one.job), FAILS)

        says = rf"{worker}: container mpi ended with code 137 \(OOMKilled\)"
        one.told.wait(
            lambda state: bool(re.search(says, held(state).get("Failed", ""))),
            within=WITHIN,
            what=f"{says} in Failed",
        )


@promise("A job that loses a worker or its launcher is tried again and succeeds.", of="MPIJob")
@pytest.mark.one_in(3)
def test_a_launcher_that_is_deleted_is_replaced_and_the_job_says_so(controller: Controller) -> None:
    with running(controller, "deleted", retries=1) as one:
        first = launcher(one.job)
        one.job.namespace.kubectl("delete", "pod", first, "--wait=false")
        one.until("Restarting")
        until(lambda: launcher(one.job) != first, within=WITHIN, what="another launcher")
        have(one.job, launcher(one.job), SUCCEEDS)
        end = one.end()

        assert "Succeeded" in held(end)
        [event] = one.events("MPIJobRestarting")
        assert re.match(f"launcher pod {first} was deleted", event.message)


def ended(job: MpiJob) -> set[str]:
    return {pod["metadata"]["name"] for pod in job.pods("launcher") if pod["status"]["phase"] == "Failed"}


def restarts(job: MpiJob, pod: str) -> int:
    statuses = job.namespace.kubectl.get("pod", pod)["status"]["containerStatuses"]
    return int(statuses[0]["restartCount"])
