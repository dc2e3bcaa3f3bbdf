"""Nothing of a command is left in its pod once the agent is gone, however the agent went."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tests.e2e.ground import Namespace
from tests.e2e.rsh import agent, hard
from tests.kube.wait import until

Workers = Callable[[int, str], list[str]]

# Commands must end within five seconds.
pytestmark = pytest.mark.alone

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.mark.oldest
def test_killing_the_agent_ends_the_command(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, hard.COMMAND) as running:
        assert running.line() == "running"
        running.process.kill()

    until(lambda: not hard.is_running(namespace, pod), within=5, what="the command's end")


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_the_agent_ends_a_command_that_ignores_it(
    namespace: Namespace, workers: Workers, number: signal.Signals
) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, hard.COMMAND) as running:
        assert running.line() == "running"
        running.process.send_signal(number)
        code = running.process.wait(10)

    assert code == 128 + signal.SIGKILL
    until(lambda: not hard.is_running(namespace, pod), within=5, what="the command's end")


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_the_agent_reaches_the_command(
    namespace: Namespace, workers: Workers, number: signal.Signals
) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, f"echo running; exec sleep {hard.SECONDS}") as running:
        assert running.line() == "running"
        running.process.send_signal(number)
        code = running.process.wait(10)

    assert code == 128 + number
    until(lambda: not hard.is_running(namespace, pod), within=5, what="the command's end")


def test_a_command_that_kills_its_wrapper_is_ended_and_told_of(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, f"sleep {hard.SECONDS} & kill -9 $PPID; exec sleep {hard.SECONDS}") as running:
        began = time.monotonic()
        ended = running.end(within=20, since=began)

    assert ended.code == 128 + signal.SIGKILL
    assert ended.errors == (
        f"mpirt-rsh: something in pod {pod} ended the command from outside (code 137, signal 9)\n"
    )
    assert ended.seconds < 5
    until(lambda: not hard.is_running(namespace, pod), within=5, what="the command's end")


def test_deleting_the_launcher_ends_the_command(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    hard.start_in_launcher(namespace, pod)
    until(lambda: hard.is_running(namespace, pod), within=20, what="the command's start")

    namespace.kubectl("delete", "pod", "launcher", "--grace-period=0", "--force")

    until(lambda: not hard.is_running(namespace, pod), within=5, what="the command's end")
