"""In a launcher in which commands run, mpirt-discover gets its pods from the switchboard."""

from __future__ import annotations

from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.manifests import headless_service
from tests.e2e.rsh import launcher
from tests.promises import promise
from tests.support.discover import workers

JOB = {"mpirt.dev/job": "train"}
ASK = "MPIRT_SWITCHBOARD=on mpirt-discover --selector mpirt.dev/job=train --verbose 2>&1"
FROM_THE_SWITCHBOARD = "mpirt-discover: pods from the switchboard"


@promise("If a switchboard follows the pods, mpirt-discover gets the same list from it.", of="mpirt-discover")
def test_the_switchboards_list_follows_the_pods(namespace: Namespace) -> None:
    kubectl = namespace.kubectl
    made = workers("worker", image=namespace.ground.image("busybox"), replicas=3, labels=JOB)
    kubectl.apply(headless_service("worker"), made)
    namespace.wait_until_all_ready("statefulset/worker")
    pod = launcher.start(namespace, "openmpi4", workers=["worker-0", "worker-1", "worker-2", "worker-3"])

    def ask() -> list[str]:
        return kubectl.execute(pod, "sh", "-c", ASK).splitlines()

    def answers(*hosts: str) -> bool:
        return ask() == [FROM_THE_SWITCHBOARD, *hosts]

    run = "MPIRT_SWITCHBOARD=on nohup mpirt-rsh worker-2 'sleep 600' </dev/null >/dev/null 2>&1 &"
    kubectl.execute(pod, "sh", "-c", run)
    began = ("worker-0:1", "worker-1:1", "worker-2:1")
    until(lambda: answers(*began), within=60, what="the switchboard", instead=ask)

    kubectl("annotate", "pod", "worker-0", "mpirt.dev/draining=true")
    left_out = "mpirt-discover: left out: worker-0: draining (mpirt.dev/draining)"
    until(lambda: answers(left_out, "worker-1:1", "worker-2:1"), within=30, what="worker-0 to leave", instead=ask)
    kubectl("annotate", "pod", "worker-0", "mpirt.dev/draining-", "mpirt.dev/slots=4")
    kubectl("scale", "statefulset/worker", "--replicas=4")
    hosts = ("worker-0:4", "worker-1:1", "worker-2:1", "worker-3:1")
    until(lambda: answers(*hosts), within=60, what="worker-3 to come", instead=ask)
    kubectl("delete", "pod", "worker-3", "--grace-period=1")
    until(lambda: answers(*hosts), within=60, what="another worker-3", instead=ask)

    # When its command ends there is no watch any more, and soon no switchboard.
    kubectl("delete", "pod", "worker-2", "--grace-period=1")
    until(lambda: FROM_THE_SWITCHBOARD not in ask(), within=60, what="the switchboard's end", instead=ask)
    until(lambda: ask()[-4:] == list(hosts), within=60, what="the API server's list", instead=ask)
