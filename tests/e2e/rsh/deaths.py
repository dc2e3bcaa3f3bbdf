"""
What may happen to a worker while a command runs in it, and the commands that it happens to.

Used by the tests of mpirt-rsh, and by the benchmark that runs kubectl exec beside it.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed import manifests
from testbed.ground import Faults, Namespace, PodFaults
from testbed.kube import faults, nodes
from tests.e2e.rsh.agent import Agent, Ended

# Long past its first second, from which on the agent watches the pod.
UNTIL_SETTLED = "echo running; sleep 2; echo settled"
COMMAND = f"{UNTIL_SETTLED}; exec sleep 600"
OBEYS_TERM = f"exec 2>/dev/null; trap 'echo terminated; exit 3' TERM; {UNTIL_SETTLED}; while :; do sleep 0.1; done"
"""Its shell would tell on stderr of the sleep that the signal ends."""
TAKES_ITS_TIME = OBEYS_TERM.replace("echo terminated", "echo saving; sleep 8; echo saved")
"""Longer than an agent that is told to end would wait."""
LEAVES_A_CHILD = "echo running; sleep 600 & exit 5"

STUBBORN = {"command": ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"]}
"""The main process of a container that is killed at the end of its grace period."""

_NODE = "node-2"
_TAINT = "mpirt-test"


@dataclass(frozen=True)
class Worker:
    """A worker on which something is about to happen."""

    namespace: Namespace
    pod: str
    node: str
    pod_fault: PodFaults
    main_pid: int
    """The pid of the container's first process, as the host sees it."""

    @property
    def fault(self) -> Faults:
        """What may happen to others, too."""
        assert isinstance(self.pod_fault, Faults), "this test may run beside others"
        return self.pod_fault


Happens = Callable[[Worker], None]


def start_worker(namespace: Namespace, fault: PodFaults, **spec: Any) -> Worker:
    """A worker on node-2, so that a fault of its node leaves the other one alone."""
    [worker] = start_workers(namespace, fault, 1, **spec)
    return worker


def start_workers(namespace: Namespace, fault: PodFaults, count: int, **spec: Any) -> list[Worker]:
    """The same for many."""
    pods = namespace.workers(count, "busybox", **manifests.on(_NODE), **spec)
    uids = [namespace.kubectl.get("pod", pod)["metadata"]["uid"] for pod in pods]
    mains = [nodes.main_process_of_pod(faults.node_named(_NODE), uid) for uid in uids]
    return [Worker(namespace, pod, _NODE, fault, main) for pod, main in zip(pods, mains, strict=True)]


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


# ---- what happens --------------------------------------------------------------------------------------------


def kill_main_process(worker: Worker) -> None:
    os.kill(worker.main_pid, signal.SIGKILL)


def force_delete(worker: Worker) -> None:
    worker.pod_fault.force_delete(worker.namespace.kubectl, worker.pod)


def run_out_of_memory(worker: Worker) -> None:
    worker.pod_fault.oom(worker.namespace.kubectl, worker.pod)


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
    worker.namespace.kubectl("taint", "node", worker.node, f"{_TAINT}=gone:NoExecute")


def take_back_the_taint(worker: Worker) -> None:
    worker.namespace.kubectl("taint", "node", worker.node, f"{_TAINT}-")
