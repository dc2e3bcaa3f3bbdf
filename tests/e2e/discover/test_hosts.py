"""Which pods of a real StatefulSet are hosts as its kubelet tells of them; all else of hosts is in tests/api."""

from __future__ import annotations

from testbed.ground import Namespace
from testbed.kube.wait import until
from tests.promises import promise
from tests.support.discover import LEAST, run

# Ready as long as nobody says otherwise.
PROBED = {
    "readinessProbe": {
        "exec": {"command": ["test", "!", "-e", "/tmp/busy"]},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
}


@promise("A pod that is not Ready is no host until it is.", of="mpirt-discover")
def test_a_pod_that_is_not_ready_is_no_host_until_it_is(namespace: Namespace) -> None:
    account = namespace.account("looker", rules=[LEAST])

    def hosts() -> list[str]:
        return run(namespace, "--statefulset", "worker", account=account).hosts

    namespace.workers(2, "busybox", container=PROBED)

    namespace.kubectl.execute("worker-0", "touch", "/tmp/busy")
    until(lambda: hosts() == ["worker-1:1"], within=30, what="worker-0 to leave the list")
    namespace.kubectl.execute("worker-0", "rm", "/tmp/busy")
    until(lambda: len(hosts()) == 2, within=30, what="worker-0 to come back")
