"""Nothing of a command is left in its pod: neither of an earlier launcher's, nor of one that has ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.e2e.ground import Namespace
from tests.e2e.rsh import agent, hard

Workers = Callable[[int, str], list[str]]


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
