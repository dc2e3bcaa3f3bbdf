"""--wait: until the workers are Ready, or with the reason why they aren't."""

from __future__ import annotations

import pytest

from testbed import manifests
from testbed.ground import Namespace
from tests.promises import promise
from tests.support.discover import LEAST, begin, end, run


@promise("mpirt-discover --wait waits until so many workers are Ready.", of="mpirt-discover")
def test_discovery_waits_for_workers_that_do_not_exist_yet(namespace: Namespace) -> None:
    account = namespace.account("looker", rules=[LEAST])
    waits = begin(namespace, "--statefulset=worker", "--wait=3", "--timeout=120", account=account)
    # Its first line is there once it has looked and found nothing.
    assert waits.stderr is not None
    first = waits.stderr.readline()
    namespace.workers(3, "busybox")

    ended = end(waits)

    assert first.startswith("mpirt-discover: waiting: --statefulset worker: no pod in namespace ")
    assert ended.hosts == ["worker-0:1", "worker-1:1", "worker-2:1"]
    assert ended.errors == ""


@promise("mpirt-discover --wait ends with 253 and names the missing workers with the causes.", of="mpirt-discover")
def test_discovery_says_which_workers_are_missing_and_why(namespace: Namespace) -> None:
    image = namespace.ground.image("busybox")
    good = manifests.pod("good", image=image)
    nowhere = manifests.pod("nowhere", image=image, nodeSelector={"mpirt-test": "none"})
    unknown = manifests.pod("unknown", image="mpirt-test/no-such-image:dev")
    for pod in (good, nowhere, unknown):
        pod["metadata"]["labels"] = {"job": "x"}
    namespace.kubectl.apply(good, nowhere, unknown)
    namespace.wait_until_ready("good")

    ended = run(namespace, "--selector=job=x", "--wait=4", "--timeout=20")

    assert (ended.code, ended.output) == (253, "")
    last = ended.errors.splitlines()[-1]
    assert last.startswith("mpirt-discover: 1 of 4 workers are Ready; nowhere: Unschedulable, unknown: ")
    assert "ImagePull" in last
    assert last.endswith(", 1 not created yet; gave up after 20 s")


@pytest.mark.one_in(3)
def test_a_refusal_passes_when_the_permission_comes(namespace: Namespace) -> None:
    account = namespace.account("looker", rules=[])
    namespace.workers(1, "busybox")
    waits = begin(namespace, "--statefulset=worker", "--wait=1", "--timeout=60", account=account)
    assert waits.stderr is not None
    first = waits.stderr.readline()
    namespace.account(account, rules=[LEAST])

    ended = end(waits)

    assert "must hold list on pods" in first
    assert ended.hosts == ["worker-0:1"]
