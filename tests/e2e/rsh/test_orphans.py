"""Nothing of a command is left in its pod once the agent is gone, however the agent went."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import Moment, until
from tests.e2e.rsh import agent, hard
from tests.promises import promise

Workers = Callable[[int, str], list[str]]

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@promise("A command whose agent is killed ends, after its lease and grace at the latest.", of="mpirt-rsh")
@pytest.mark.oldest
@pytest.mark.parametrize(
    ("env", "within"),
    [
        pytest.param(hard.SHORT_LEASE, hard.SHORT_LEASE_SECONDS + 5, id="after lease and grace"),
        pytest.param({"MPIRT_LEASE": "0", "MPIRT_GRACE": "1"}, 5, id="without a lease"),
    ],
)
def test_killing_the_agent_ends_the_command(
    namespace: Namespace, workers: Workers, env: Mapping[str, str], within: float
) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, hard.COMMAND, env=env) as running:
        assert running.line() == "running"
        running.process.kill()

    until(lambda: not hard.is_running(namespace, pod), within=within, what="the command's end")


@promise("TERM, INT or HUP to the agent ends a command, by KILL if it ignores them.", of="mpirt-rsh")
@pytest.mark.sample(1)
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_the_agent_ends_a_command_that_ignores_it(
    namespace: Namespace, workers: Workers, number: signal.Signals
) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, hard.COMMAND) as running:
        assert running.line() == "running"
        running.process.send_signal(number)
        code = running.end(within=10).code

    assert code == 128 + signal.SIGKILL
    until(lambda: not hard.is_running(namespace, pod), within=5, what="the command's end")


@promise("A signal to the agent reaches the command, and the agent ends with the command's code.", of="mpirt-rsh")
@pytest.mark.sample(1)
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_the_agent_reaches_the_command(
    namespace: Namespace, workers: Workers, number: signal.Signals
) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, f"echo running; exec sleep {hard.SECONDS}") as running:
        assert running.line() == "running"
        running.process.send_signal(number)
        code = running.end(within=10).code

    assert code == 128 + number
    until(lambda: not hard.is_running(namespace, pod), within=5, what="the command's end")


KEEPER_GONE = (
    "mpirt-rsh: the keeper of the command in pod {pod} is gone: something has killed it, or its lease was over\n"
)


@promise(
    "A command that kills its keeper is ended with all that it started, and reported with 251.", of="mpirt-rsh"
)
def test_a_command_that_kills_its_keeper_is_ended_and_reported(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    command = f"sleep {hard.SECONDS} & kill -9 $PPID; exec sleep {hard.SECONDS}"
    with agent.rsh(namespace, pod, command) as running:
        began = Moment.now()
        ended = running.end(within=20, since=began)

    assert (ended.code, ended.errors) == (251, KEEPER_GONE.format(pod=pod))
    assert ended.seconds < 5
    until(lambda: not hard.is_running(namespace, pod), within=5, what="the command's end")


@promise("A command whose launcher's pod or node is lost ends after its lease.", of="mpirt-rsh")
def test_deleting_the_launcher_ends_the_command(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    hard.start_in_launcher(namespace, pod, variables=hard.SHORT_LEASE)
    until(lambda: hard.is_running(namespace, pod), within=20, what="the command's start")

    namespace.kubectl("delete", "pod", "launcher", "--grace-period=0", "--force")

    seconds = hard.SHORT_LEASE_SECONDS + 5
    until(lambda: not hard.is_running(namespace, pod), within=seconds, what="the command's end")
