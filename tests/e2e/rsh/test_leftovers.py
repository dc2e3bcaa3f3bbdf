"""Nothing of a command is left in its pod: neither of an earlier launcher's, nor of one that has ended."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from images import build
from mpirt.rsh.protocol.entrance import BOOTSTRAP
from testbed.ground import Namespace
from testbed.kube.wait import until
from tests.e2e.rsh import agent, hard, jobworkers, launcher
from tests.promises import promise

Workers = Callable[[int, str], list[str]]

ARCHITECTURE = build.architecture()
_STRAY_AGE = "-DSTRAY_AGE=100"
"""A second, where a keeper waits for two minutes."""


@promise("A later launcher of a job first ends the commands that an earlier one has left.", of="mpirt-rsh")
def test_a_later_launcher_finds_nothing_of_an_earlier_one(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, hard.COMMAND, env={"MPIRT_FENCE": "job:1"}) as running:
        assert running.line() == "running"
        running.process.kill()
    assert hard.is_running(namespace, pod)

    with agent.rsh(namespace, pod, "ps -o args", env={"MPIRT_FENCE": "job:2"}) as later:
        ended = later.end(within=20)

    assert ended.code == 0
    assert f"sleep {hard.SECONDS}" not in ended.output.decode()


@promise("A later launcher of a job first ends the commands that an earlier one has left.", of="mpirt-rsh")
@pytest.mark.one_in(3)
def test_a_restarted_launcher_finds_nothing_of_the_earlier_one_though_its_pods_containers_share_processes(
    namespace: Namespace, workers: Workers
) -> None:
    [pod] = workers(1, "busybox")
    name = hard.start_in_launcher(namespace, pod, variables={"MPIRT_FENCE": "job"}, shareProcessNamespace=True)
    until(lambda: hard.is_running(namespace, pod), within=30, what="the earlier command")
    launcher.restart(namespace, name)
    assert hard.is_running(namespace, pod)

    namespace.kubectl.execute(name, "env", "MPIRT_FENCE=job", "mpirt-rsh", pod, "true")

    assert not hard.is_running(namespace, pod)


@promise("A later launcher of a job first ends the commands that an earlier one has left.", of="mpirt-rsh")
@pytest.mark.one_in(3)
def test_a_later_launcher_finds_nothing_of_an_earlier_one_though_its_nodes_clock_is_behind(
    namespace: Namespace, workers: Workers
) -> None:
    [pod] = workers(1, "busybox")
    earlier = hard.start_in_launcher(namespace, pod, variables={"MPIRT_FENCE": "job"})
    until(lambda: hard.is_running(namespace, pod), within=30, what="the earlier command")
    namespace.kubectl("delete", "pod", earlier)
    later = launcher.start(namespace, "openmpi4", workers=[pod], name="later")
    # The runtime has just written it, by the node's clock.
    namespace.kubectl.execute(later, "touch", "-d", "2001-02-03", "/etc/hostname")
    assert hard.is_running(namespace, pod)

    namespace.kubectl.execute(later, "env", "MPIRT_FENCE=job", "mpirt-rsh", pod, "true")

    assert not hard.is_running(namespace, pod)


@promise("A command that has ended leaves no process, file or socket in its pod.", of="mpirt-rsh")
def test_folders_and_keepers_are_gone_with_their_commands(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    for number in range(5):
        with agent.rsh(namespace, pod, f"exit {number}") as running:
            assert running.end(within=20).code == number

    look = "ls -d /dev/shm/mpirt-* /tmp/mpirt-[!k]*; ps -o args | grep '[b]ridge'; true"
    left = namespace.kubectl.execute(pod, "sh", "-c", look)
    assert left == ""


@promise(
    "A shell that the container runtime has left behind is ended by the keeper of a later command.", of="mpirt-rsh"
)
def test_a_shell_that_a_runtime_has_left_ends_with_a_later_command(namespace: Namespace, tmp_path: Path) -> None:
    program = build.build("keeper", tmp_path, ARCHITECTURE, _STRAY_AGE)
    keepers = {program.name: b64encode(program.read_bytes()).decode()}
    [pod] = jobworkers.start(namespace, 1, "busybox", keepers=keepers)
    *_, words = BOOTSTRAP

    def is_there() -> bool:
        return words in namespace.kubectl.execute(pod, "ps", "-o", "args")

    def is_gone_after_another() -> bool:
        with agent.rsh(namespace, pod, "true") as later:
            assert later.end(within=20).code == 0
        return not is_there()

    with agent.kubectl_exec(namespace, pod, words) as left:
        until(is_there, within=30, what="the shell")
        until(is_gone_after_another, within=30, what="the end of the shell")

        assert left.end(within=20).code == 137
