"""MPIRT_WAIT: a command begins when its pod is Ready, and says what is missing meanwhile."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence

import pytest

from tests.apiserver.faults import Status, Text
from tests.apiserver.pods import Pod, pod
from tests.apiserver.server import Honest
from tests.promises import promise
from tests.protocol.rsh.agent import Agent, Ended, Ground

JOB = {"mpirt.dev/job": "train"}
SETTINGS = {"MPIRT_WAIT": "60", "MPIRT_SELECTOR": "mpirt.dev/job=train"}


NO_CONTAINER = Text(500, 'container not found ("worker")')
NO_KUBELET = Text(500, "error dialing backend: remote error: tls: internal error")


def worker(name: str = "w-0", *, phase: str = "Running", is_ready: bool = True, node: str = "") -> Pod:
    found = pod(name, labels=JOB, phase=phase, node="node-1" if phase == "Running" else node)
    if not is_ready:
        for condition in found["status"]["conditions"]:
            condition["status"] = "False"
    return found


def listing(ground: Ground, *hosts: str) -> dict[str, str]:
    """Settings of a launcher whose list of hosts has these."""
    path = ground.folder / "hostfile"
    path.write_text("".join(f"{host} slots=1\n" for host in hosts))
    return {**SETTINGS, "OMPI_MCA_orte_default_hostfile": str(path)}


def waiting(ground: Ground, *words: str, env: dict[str, str]) -> Agent:
    """An agent whose switchboard has asked for the pods, and opened the watch on them."""
    agent = ground.start(*words, env=env)
    ground.server.wait_for("watch")
    return agent


def execs(ground: Ground) -> int:
    return len(ground.server.asked("exec"))


class TestACommandBegins:
    @promise("With MPIRT_WAIT a command begins in the moment in which its pod is Ready.", of="mpirt-rsh",
             no_cluster="the moment is between two answers of the API server")  # fmt: skip
    @pytest.mark.parametrize(
        "before",
        [
            pytest.param([worker(phase="Pending")], id="pending"),
            pytest.param([worker(is_ready=False)], id="running, but not Ready"),
            pytest.param([], id="not there"),
        ],
    )
    def test_when_its_pod_is_ready(self, ground: Ground, before: Sequence[Pod]) -> None:
        ground.server.world.delete("w-0")
        ground.server.world.put(*before)
        agent = waiting(ground, "w-0", "echo out", env=listing(ground, "w-0"))
        assert execs(ground) == 0

        ground.server.world.put(worker())

        assert agent.wait() == Ended(0, b"out\n", "")
        assert execs(ground) == 1

    def test_at_once_if_it_is_ready(self, ground: Ground) -> None:
        ground.server.world.put(worker())

        assert ground.run("w-0", "echo out", env=SETTINGS) == Ended(0, b"out\n", "")

    def test_when_its_pod_is_ready_if_its_role_comes_after_it(self, ground: Ground) -> None:
        ground.server.world.delete("w-0")
        for operation in ("list", "exec"):
            ground.server.always(operation, Status(403, "Forbidden", "no"))
        agent = ground.start("w-0", "echo out", env=listing(ground, "w-0"))
        ground.server.wait_for("list", 2)

        for operation in ("list", "exec"):
            ground.server.always(operation, Honest())
        ground.server.wait_for("watch")
        assert execs(ground) == 0
        ground.server.world.put(worker())

        ended = agent.wait()
        assert (ended.code, ended.output, execs(ground)) == (0, b"out\n", 1)

    def test_without_waiting_if_no_list_has_a_pod_that_does_not_exist(self, ground: Ground) -> None:
        ground.server.world.put(worker())

        ended = ground.run("w-1", "echo out", env=listing(ground, "w-0"))

        assert (ended.code, ended.output) == (243, b"")
        assert "w-1" in ended.line


class TestACommandOfAPodThatIsStarted:
    @promise("With MPIRT_WAIT a few commands begin as soon as their containers run, before Kubernetes says Ready.",
             of="mpirt-rsh", no_cluster="there the moment depends on the kubelet")  # fmt: skip
    def test_begins_when_the_container_runs(self, ground: Ground) -> None:
        ground.server.world.put(worker(phase="Pending", node="node-1"))
        ground.server.on("exec", *[NO_CONTAINER] * 3)

        assert ground.run("w-0", "echo out", env=SETTINGS) == Ended(0, b"out\n", "")
        assert execs(ground) == 4

    @pytest.mark.parametrize("answer", [NO_CONTAINER, NO_KUBELET], ids=["no container", "no way to its node"])
    def test_waits_again_if_it_came_too_early(self, ground: Ground, answer: Text) -> None:
        ground.server.world.put(worker(phase="Pending", node="node-1"))
        ground.server.always("exec", answer)
        agent = ground.start("w-0", "read -r line; echo $line", stdin=subprocess.PIPE, env=SETTINGS)
        agent.feed(b"held\n")
        assert agent.process.stderr is not None
        line = agent.process.stderr.readline()
        too_early = execs(ground)

        ground.server.always("exec", Honest())
        ground.server.world.put(worker())

        assert line == b"mpirt-rsh: waiting for 1 of 1 workers: w-0 is not Ready: Pending\n"
        ended = agent.wait()
        assert (ended.code, ended.output) == (0, b"held\n")
        assert execs(ground) == too_early + 1

    def test_ends_by_a_signal(self, ground: Ground) -> None:
        ground.server.world.put(worker(phase="Pending", node="node-1"))
        ground.server.always("exec", NO_CONTAINER)
        agent = ground.start("w-0", "echo out", env=SETTINGS)
        ground.server.wait_for("exec", 2)

        agent.process.send_signal(signal.SIGTERM)

        assert agent.wait() == Ended(128 + 15, b"", "")


class TestACommandThatWaits:
    def test_ends_by_a_signal(self, ground: Ground) -> None:
        ground.server.world.put(worker(phase="Pending"))
        agent = waiting(ground, "w-0", "echo out", env=SETTINGS)

        agent.process.send_signal(signal.SIGTERM)

        assert agent.wait() == Ended(128 + 15, b"", "")
        assert execs(ground) == 0

    def test_says_what_is_missing_and_gives_up_when_its_time_is_over(self, ground: Ground) -> None:
        ground.server.world.put(worker(phase="Pending"))

        ended = ground.run("w-0", "echo out", env={**SETTINGS, "MPIRT_WAIT": "6"})

        assert (ended.code, ended.output) == (243, b"")
        assert ended.lines == [
            "waiting for 1 of 1 workers: w-0 is not Ready: Pending",
            "pod w-0 is not Ready: Pending, after 6 s of waiting",
        ]
