"""
Nothing of a command is left in its pod once the agent is gone, however the agent went.

The command is a hard one: it ignores TERM, and has a child in a session of its own beside one in its own.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.ground import Faults, Namespace
from tests.e2e.rsh import agent, launcher
from tests.kube.wait import until

Workers = Callable[[int, str], list[str]]

# Commands must end within five seconds.
pytestmark = pytest.mark.alone

# Its processes are found by this number of seconds, which nothing else sleeps for.
_MARK = "54321"
_HARD = f"trap '' TERM INT HUP; sh -c 'trap \"\" TERM; sleep {_MARK}; sleep {_MARK}' & echo running; sleep {_MARK}"


def is_running(namespace: Namespace, pod: str) -> bool:
    """Whether a process of the hard command is in the pod."""
    return f"sleep {_MARK}" in namespace.kubectl.execute(pod, "ps", "-o", "args")


@pytest.mark.oldest
def test_killing_the_agent_ends_the_command(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, _HARD) as running:
        assert running.line() == "running"
        running.process.kill()

    until(lambda: not is_running(namespace, pod), within=5, what="the command's end")


SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_the_agent_ends_a_command_that_ignores_it(
    namespace: Namespace, workers: Workers, number: signal.Signals
) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, _HARD) as running:
        assert running.line() == "running"
        running.process.send_signal(number)
        code = running.process.wait(10)

    assert code == 128 + signal.SIGKILL
    until(lambda: not is_running(namespace, pod), within=5, what="the command's end")


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_to_the_agent_reaches_the_command(
    namespace: Namespace, workers: Workers, number: signal.Signals
) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, f"echo running; exec sleep {_MARK}") as running:
        assert running.line() == "running"
        running.process.send_signal(number)
        code = running.process.wait(10)

    assert code == 128 + number
    until(lambda: not is_running(namespace, pod), within=5, what="the command's end")


def test_a_command_that_kills_its_wrapper_is_ended_and_told_of(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, f"sleep {_MARK} & kill -9 $PPID; exec sleep {_MARK}") as running:
        began = time.monotonic()
        ended = running.end(within=20, since=began)

    assert ended.code == 128 + signal.SIGKILL
    assert ended.errors == (
        f"mpirt-rsh: something in pod {pod} ended the command from outside (code 137, signal 9)\n"
    )
    assert ended.seconds < 5
    until(lambda: not is_running(namespace, pod), within=5, what="the command's end")


def test_deleting_the_launcher_ends_the_command(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    start_in_launcher(namespace, pod)
    until(lambda: is_running(namespace, pod), within=20, what="the command's start")

    namespace.kubectl("delete", "pod", "launcher", "--grace-period=0", "--force")

    until(lambda: not is_running(namespace, pod), within=5, what="the command's end")


@pytest.mark.timeout(200)
def test_losing_the_launchers_node_ends_the_command(namespace: Namespace, workers: Workers, fault: Faults) -> None:
    pods = workers(2, "busybox")
    pod = next(pod for pod in pods if namespace.nodes_of([pod]) == {"node-1"})
    start_in_launcher(namespace, pod, nodeSelector={"kubernetes.io/hostname": "node-2"})
    until(lambda: is_running(namespace, pod), within=20, what="the command's start")

    fault.node_lost("node-2")

    until(lambda: not is_running(namespace, pod), within=60, what="the command's end")


def start_in_launcher(namespace: Namespace, pod: str, **spec: Any) -> None:
    """Start the hard command through an agent in a launcher pod, in the background there."""
    name = launcher.start(namespace, "openmpi4", workers=[pod], **spec)
    command = f"nohup mpirt-rsh {pod} {quoted(_HARD)} > /tmp/said 2>&1 < /dev/null &"
    namespace.kubectl.execute(name, "sh", "-c", command)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
