"""
mpirt-rsh ends soon after the command's pod does, with a code of its own and the cause in one line.

Beside it, the same command runs under `kubectl exec` in the same pod; what that does is printed, not asserted.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mpirt import names
from mpirt.errors import ExitCode
from tests.e2e.ground import Faults, Namespace
from tests.e2e.rsh import agent, launcher
from tests.e2e.rsh.agent import Agent, Ended
from tests.e2e.rsh.conftest import Endings
from tests.kube import faults, nodes

# For how long kubectl is looked at.
_PATIENCE = 30.0

# Long past its first second, from which on the agent watches the pod.
_UNTIL_SETTLED = "echo running; sleep 2; echo settled"
_COMMAND = f"{_UNTIL_SETTLED}; exec sleep 600"
_FOR_EVER = "while :; do sleep 0.1; done"

_STUBBORN = {"command": ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"]}


@dataclass(frozen=True)
class Worker:
    """A worker on which something is about to happen."""

    namespace: Namespace
    pod: str
    node: str
    fault: Faults
    main_pid: int
    """The pid of the container's first process, as the host sees it."""


Happens = Callable[[Worker], None]


@dataclass(frozen=True)
class Case:
    """What happens, and what the agent must make of it."""

    name: str
    happens: Happens
    within: float
    codes: frozenset[int]
    says: str
    pod: tuple[tuple[str, Any], ...] = ()


def kill_main_process(worker: Worker) -> None:
    os.kill(worker.main_pid, signal.SIGKILL)


def force_delete(worker: Worker) -> None:
    worker.fault.force_delete(worker.namespace.kubectl, worker.pod)


def run_out_of_memory(worker: Worker) -> None:
    worker.fault.oom(worker.namespace.kubectl, worker.pod)


def lose_the_node(worker: Worker) -> None:
    worker.fault.node_lost(worker.node)


def freeze_the_kubelet(worker: Worker) -> None:
    worker.fault.freeze(f"kubelet:{worker.node}")


def restart_the_kubelet(worker: Worker) -> None:
    worker.fault.kill(f"kubelet:{worker.node}")
    worker.fault.start(f"kubelet:{worker.node}")


def restart_containerd(worker: Worker) -> None:
    worker.fault.kill(f"containerd:{worker.node}")
    worker.fault.start(f"containerd:{worker.node}")


def kill_the_api_server(worker: Worker) -> None:
    worker.fault.kill("apiserver")


def restart_the_api_server(worker: Worker) -> None:
    worker.fault.kill("apiserver")
    worker.fault.start("apiserver")


def drop_the_packets(worker: Worker) -> None:
    worker.fault.drop()


def delete_gracefully(worker: Worker) -> None:
    worker.namespace.kubectl("delete", "pod", worker.pod, "--wait=false")


def drain_by_taint(worker: Worker) -> None:
    worker.namespace.kubectl("taint", "node", worker.node, "mpirt-test=gone:NoExecute")


DIED = frozenset({137, ExitCode.CONTAINER_DIED})
DELETED = frozenset({ExitCode.POD_DELETED})
UNHEARD = frozenset({ExitCode.NODE_LOST, ExitCode.CONNECTION_LOST})
# On v5 an API server tells a false success when it loses the kubelet; on v4 it tells nothing.
_ON_V5 = os.environ.get(names.PROTOCOL_VARIABLE) == "v5"
CUT_OFF = UNHEARD | {ExitCode.UNKNOWN_END} if _ON_V5 else UNHEARD
LOST = frozenset({ExitCode.CONNECTION_LOST})

CASES = [
    Case("container's main process killed", kill_main_process, 1, DIED, "container|ended"),
    Case("OOM kill", run_out_of_memory, 3, DIED, "OOMKilled|container|ended"),
    Case("force delete", force_delete, 3, DELETED, "deleted"),
    Case("node partitioned", lose_the_node, 20, frozenset({ExitCode.NODE_LOST}), "node"),
    Case("kubelet frozen", freeze_the_kubelet, 20, UNHEARD, "node|connection"),
    Case("kubelet restarted", restart_the_kubelet, 20, CUT_OFF, "connection|cut off|node"),
    Case("containerd restarted", restart_containerd, 20, CUT_OFF, "connection|cut off|node"),
    Case("API server killed", kill_the_api_server, 20, LOST, "connection"),
    Case("API server restarted", restart_the_api_server, 20, LOST, "connection"),
    Case("packets to the API server dropped", drop_the_packets, 20, LOST, "connection"),
    Case(
        "deleted, with a shared process namespace",
        delete_gracefully,
        5,
        DELETED,
        "deleted",
        pod=(("shareProcessNamespace", True),),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_agent_ends_and_says_why(namespace: Namespace, fault: Faults, endings: Endings, case: Case) -> None:
    worker = start_worker(namespace, fault, **dict(case.pod))

    ours, theirs = watch_both(worker, case.happens)

    endings.add(case.name, ours, theirs)
    assert ours.code in case.codes
    assert_one_line(ours, worker.pod, case.says)
    assert ours.seconds < case.within


def test_a_graceful_deletion_gives_the_command_its_signal_and_does_not_wait_for_the_pod(
    namespace: Namespace, fault: Faults, endings: Endings
) -> None:
    worker = start_worker(namespace, fault, container=_STUBBORN, terminationGracePeriodSeconds=30)
    # Its shell would tell on stderr of the sleep that the signal ends.
    command = f"exec 2>/dev/null; trap 'echo terminated; exit 3' TERM; {_UNTIL_SETTLED}; {_FOR_EVER}"
    with (
        agent.rsh(namespace, worker.pod, command) as ours,
        agent.kubectl_exec(namespace, worker.pod, command) as theirs,
    ):
        settle(ours, theirs)
        began = time.monotonic()
        delete_gracefully(worker)
        assert ours.line() == "terminated"
        told = time.monotonic() - began
        ended = ours.end(within=_PATIENCE, since=began)
        endings.add("graceful delete, 30 s", ended, theirs.end(within=_PATIENCE + 2, since=began))

    assert told < 1.5
    assert ended.code == ExitCode.POD_DELETED
    assert_one_line(ended, worker.pod, "deleted")
    assert ended.seconds < told + 5


@pytest.mark.parametrize("happens", [force_delete, delete_gracefully], ids=["force delete", "graceful delete"])
def test_a_deletion_is_noticed_with_the_right_to_get_pods_alone(
    namespace: Namespace, fault: Faults, happens: Happens
) -> None:
    worker = start_worker(namespace, fault, container=_STUBBORN, terminationGracePeriodSeconds=30)
    account = namespace.account("humble", rules=launcher.rules([worker.pod], pods=["get"]))
    with agent.rsh(namespace, worker.pod, _COMMAND, account=account) as ours:
        settle(ours)
        began = time.monotonic()
        happens(worker)
        ended = ours.end(within=_PATIENCE, since=began)

    assert ended.code == ExitCode.POD_DELETED
    assert_one_line(ended, worker.pod, "deleted")
    assert ended.seconds < 5


def test_an_eviction_by_a_taint_is_told(namespace: Namespace, fault: Faults, endings: Endings) -> None:
    worker = start_worker(namespace, fault)

    try:
        ours, theirs = watch_both(worker, drain_by_taint)
    finally:
        namespace.kubectl("taint", "node", worker.node, "mpirt-test-")

    endings.add("evicted by a taint", ours, theirs)
    assert ours.code == ExitCode.EVICTED
    assert_one_line(ours, worker.pod, "evicted")
    assert ours.seconds < 5


def test_an_eviction_by_the_node_is_told(namespace: Namespace, fault: Faults, endings: Endings) -> None:
    limit = {"resources": {"limits": {"ephemeral-storage": "1Mi"}}}
    worker = start_worker(namespace, fault, container=limit)
    command = (
        "trap 'echo terminated; exit 3' TERM; echo running; dd if=/dev/zero of=/big bs=1M count=8 2>/dev/null; "
        "while :; do sleep 0.1; done"
    )
    with (
        agent.rsh(namespace, worker.pod, command) as ours,
        agent.kubectl_exec(namespace, worker.pod, _COMMAND) as theirs,
    ):
        assert (ours.line(), theirs.line()) == ("running", "running")
        began = time.monotonic()
        ended = ours.end(within=150, since=began)
        endings.add("evicted for its use of the disk (from the write)", ended, theirs.end(within=150, since=began))

    assert ended.code == ExitCode.EVICTED
    assert_one_line(ended, worker.pod, "evicted")


def test_a_child_that_keeps_stdout_open_does_not_hold_the_agent(
    namespace: Namespace, fault: Faults, endings: Endings
) -> None:
    worker = start_worker(namespace, fault)
    command = "echo running; sleep 600 & exit 5"
    began = time.monotonic()
    with (
        agent.rsh(namespace, worker.pod, command) as ours,
        agent.kubectl_exec(namespace, worker.pod, command) as theirs,
    ):
        ended = ours.end(within=_PATIENCE, since=began)
        endings.add("a child keeps stdout open", ended, theirs.end(within=10, since=began))

    assert (ended.code, ended.output, ended.errors) == (5, b"running\n", "")
    assert ended.seconds < 5


def start_worker(namespace: Namespace, fault: Faults, **spec: Any) -> Worker:
    """A worker on node-2, so that a fault of its node leaves the other one alone."""
    pods = namespace.workers(1, "busybox", nodeSelector={"kubernetes.io/hostname": "node-2"}, **spec)
    uid = namespace.kubectl.get("pod", pods[0])["metadata"]["uid"]
    running = [pid for pid in nodes.container_pids(faults.node_named("node-2"), uid) if not nodes.is_pause(pid)]
    return Worker(namespace, pods[0], "node-2", fault, nodes.main_process(running))


def watch_both(worker: Worker, happens: Happens) -> tuple[Ended, Ended]:
    """How both agents end when it happens."""
    with (
        agent.rsh(worker.namespace, worker.pod, _COMMAND) as ours,
        agent.kubectl_exec(worker.namespace, worker.pod, _COMMAND) as theirs,
    ):
        settle(ours, theirs)
        began = time.monotonic()
        happens(worker)
        return ours.end(within=_PATIENCE, since=began), theirs.end(within=_PATIENCE, since=began)


def settle(*agents: Agent) -> None:
    """Wait until the commands of all agents have run for a while."""
    for line in ("running", "settled"):
        assert [one.line() for one in agents] == [line] * len(agents)


def assert_one_line(ended: Ended, pod: str, says: str) -> None:
    """The agent's own words are one line that names itself, the pod and the cause."""
    lines = ended.errors.splitlines()
    assert len(lines) == 1, ended.errors
    assert lines[0].startswith("mpirt-rsh: ")
    assert pod in lines[0]
    assert re.search(says, lines[0])
