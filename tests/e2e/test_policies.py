"""Network policies are enforced on the test cluster; that of deploy/ lets through what the controller needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import yaml

from testbed.ground import Ground, Namespace
from testbed.kube import cluster as kube
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
from testbed.manifests import Manifest
from tests.promises import promise

pytestmark = pytest.mark.oldest

POLICY = PROJECT / "deploy/base/network.yaml"
LABEL = {"app.kubernetes.io/name": "mpirt-controller"}

# Whoever enforces it hears of a pod and its labels a moment after the pod has started.
ENFORCED_WITHIN = 60.0
# Both ports answer every connection.
SERVE = "for port in 8080 9090; do nc -ll -p $port -e true & done; wait"


@pytest.fixture(scope="module", autouse=True)
def enforced(cluster: Ground) -> Iterator[None]:
    """Somebody else's cluster enforces them all the time."""
    with kube.enforcing_policies() if cluster.is_ours else nullcontext():
        yield


@pytest.fixture
def guarded(namespace: Namespace) -> str:
    """The address of a pod that the policy of deploy/ is for."""
    policy: Manifest = yaml.safe_load(POLICY.read_text(encoding="utf-8"))
    namespace.kubectl.apply(policy)
    return serving(namespace, "guarded", LABEL)


@promise("The controller's NetworkPolicy leaves port 8080 open to other pods, and closes the others.", of="safety")
def test_a_port_that_the_policy_does_not_name_is_closed_to_other_pods(namespace: Namespace, guarded: str) -> None:
    asker = namespace.pod("asker", "busybox")

    until(
        lambda: not reaches(namespace, asker, guarded, 9090),
        within=ENFORCED_WITHIN,
        what="port 9090 of the guarded pod to be closed",
    )
    assert reaches(namespace, asker, guarded, 8080)


@promise(
    "The controller's NetworkPolicy lets it reach API server and name servers, and no other pod.", of="safety"
)
def test_the_guarded_pod_reaches_the_api_server_and_the_dns_and_no_other_pod(
    namespace: Namespace, guarded: str
) -> None:
    other = serving(namespace, "other", {})

    until(
        lambda: not reaches(namespace, "guarded", other, 9090),
        within=ENFORCED_WITHIN,
        what="the way from the guarded pod to port 9090 of another one to be closed",
    )
    assert reaches(namespace, namespace.pod("asker", "busybox"), other, 9090)
    assert reaches(namespace, "guarded", "kubernetes.default.svc.cluster.local", 443)


def serving(namespace: Namespace, name: str, labels: dict[str, str]) -> str:
    """Start a pod with two open ports, and return its address."""
    namespace.pod(name, "busybox", containers=[container(namespace)])
    if labels:
        namespace.kubectl("label", "pod", name, *(f"{key}={value}" for key, value in labels.items()))
    address: str = namespace.kubectl.get("pod", name)["status"]["podIP"]
    return address


def container(namespace: Namespace) -> dict[str, Any]:
    return {
        "name": "main",
        "image": namespace.ground.image("busybox"),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", SERVE],
    }


def reaches(namespace: Namespace, pod: str, address: str, port: int) -> bool:
    """Whether a pod can open a connection."""
    knock = f"nc -w 3 {address} {port} -e true"
    return namespace.kubectl("exec", pod, "--", "sh", "-c", knock, check=False).returncode == 0
