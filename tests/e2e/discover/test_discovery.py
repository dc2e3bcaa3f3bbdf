"""mpirt-discover on a real cluster: which pods are hosts, waiting for them, the job, and the switchboard."""

from __future__ import annotations

from typing import Any

import pytest

from testbed import manifests
from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.manifests import headless_service
from tests.e2e.rsh import launcher
from tests.promises import promise
from tests.support.discover import LEAST, begin, end, run, workers

# Ready until a test creates the file.
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


def start(namespace: Namespace, labels: dict[str, str], **spec: Any) -> str:
    """Two workers and a launcher with these labels, which may get and list pods."""
    image = namespace.ground.image("openmpi4")
    made = workers("worker", image=namespace.ground.image("busybox"), replicas=2, labels=labels)
    made["spec"]["template"]["metadata"]["labels"] |= _role(labels, "worker")
    namespace.kubectl.apply(manifests.headless_service("worker"), made)
    account = namespace.account("launcher", rules=[LEAST])
    pod = manifests.pod("launch", image=image, service_account=account, **spec)
    pod["metadata"]["labels"] = {**labels, **_role(labels, "launcher")}
    namespace.kubectl.apply(pod)
    namespace.wait_until_ready("launch")
    launcher.put_mpirt(namespace, "launch")
    return "launch"


@promise("In a launcher pod mpirt-discover finds the job by itself.", of="mpirt-discover")
@pytest.mark.parametrize(
    "label", ["mpirt.dev/job", "training.kubeflow.org/job-name", "mpi-job-name"], ids=["ours", "v2beta1", "v1"]
)
@pytest.mark.sample(1)
def test_by_the_labels_of_its_own_pod(namespace: Namespace, label: str) -> None:
    pod = start(namespace, {label: "train"})

    told = namespace.kubectl.execute(pod, "mpirt-discover", "--wait=2", "--timeout=120", timeout=150)

    assert told == "worker-0:1\nworker-1:1\n"
    assert namespace.kubectl.execute(pod, "mpirt-discover") == told


@promise("In a launcher pod mpirt-discover finds the job by itself.", of="mpirt-discover")
@pytest.mark.oldest
def test_by_the_labels_that_the_downward_api_shows(namespace: Namespace) -> None:
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [{"name": "podinfo", "downwardAPI": {"items": [labels]}}]
    container = manifests.idle_container(namespace.ground.image("openmpi4"))
    container["volumeMounts"] = [{"name": "podinfo", "mountPath": "/etc/podinfo"}]
    # The host name is not the pod's: only the labels lead to the job.
    pod = start(namespace, {"mpirt.dev/job": "train"}, hostname="other", volumes=volumes, containers=[container])

    told = namespace.kubectl.execute(pod, "mpirt-discover", "--wait=2", "--timeout=120", timeout=150)

    assert told == "worker-0:1\nworker-1:1\n"


def _role(labels: dict[str, str], role: str) -> dict[str, str]:
    """The label of the role, by the controller that has set that of the job."""
    roles = {
        "mpirt.dev/job": "mpirt.dev/role",
        "training.kubeflow.org/job-name": "training.kubeflow.org/job-role",
        "mpi-job-name": "mpi-job-role",
    }
    return {roles[label]: role for label in labels}


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
