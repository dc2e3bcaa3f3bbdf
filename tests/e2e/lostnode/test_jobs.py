"""A node goes away under jobs whose ranks run on both: what becomes of each, and what is said of it."""

from __future__ import annotations

import re

import pytest

from tests.e2e.controller import losing
from tests.e2e.lostnode.conftest import Loss
from tests.e2e.lostnode.jobs import KEPT, LOST, RETRIES
from tests.promises import promise
from tests.support.stories import condition, held
from tests.support.times import Times

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("own_cluster")]


@promise("A job that may not be tried again fails, and its message names the pod and the cause.", of="MPIJob")
def test_a_job_that_may_not_try_again_fails_with_worker_and_node(loss: Loss, times: Times) -> None:
    one, pod = loss.jobs.impatient.story, loss.jobs.impatient.pod
    end = one.end()

    print(one.lines())
    times.add("worker's node lost, no retries: Failed", end.at - loss.at)
    assert condition(end, "Failed")["reason"].startswith("BackoffLimitExceeded")
    assert re.search(f"node {LOST} of pod {pod}", held(end)["Failed"])
    assert one.events("MPIJobRestarting") == []
    [event] = one.events("BackoffLimitExceeded")
    assert f"node {LOST} of pod" in event.message


@promise("Workers on a lost node are replaced on another node, and the job succeeds.", of="MPIJob")
def test_one_that_may_gets_another_worker_elsewhere_and_succeeds(loss: Loss, times: Times) -> None:
    one, pod = loss.jobs.patient.story, loss.jobs.patient.pod
    end = one.end()

    print(one.lines())
    times.add("worker's node lost: Succeeded", end.at - loss.at)
    assert "Succeeded" in held(end)
    # mpirt-rsh knows it after 20 s, Kubernetes after 50. The worker tolerates that for 60 s and has 5 s to end;
    # then it is made again. A launcher that begins before the 50 s takes the worker for Ready, and may have to
    # give up: one restart more, of those that the job may have. One that begins later waits.
    causes = [event.message for event in one.events("MPIJobRestarting")]
    assert 1 <= len(causes) <= RETRIES
    assert f"mpirt-rsh: node {LOST} of pod {pod} has not answered" in causes[0]
    assert f"{pod} was lost with its node {LOST}" in one.lines()
    assert {f"{one.job.name}-worker-{n} runs again" for n in (0, 1)} <= set(losing.said(one.job))


@promise("A launcher on a lost node gets a successor on another node, and the job succeeds.", of="MPIJob")
def test_a_job_whose_launcher_was_there_gets_another_one_elsewhere_and_succeeds(loss: Loss, times: Times) -> None:
    one, pod = loss.jobs.led.story, loss.jobs.led.pod
    end = one.end()

    print(one.lines())
    times.add("launcher's node lost: Succeeded", end.at - loss.at)
    assert "Succeeded" in held(end)
    assert one.messages("Restarting")[-1] == f"launcher pod {pod} was lost with its node {LOST}"
    assert [event.message for event in one.events("MPIJobRestarting")] == [one.messages("Restarting")[-1]]
    assert {f"{one.job.name}-worker-{n} runs again" for n in (0, 1)} <= set(losing.said(one.job))


@promise("A job that is suspended and resumed while a node is lost gets its workers on another node.", of="MPIJob")
def test_one_that_is_suspended_and_resumed_gets_its_worker_elsewhere(loss: Loss, times: Times) -> None:
    one = loss.jobs.resumed.story
    again = one.until("Running", after=one.until("Suspended").at)

    print(one.lines())
    times.add("worker's node lost, suspended, resumed: Running", again.at - loss.at)
    assert {pod["spec"]["nodeName"] for pod in one.job.pods("worker")} == {KEPT}


@promise("Workers on a lost node are replaced on another node, and the job succeeds.", of="MPIJob")
def test_one_whose_worker_had_not_started_there_gets_it_elsewhere(loss: Loss, times: Times) -> None:
    one, pod = loss.jobs.begun.story, loss.jobs.begun.pod
    started = one.until("Running")

    print(one.lines())
    times.add("starting worker's node lost: Running", started.at - loss.at)
    losing.wait_until_ranks_run(one.job)
    assert {pod["spec"]["nodeName"] for pod in one.job.pods("worker")} == {KEPT}
    assert f"{pod} is being deleted on node {LOST}" in one.lines()
