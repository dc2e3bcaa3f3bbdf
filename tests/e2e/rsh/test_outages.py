"""
A command outlives its connection: what breaks between the agent and its pod costs neither the command nor a byte.

Every outage has its lower bound in seconds; the command goes on writing a line every tenth of a second meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.e2e.ground import Faults, Namespace
from tests.e2e.rsh import agent, hard

Workers = Callable[[int, str], list[str]]

pytestmark = pytest.mark.alone

# It writes its pid and numbers until the file is there, and then how many there were.
COMMAND = (
    "echo running; n=0; until [ -e /tmp/enough ]; do n=$((n + 1)); echo $$ $n; sleep 0.1; done; "
    "echo last $n; exit 3"
)


def goes_on(namespace: Namespace, pod: str, outage: Callable[[], None]) -> None:
    """Run the command through an outage, and check what came of it."""
    with agent.rsh(namespace, pod, COMMAND) as running:
        reader = agent.Lines(running)
        reader.until(lambda lines: "running" in lines and len(lines) > 5)
        outage()
        after = len(reader.lines) + 20
        reader.until(lambda lines: len(lines) > after)
        namespace.kubectl.execute(pod, "touch", "/tmp/enough")
        ended = running.end(within=60, since=time.monotonic())
        lines = reader.whole()

    assert ended.code == 3
    numbers = [line.split() for line in lines[1:-1]]
    assert {pid for pid, _ in numbers} == {numbers[0][0]}, "the same process from beginning to end"
    assert [int(number) for _, number in numbers] == list(range(1, len(numbers) + 1))
    assert lines[-1] == f"last {len(numbers)}"


def lasting(begin: Callable[[], None], end: Callable[[], None], seconds: float) -> None:
    """An outage of so many seconds."""
    begin()
    # Nothing tells of time that has to pass.
    time.sleep(seconds)
    end()


def test_an_api_server_that_is_killed_and_away(namespace: Namespace, workers: Workers, fault: Faults) -> None:
    [pod] = workers(1, "busybox")

    goes_on(namespace, pod, lambda: lasting(lambda: fault.kill("apiserver"), lambda: fault.start("apiserver"), 15))


def test_an_api_server_that_is_frozen(namespace: Namespace, workers: Workers, fault: Faults) -> None:
    [pod] = workers(1, "busybox")

    goes_on(
        namespace, pod, lambda: lasting(lambda: fault.freeze("apiserver"), lambda: fault.thaw("apiserver"), 25)
    )


def test_packets_that_are_dropped(namespace: Namespace, workers: Workers, fault: Faults) -> None:
    [pod] = workers(1, "busybox")

    goes_on(namespace, pod, lambda: lasting(fault.drop, fault.undrop, 25))


@pytest.mark.parametrize("kind", ["kubelet", "containerd"])
def test_a_node_component_that_is_restarted(
    namespace: Namespace, workers: Workers, fault: Faults, kind: str
) -> None:
    [pod] = workers(1, "busybox")
    node = namespace.kubectl.get("pod", pod)["spec"]["nodeName"]

    goes_on(
        namespace,
        pod,
        lambda: lasting(lambda: fault.kill(f"{kind}:{node}"), lambda: fault.start(f"{kind}:{node}"), 3),
    )


def test_a_later_launcher_finds_nothing_of_an_earlier_one(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, hard.COMMAND, env={"MPIRT_FENCE": "job:1"}) as running:
        assert running.line() == "running"
        running.process.kill()
    assert hard.is_running(namespace, pod)

    with agent.rsh(namespace, pod, "ps -o args", env={"MPIRT_FENCE": "job:2"}) as later:
        ended = later.end(within=20, since=time.monotonic())

    assert ended.code == 0
    assert f"sleep {hard.SECONDS}" not in ended.output.decode()


def test_folders_and_keepers_are_gone_with_their_commands(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    for number in range(5):
        with agent.rsh(namespace, pod, f"exit {number}") as running:
            assert running.end(within=20, since=time.monotonic()).code == number

    left = namespace.kubectl.execute(pod, "sh", "-c", "ls -d /dev/shm/mpirt-*; ps -o args | grep '[b]ridge'; true")
    assert left == ""
