"""mpirt-rsh ends soon after the command's pod does, with a code of its own and the cause in one line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from mpirt import names
from mpirt.errors import ExitCode
from testbed.ground import Faults, Namespace, PodFaults
from testbed.kube.wait import Moment
from tests.e2e.rsh import agent, deaths, launcher
from tests.e2e.rsh.agent import Ended
from tests.e2e.rsh.deaths import Happens, Worker, assert_one_line, settle, start_worker
from tests.promises import promise

# For how long an end is waited for.
_PATIENCE = 40.0
_TOGETHER = 8


@dataclass(frozen=True)
class Case:
    """What happens, and what the agent must make of it."""

    name: str
    happens: Happens
    within: float
    codes: frozenset[int]
    says: str
    pod: tuple[tuple[str, Any], ...] = ()
    env: tuple[tuple[str, str], ...] = ()


# The command ends with its connection; with a lease it goes on, see test_outages.py.
NO_LEASE = (("MPIRT_LEASE", "0"),)
DIED = frozenset({ExitCode.CONTAINER_DIED})
WHY_FULL = "the pod's own deaths are here with a lease, too, and test_outages has what else happens"
DELETED = frozenset({ExitCode.POD_DELETED})
UNHEARD = frozenset({ExitCode.NODE_LOST, ExitCode.CONNECTION_LOST})
# On v5 an API server tells a false success when it loses the kubelet; on v4 it tells nothing.
_ON_V5 = os.environ.get(names.PROTOCOL_VARIABLE) == "v5"
CUT_OFF = UNHEARD | {ExitCode.UNKNOWN_END} if _ON_V5 else UNHEARD
LOST = frozenset({ExitCode.CONNECTION_LOST})

OF_THE_POD = [
    Case("container's main process killed", deaths.kill_main_process, 1, DIED, "container|ended"),
    Case("OOM kill", deaths.run_out_of_memory, 3, DIED, "OOMKilled|container|ended"),
    Case("force delete", deaths.force_delete, 3, DELETED, "deleted"),
    Case(
        "deleted, with a shared process namespace",
        deaths.delete_gracefully,
        5,
        DELETED,
        "deleted",
        pod=(("shareProcessNamespace", True),),
    ),
]
OF_THE_CLUSTER = [
    # MPIRT_NODE_PATIENCE is 20 s.
    Case("kubelet frozen", deaths.freeze_the_kubelet, 30, frozenset({ExitCode.NODE_LOST}), "node"),
    Case(
        "kubelet frozen, without a lease",
        deaths.freeze_the_kubelet,
        20,
        UNHEARD,
        "node|connection",
        env=NO_LEASE,
    ),
    Case("kubelet restarted", deaths.restart_the_kubelet, 20, CUT_OFF, "connection|cut off|node", env=NO_LEASE),
    Case(
        "containerd restarted",
        deaths.restart_containerd,
        20,
        CUT_OFF,
        "connection|cut off|node",
        env=NO_LEASE,
    ),
    Case("API server killed", deaths.kill_the_api_server, 20, LOST, "connection", env=NO_LEASE),
    Case("API server restarted", deaths.restart_the_api_server, 20, LOST, "connection", env=NO_LEASE),
    Case("packets to the API server dropped", deaths.drop_the_packets, 20, LOST, "connection", env=NO_LEASE),
]


def parameters(cases: Sequence[Case]) -> list[Any]:
    return [
        pytest.param(case, id=case.name, marks=[pytest.mark.full(WHY_FULL)] if case.env == NO_LEASE else [])
        for case in cases
    ]


@promise(
    "A container that dies while a command runs ends it with 248, and the message has the cause.", of="mpirt-rsh"
)
@promise("A pod that is deleted ends its command with 246.", of="mpirt-rsh")
@pytest.mark.parametrize("case", parameters(OF_THE_POD))
def test_the_agent_ends_and_says_why_its_pod_has(namespace: Namespace, pod_fault: PodFaults, case: Case) -> None:
    ends_and_says_why(start_worker(namespace, pod_fault, **dict(case.pod)), case)


@promise(
    "A node that stops answering ends its commands with 249 within 30 s, and the message names it.", of="mpirt-rsh"
)
@pytest.mark.parametrize("case", parameters(OF_THE_CLUSTER))
def test_the_agent_ends_and_says_what_is_away(namespace: Namespace, fault: Faults, case: Case) -> None:
    ends_and_says_why(start_worker(namespace, fault), case)


def ends_and_says_why(worker: Worker, case: Case) -> None:
    ours = watch(worker, case.happens, dict(case.env))

    print(f"{case.name}: {ours.code} after {ours.seconds:.1f} s")
    assert ours.code in case.codes
    assert_one_line(ours, worker.pod, case.says)
    assert ours.seconds < case.within


@promise(
    "A container that dies while a command runs ends it with 248, and the message has the cause.", of="mpirt-rsh"
)
def test_containers_that_die_together_on_a_busy_machine_are_told_as_dead(
    namespace: Namespace, fault: Faults
) -> None:
    """The kubelet is late with its word on them."""
    workers = deaths.start_workers(namespace, fault, _TOGETHER)
    with ExitStack() as stack:
        agents = [stack.enter_context(agent.rsh(namespace, worker.pod, deaths.COMMAND)) for worker in workers]
        settle(*agents)
        for _ in range(2 * (os.cpu_count() or 1)):
            busy = stack.enter_context(subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]))
            stack.callback(busy.kill)
        began = Moment.now()
        for worker in workers:
            deaths.kill_main_process(worker)
        ended = [one.end(within=_PATIENCE, since=began) for one in agents]

    print(f"{_TOGETHER} containers: {sorted(one.seconds for one in ended)}")
    assert [one.code for one in ended] == [ExitCode.CONTAINER_DIED] * _TOGETHER
    for worker, one in zip(workers, ended, strict=True):
        assert_one_line(one, worker.pod, "container|ended")


@promise(
    "A command in a pod that is deleted gets TERM at once, and its agent ends as soon as it does.", of="mpirt-rsh"
)
def test_a_graceful_deletion_gives_the_command_its_signal_and_does_not_wait_for_the_pod(
    namespace: Namespace, pod_fault: PodFaults
) -> None:
    worker = start_worker(namespace, pod_fault, container=deaths.STUBBORN, terminationGracePeriodSeconds=30)
    with agent.rsh(namespace, worker.pod, deaths.OBEYS_TERM) as ours:
        settle(ours)
        began = Moment.now()
        deaths.delete_gracefully(worker)
        assert ours.line() == "terminated"
        told = began.until(Moment.now())
        ended = ours.end(within=_PATIENCE, since=began)

    assert told < 1.5
    assert ended.code == ExitCode.POD_DELETED
    assert_one_line(ended, worker.pod, "deleted")
    assert ended.seconds < told + 5


@promise(
    "A command in a pod that is deleted has the pod's grace period, and its last output arrives.", of="mpirt-rsh"
)
@pytest.mark.sample(1)
def test_a_deleted_pods_command_has_the_pods_grace_for_its_last_words(
    namespace: Namespace, pod_fault: PodFaults
) -> None:
    worker = start_worker(namespace, pod_fault, container=deaths.STUBBORN, terminationGracePeriodSeconds=30)
    with agent.rsh(namespace, worker.pod, deaths.TAKES_ITS_TIME) as ours:
        settle(ours)
        deaths.delete_gracefully(worker)
        ended = ours.end(within=_PATIENCE)

    assert ended.code == ExitCode.POD_DELETED
    assert ended.output == b"saving\nsaved\n"
    assert_one_line(ended, worker.pod, "deleted; the command ended with 3")


@promise("With get on pods alone, a deletion is still reported within 5 s.", of="mpirt-rsh")
@pytest.mark.oldest
@pytest.mark.parametrize(
    "happens", [deaths.force_delete, deaths.delete_gracefully], ids=["force delete", "graceful delete"]
)
def test_a_deletion_is_noticed_with_the_right_to_get_pods_alone(
    namespace: Namespace, pod_fault: PodFaults, happens: Happens
) -> None:
    worker = start_worker(namespace, pod_fault, container=deaths.STUBBORN, terminationGracePeriodSeconds=30)
    account = namespace.account("humble", rules=launcher.rules([worker.pod], pods=["get"]))

    ended = watch(worker, happens, account=account)

    assert ended.code == ExitCode.POD_DELETED
    assert_one_line(ended, worker.pod, "deleted")
    assert ended.seconds < 5


@promise("An eviction of the pod, by a taint or by its node, ends its command with 247.", of="mpirt-rsh")
@pytest.mark.oldest
def test_an_eviction_by_a_taint_is_told(namespace: Namespace, fault: Faults) -> None:
    worker = start_worker(namespace, fault)

    try:
        ours = watch(worker, deaths.drain_by_taint)
    finally:
        deaths.take_back_the_taint(worker)

    assert ours.code == ExitCode.EVICTED
    assert_one_line(ours, worker.pod, "evicted")
    assert ours.seconds < 5


@promise("An eviction of the pod, by a taint or by its node, ends its command with 247.", of="mpirt-rsh")
# On a busy machine a kubelet says why too late for the agent.
@pytest.mark.quiet
@pytest.mark.oldest
def test_an_eviction_by_the_node_is_told(namespace: Namespace, pod_fault: PodFaults) -> None:
    limit = {"resources": {"limits": {"ephemeral-storage": "1Mi"}}}
    worker = start_worker(namespace, pod_fault, container=limit)
    command = (
        "trap 'echo terminated; exit 3' TERM; echo running; dd if=/dev/zero of=/big bs=1M count=8 2>/dev/null; "
        "while :; do sleep 0.1; done"
    )
    with agent.rsh(namespace, worker.pod, command) as ours:
        assert ours.line() == "running"
        ended = ours.end(within=150)

    assert ended.code == ExitCode.EVICTED
    assert_one_line(ended, worker.pod, "evicted")


@promise(
    "A child that keeps the output open does not hold the agent, which says that its output is lost.",
    of="mpirt-rsh",
)
def test_a_child_that_keeps_stdout_open_does_not_hold_the_agent(
    namespace: Namespace, pod_fault: PodFaults
) -> None:
    worker = start_worker(namespace, pod_fault)
    began = Moment.now()
    with agent.rsh(namespace, worker.pod, deaths.LEAVES_A_CHILD) as ours:
        ended = ours.end(within=_PATIENCE, since=began)

    assert (ended.code, ended.output) == (5, b"running\n")
    assert_one_line(ended, worker.pod, "what that writes is lost")
    assert ended.seconds < 5


def watch(worker: Worker, happens: Happens, env: Mapping[str, str] | None = None, *, account: str = "") -> Ended:
    """How the agent ends when it happens."""
    with agent.rsh(worker.namespace, worker.pod, deaths.COMMAND, env=env, account=account) as ours:
        settle(ours)
        began = Moment.now()
        happens(worker)
        return ours.end(within=_PATIENCE, since=began)
