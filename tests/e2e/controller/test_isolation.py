"""Jobs have nothing to do with each other: not those of one name, and not their launchers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube.wait import until
from testbed.manifests import IDLE
from testbed.mpijobs import MpiJob, submit
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed, job_name
from tests.promises import promise

WITHIN = 120.0

FOREVER = ("/bin/sh", "-c", IDLE)
OWNED = "configmaps,serviceaccounts,roles,rolebindings,services,statefulsets,jobs,pods"
Request = tuple[str, str]
"""Method and path."""

# Answers to who may: an exec begins.
SWITCHED, OK, FORBIDDEN = 101, 200, 403

# Runs in the launcher's pod.
_PROGRAM = """
import http.client, json, os, ssl, sys
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
tls = ssl.create_default_context(cafile=f"{folder}/ca.crt")
with open(f"{folder}/token") as file:
    headers = {"Authorization": f"Bearer {file.read()}", "Content-Length": "0"}
upgrade = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
}
server = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
answers = {}
for what, (method, path) in json.loads(sys.argv[1]).items():
    connection = http.client.HTTPSConnection(*server, context=tls, timeout=20)
    connection.request(method, path, headers={**headers, **(upgrade if "/exec?" in path else {})})
    answers[what] = connection.getresponse().status
    connection.close()
print(json.dumps(answers))
"""


def exec_request(namespace: str, pod: str) -> Request:
    """To start a command in a pod."""
    return "GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/exec?command=true&stdout=true"


def answers_to(job: MpiJob, requests: Mapping[str, Request]) -> dict[str, int]:
    """What the API server answers to each, when the launcher of the job asks."""
    [launcher] = job.pods("launcher")
    said = job.namespace.kubectl.execute(
        launcher["metadata"]["name"], "python3", "-c", _PROGRAM, json.dumps(requests)
    )
    found: dict[str, int] = json.loads(said)
    return found


@pytest.fixture(scope="module")
def elsewhere(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A second controller, in a namespace of its own."""
    with deployed.passing(cluster, tmp_path_factory.mktemp("elsewhere")) as installed:
        yield installed


@pytest.fixture(scope="module")
def three(controller: Deployed, elsewhere: Deployed) -> Iterator[tuple[MpiJob, MpiJob, MpiJob]]:
    """Two jobs of one name in two namespaces, and another one beside the first of them."""
    here, there = controller.namespace, elsewhere.namespace
    same, other = job_name("same"), job_name("other")
    made = tuple(start(namespace, name) for namespace, name in ((here, same), (there, same), (here, other)))
    first, second, third = made
    for job in made:
        job.wait_for("Running")
    yield first, second, third
    here.kubectl("delete", "mpijobs.kubeflow.org", same, other, "--ignore-not-found", "--wait=false")


def start(namespace: Namespace, name: str) -> MpiJob:
    return submit(namespace, name, "openmpi4", FOREVER, workers=1)


@promise("A launcher may start commands in its own job's workers and look at pods, and nothing else.", of="safety")
def test_a_launcher_may_start_commands_in_its_own_workers_and_look_at_pods_and_nothing_else(
    controller: Deployed, three: tuple[MpiJob, MpiJob, MpiJob]
) -> None:
    job, namesake, other = three
    here, there = job.namespace.name, namesake.namespace.name
    [launcher] = [pod["metadata"]["name"] for pod in job.pods("launcher")]
    job.namespace.kubectl("create", "secret", "generic", f"{job.name}-known", "--from-literal=word=secret")
    ours, theirs = f"/api/v1/namespaces/{here}", f"/api/v1/namespaces/{there}"
    allowed = {
        "a command in its worker": exec_request(here, f"{job.name}-worker-0"),
        "pods": ("GET", f"{ours}/pods"),
    }
    forbidden = {
        "a command in another job's worker": exec_request(here, f"{other.name}-worker-0"),
        "a command in a namesake's worker": exec_request(there, f"{namesake.name}-worker-0"),
        "a command in a worker that it doesn't have": exec_request(here, f"{job.name}-worker-1"),
        "a command in a launcher": exec_request(here, launcher),
        "a command in the controller": exec_request(here, controller.leader()),
        "secrets": ("GET", f"{ours}/secrets"),
        "a secret that it knows by name": ("GET", f"{ours}/secrets/{job.name}-known"),
        "secrets elsewhere": ("GET", f"{theirs}/secrets"),
        "namespaces": ("GET", "/api/v1/namespaces"),
        "pods elsewhere": ("GET", f"{theirs}/pods"),
        "pods everywhere": ("GET", "/api/v1/pods"),
        "nodes": ("GET", "/api/v1/nodes"),
        "another pod": ("POST", f"{ours}/pods"),
        "a token": ("POST", f"{ours}/serviceaccounts/default/token"),
        "a worker's end": ("DELETE", f"{ours}/pods/{job.name}-worker-0"),
        "more rights": ("PUT", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{here}/roles/{job.name}-launcher"),
        "jobs": ("GET", f"/apis/kubeflow.org/v2beta1/namespaces/{here}/mpijobs"),
    }

    assert answers_to(job, {**allowed, **forbidden}) == {
        "a command in its worker": SWITCHED,
        "pods": OK,
        **dict.fromkeys(forbidden, FORBIDDEN),
    }


@promise("Workers of jobs get no API token.", of="safety")
def test_a_worker_has_no_token(three: tuple[MpiJob, MpiJob, MpiJob]) -> None:
    job, _, _ = three
    looked = ("sh", "-c", "ls /var/run/secrets/kubernetes.io 2>&1 || true")

    assert "No such file" in job.namespace.kubectl.execute(f"{job.name}-worker-0", *looked)


@promise("Jobs of one name in two namespaces never touch each other.", of="safety")
@promise("A controller for one namespace acts on the jobs of its own namespace alone.", of="installation")
def test_jobs_of_one_name_in_two_namespaces_never_touch_each_other(
    controller: Deployed, elsewhere: Deployed, three: tuple[MpiJob, MpiJob, MpiJob]
) -> None:
    job, namesake, other = three
    before = [contents(namesake), contents(other)]

    kubectl = job.namespace.kubectl
    kubectl("scale", "mpijobs.kubeflow.org", job.name, "--replicas=2")
    until(lambda: len(job.pods("worker")) == 2, within=WITHIN, what="another worker")
    kubectl("delete", "mpijobs.kubeflow.org", job.name)
    until(lambda: contents(job) == {}, within=WITHIN, what="all of the job to be gone")

    assert [contents(namesake), contents(other)] == before
    assert (namesake.holds("Running"), other.holds("Running")) == (True, True)
    assert (namespaces_of(controller), namespaces_of(elsewhere)) == (
        {job.namespace.name},
        {namesake.namespace.name},
    )


def contents(job: MpiJob) -> dict[str, dict[str, Any]]:
    """Everything that belongs to a job, but for statuses: Kubernetes writes these whenever it likes."""
    found: list[dict[str, Any]] = job.namespace.kubectl.get(
        OWNED, f"--selector=training.kubeflow.org/job-name={job.name}"
    )
    return {f"{each['kind']}/{each['metadata']['name']}": _without_status(each) for each in found}


def _without_status(item: dict[str, Any]) -> dict[str, Any]:
    """The object, and its version where that is not the status's."""
    if "status" not in item:
        return item
    metadata = {name: value for name, value in item["metadata"].items() if name != "resourceVersion"}
    return {name: value for name, value in item.items() if name != "status"} | {"metadata": metadata}


def namespaces_of(controller: Deployed) -> set[str]:
    """The namespaces of the jobs for which a controller has done anything."""
    return {line["job"].partition("/")[0] for line in controller.log() if "job" in line}
