"""
A node goes away: with the pod of a command, with that of its agent, with half of the commands of one switchboard,
and under jobs whose ranks run on both nodes.

The node is lost once for all of them, and commands come before the jobs, which take longer.
"""

from __future__ import annotations

import re

import pytest

from mpirt.errors import ExitCode
from testbed.kube.wait import Moment, until
from tests.e2e.controller import losing
from tests.e2e.lostnode.commands import AGENT_ENDS_WITHIN
from tests.e2e.lostnode.conftest import Loss
from tests.e2e.lostnode.crowd import PODS, SESSIONS, Crowd
from tests.e2e.lostnode.jobs import KEPT, LOST, RETRIES
from tests.e2e.rsh.deaths import assert_one_line
from tests.promises import promise
from tests.support.stories import condition, held
from tests.support.times import Times

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("own_cluster")]

# A keeper that hears nothing on an open connection waits for 40 s, however short the lease is.
COMMAND_ENDS_WITHIN = 60.0
# Far below the time for which mpirt-rsh waits for a node: a command that waited for the lost one would exceed it.
_LONGEST_PAUSE = 10.0


@promise(
    "A node that stops answering ends its commands with 249 within 30 s, and the message names it.", of="mpirt-rsh"
)
def test_the_agent_of_a_command_that_was_there_ends_and_says_why(loss: Loss) -> None:
    ended = loss.commands.agent.end(within=2 * AGENT_ENDS_WITHIN, since=loss.moment)

    print(f"node partitioned: {ended.code} after {ended.seconds:.1f} s")
    assert ended.code == ExitCode.NODE_LOST
    assert_one_line(ended, loss.commands.lost, "node")
    assert ended.seconds < AGENT_ENDS_WITHIN


@promise("A command whose launcher's pod or node is lost ends after its lease.", of="mpirt-rsh")
def test_a_command_whose_launcher_was_there_ends(loss: Loss) -> None:
    rest = COMMAND_ENDS_WITHIN - loss.moment.until(Moment.now())

    until(lambda: not loss.commands.kept_one_runs(), within=rest, what="the command's end")


@promise(
    "A node that stops answering ends its commands with 249 within 30 s, and the message names it.", of="mpirt-rsh"
)
def test_the_agents_of_commands_that_were_there_end_and_say_why(loss: Loss) -> None:
    crowd = loss.crowd
    wait_for_the_end_of_the_lost_ones(crowd)

    ends = [crowd.ends[one] for one in crowd.lost]
    seconds = sorted(loss.moment.until(moment) for moment, _, _ in ends)
    print(f"{len(ends)} agents ended {seconds[0]:.1f} to {seconds[-1]:.1f} s after the loss of their node")
    assert len(crowd.switchboards) == 1
    assert len(ends) == PODS * SESSIONS
    assert {code for _, code, _ in ends} == {ExitCode.NODE_LOST}
    assert [errors for _, _, errors in ends if "node node-2 of pod crowd-node-2-" not in errors] == []
    assert seconds[-1] < AGENT_ENDS_WITHIN


@promise("When a node is lost, commands on other nodes go on without a pause.", of="mpirt-rsh")
def test_the_others_go_on_without_a_gap_and_end_by_themselves(loss: Loss) -> None:
    crowd = loss.crowd
    # By then the others have noticed whatever there is to notice.
    wait_for_the_end_of_the_lost_ones(crowd)
    assert not crowd.ends.keys() & set(crowd.kept)
    crowd.enough()
    until(lambda: crowd.have_ended(crowd.kept), within=60, what="the end of the others")

    pauses = [crowd.longest_pause(one) for one in crowd.kept]
    print(f"{len(pauses)} others: the longest pause between two lines was {max(pauses):.1f} s")
    assert {crowd.ends[one][1:] for one in crowd.kept} == {(0, "")}
    for one in crowd.kept:
        numbers = [number for _, number in crowd.numbers[one]]
        assert numbers == list(range(1, len(numbers) + 1))
    assert max(pauses) < _LONGEST_PAUSE


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
def test_a_job_that_may_retry_gets_another_worker_elsewhere_and_succeeds(loss: Loss, times: Times) -> None:
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
def test_a_job_that_is_suspended_and_resumed_gets_its_worker_elsewhere(loss: Loss, times: Times) -> None:
    one = loss.jobs.resumed.story
    again = one.until("Running", after=one.until("Suspended").at)

    print(one.lines())
    times.add("worker's node lost, suspended, resumed: Running", again.at - loss.at)
    assert {pod["spec"]["nodeName"] for pod in one.job.pods("worker")} == {KEPT}


@promise("Workers on a lost node are replaced on another node, and the job succeeds.", of="MPIJob")
def test_a_job_whose_worker_had_not_started_there_gets_it_elsewhere(loss: Loss, times: Times) -> None:
    one, pod = loss.jobs.begun.story, loss.jobs.begun.pod
    started = one.until("Running")

    print(one.lines())
    times.add("starting worker's node lost: Running", started.at - loss.at)
    losing.wait_until_ranks_run(one.job)
    assert {pod["spec"]["nodeName"] for pod in one.job.pods("worker")} == {KEPT}
    assert f"{pod} is being deleted on node {LOST}" in one.lines()


def wait_for_the_end_of_the_lost_ones(crowd: Crowd) -> None:
    until(lambda: crowd.have_ended(crowd.lost), within=2 * AGENT_ENDS_WITHIN, what="the agents' ends")
