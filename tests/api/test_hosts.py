"""Which pods of a StatefulSet are hosts for mpirt-discover, through everything that happens to pods."""

from __future__ import annotations

import pytest

from testbed import manifests
from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.plane.stages import NEVER, STOPS_AFTER
from tests.promises import promise
from tests.support.discover import LEAST, Ended, run


@pytest.fixture
def account(namespace: Namespace) -> str:
    """May get and list pods, and nothing else."""
    return namespace.account("looker", rules=[LEAST])


def look(namespace: Namespace, account: str, *words: str) -> Ended:
    return run(namespace, "--statefulset", "worker", *words, account=account)


@promise("Hosts are listed in the order of their numbers.", of="mpirt-discover")
@promise("mpirt-discover needs no permission but get and list on pods.", of="mpirt-discover")
def test_twelve_workers_are_in_the_order_of_their_numbers(namespace: Namespace, account: str) -> None:
    namespace.workers(12, "busybox")

    assert look(namespace, account).hosts == [f"worker-{number}:1" for number in range(12)]
    assert look(namespace, account, "--format", "hostfile", "--slots", "4").hosts == [
        f"worker-{number} slots=4" for number in range(12)
    ]


@promise(
    "The annotation mpirt.dev/slots sets a host's slots; slots that can't be read are code 241.",
    of="mpirt-discover",
)
def test_slots_come_from_the_pod(namespace: Namespace, account: str) -> None:
    namespace.workers(2, "busybox")
    namespace.kubectl("annotate", "pod", "worker-1", "mpirt.dev/slots=4")

    assert look(namespace, account).hosts == ["worker-0:1", "worker-1:4"]

    namespace.kubectl("annotate", "--overwrite", "pod", "worker-1", "mpirt.dev/slots=four")
    ended = look(namespace, account)

    assert (ended.code, ended.output) == (241, "")
    assert "pod worker-1: annotation mpirt.dev/slots: " in ended.errors


@promise("A pod is no host from the moment of its deletion, and -v says why it is left out.", of="mpirt-discover")
def test_a_pod_is_no_host_from_the_moment_that_somebody_deletes_it(namespace: Namespace, account: str) -> None:
    namespace.workers(3, "busybox")
    namespace.kubectl("annotate", "pod", "worker-1", f"{STOPS_AFTER}={NEVER}")

    namespace.kubectl("delete", "pod", "worker-1", "--wait=false")

    ended = look(namespace, account, "--verbose")
    assert ended.hosts == ["worker-0:1", "worker-2:1"]
    assert "left out: worker-1: being deleted" in ended.errors

    namespace.kubectl("delete", "pod", "worker-1", "--force", "--grace-period=0", "--wait=false")
    until(lambda: len(look(namespace, account).hosts) == 3, within=60, what="another worker-1 to be Ready")


@promise("A pod with the annotation mpirt.dev/draining is no host.", of="mpirt-discover")
def test_a_pod_that_is_marked_is_no_host(namespace: Namespace, account: str) -> None:
    namespace.workers(2, "busybox")

    namespace.kubectl("annotate", "pod", "worker-0", "mpirt.dev/draining=true")
    assert look(namespace, account).hosts == ["worker-1:1"]

    namespace.kubectl("annotate", "pod", "worker-0", "mpirt.dev/draining-")
    assert look(namespace, account).hosts == ["worker-0:1", "worker-1:1"]


@promise("An empty list with code 0 means that there is no host; no such job is code 243.", of="mpirt-discover")
def test_no_hosts_are_an_answer_and_no_job_is_none(namespace: Namespace, account: str) -> None:
    namespace.kubectl.apply(
        manifests.workers(
            "worker", replicas=1, image=namespace.ground.image("busybox"), nodeSelector={"mpirt-test": "none"}
        )
    )
    until(lambda: namespace.kubectl.get("pods"), within=30, what="the pod to be created")

    assert look(namespace, account).hosts == []

    ended = run(namespace, "--statefulset", "other", account=account)
    assert (ended.code, ended.output) == (243, "")


@promise("Pods of two owners are two jobs and never one list: code 241 names both.", of="mpirt-discover")
def test_two_stateful_sets_are_two_jobs(namespace: Namespace, account: str) -> None:
    image = namespace.ground.image("busybox")
    for name in ("worker", "other"):
        made = manifests.workers(name, replicas=1, image=image)
        made["spec"]["template"]["metadata"]["labels"]["mpirt.dev/job"] = "train"
        namespace.kubectl.apply(made)
    for name in ("worker", "other"):
        namespace.wait_until_all_ready(f"statefulset/{name}")

    ended = run(namespace, "--job", "train", account=account)

    assert (ended.code, ended.output) == (241, "")
    assert (
        "two jobs match: pod other-0 of StatefulSet other and pod worker-0 of StatefulSet worker" in ended.errors
    )
    assert look(namespace, account).hosts == ["worker-0:1"]


@promise(
    "Without the permission to list pods mpirt-discover prints nothing and ends with 242.", of="mpirt-discover"
)
def test_a_permission_that_is_withdrawn_is_no_empty_list(namespace: Namespace, account: str) -> None:
    namespace.workers(2, "busybox")
    assert len(look(namespace, account).hosts) == 2

    namespace.kubectl("delete", "rolebinding", account)
    until(lambda: look(namespace, account).code != 0, within=30, what="the permission to be gone")
    ended = look(namespace, account)

    assert (ended.code, ended.output) == (242, "")
    assert f'the Role in namespace "{namespace.name}" must hold list on pods' in ended.errors

    namespace.account(account, rules=[LEAST])
    until(lambda: look(namespace, account).code == 0, within=30, what="the permission to be back")
