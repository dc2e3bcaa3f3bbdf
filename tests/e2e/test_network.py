"""What pods can reach, and by which name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until

Workers = Callable[[int, str], list[str]]

# Who answers hears of Services and of their pods by ways of his own.
_KNOWN_WITHIN = 60.0

_LIST_PODS = """
import json, os, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
read = lambda name: open(folder + name).read()
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT_HTTPS"]
url = f"https://{host}:{port}/api/v1/namespaces/{read('namespace')}/pods"
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + read("token")})
trust = ssl.create_default_context(cafile=folder + "ca.crt")
pods = json.load(urllib.request.urlopen(request, context=trust, timeout=10))
print(*(pod["metadata"]["name"] for pod in pods["items"]))
"""


def looked_up(namespace: Namespace, pod: str, name: str) -> set[str]:
    """The words of the answer to a look-up of that name in the pod, its addresses among them."""
    return set(namespace.kubectl.execute(pod, "nslookup", name, check=False).split())


def test_pods_on_different_nodes_reach_each_other_by_address(namespace: Namespace, workers: Workers) -> None:
    first, second = workers(2, "busybox")
    assert len(namespace.nodes_of([first, second])) == 2
    address = namespace.kubectl.get("pod", second)["status"]["podIP"]

    answer = namespace.kubectl.execute(first, "ping", "-c", "1", "-W", "2", address)

    assert "1 packets received" in answer


def test_a_headless_service_names_each_of_its_pods_and_all_of_them(namespace: Namespace, workers: Workers) -> None:
    pods = workers(2, "busybox")
    addresses = [str(namespace.kubectl.get("pod", pod)["status"]["podIP"]) for pod in pods]
    service = f"worker.{namespace.name}.svc.cluster.local"

    def knows(name: str, wanted: set[str]) -> None:
        what = f"{wanted} for {name}"
        until(lambda: wanted <= looked_up(namespace, pods[0], name), within=_KNOWN_WITHIN, what=what)

    knows(f"{pods[1]}.{service}", {addresses[1]})
    knows(service, set(addresses))


@pytest.mark.oldest
def test_a_service_with_an_address_leads_to_its_pod(namespace: Namespace, workers: Workers) -> None:
    served, asker = workers(2, "busybox")
    namespace.kubectl("exec", served, "--", "sh", "-c", "nc -ll -p 7070 -e true >/dev/null 2>&1 &")
    namespace.kubectl("expose", "pod", served, "--name=door", "--port=80", "--target-port=7070")

    knock = ("exec", asker, "--", "nc", "-w", "2", f"door.{namespace.name}.svc.cluster.local", "80", "-e", "true")
    until(
        lambda: namespace.kubectl(*knock, check=False).returncode == 0,
        within=_KNOWN_WITHIN,
        what="the Service to lead to its pod",
    )


def test_a_pod_reaches_the_api_server_with_its_service_account(namespace: Namespace) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    pod = namespace.pod("asker", "horovod", service_account=namespace.account("asker", rules=rules))

    answer = namespace.kubectl.execute(pod, "python3", "-c", _LIST_PODS)

    assert answer.split() == ["asker"]
