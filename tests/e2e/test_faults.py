"""Every fault does what it says, can be undone, and is healed by `up`."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from testbed import manifests
from testbed.ground import Faults, Ground, Namespace
from testbed.kube import cluster as kube
from testbed.kube import controlplane, faults, layout
from testbed.kube.wait import until

Workers = Callable[[int, str], list[str]]

# Long enough for a live peer to answer many times over.
_SILENCE = 3.0


def test_a_lost_node_is_silent_and_its_pods_run_on(namespace: Namespace, workers: Workers, fault: Faults) -> None:
    pod = _on_node("node-2", namespace, workers(2, "busybox"))
    before = container_in(namespace, pod)

    fault.node_lost("node-2")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(namespace.kubectl.argv("exec", pod, "--", "true"), timeout=_SILENCE, check=False)
    fault.node_back("node-2")

    until(lambda: answers(namespace, pod), within=60, what=f"{pod} to answer again")
    assert container_in(namespace, pod) == before


@pytest.mark.parametrize("kind", ["kubelet", "containerd"])
def test_a_frozen_node_component_answers_only_when_thawed(
    namespace: Namespace, workers: Workers, fault: Faults, kind: str
) -> None:
    pod = _on_node("node-1", namespace, workers(2, "busybox"))

    fault.freeze(f"{kind}:node-1")
    echo = namespace.kubectl.argv("exec", pod, "--", "echo", "alive")
    with subprocess.Popen(echo, stdout=subprocess.PIPE, text=True) as asked:
        with pytest.raises(subprocess.TimeoutExpired):
            asked.wait(timeout=_SILENCE)
        fault.thaw(f"{kind}:node-1")

        assert asked.communicate(timeout=30)[0] == "alive\n"


@pytest.mark.parametrize("kind", ["kubelet", "containerd"])
def test_containers_outlive_a_killed_node_component(
    namespace: Namespace, workers: Workers, fault: Faults, kind: str
) -> None:
    pod = _on_node("node-1", namespace, workers(2, "busybox"))
    before = container_in(namespace, pod)

    fault.kill(f"{kind}:node-1")
    while_dead = answers(namespace, pod)
    fault.start(f"{kind}:node-1")

    assert not while_dead
    until(lambda: answers(namespace, pod), within=60, what=f"{pod} to answer again")
    assert container_in(namespace, pod) == before


def test_a_killed_api_server_refuses_connections_until_it_is_started(own_cluster: Ground, fault: Faults) -> None:
    fault.kill("apiserver")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((layout.API_ADDRESS, layout.API_PORT), timeout=_SILENCE)
    fault.start("apiserver")

    assert own_cluster.kubectl.ready_nodes() >= {"node-1", "node-2"}


def test_a_frozen_api_server_takes_connections_and_never_answers(own_cluster: Ground, fault: Faults) -> None:
    fault.freeze("apiserver")
    with pytest.raises(TimeoutError), _connection():
        pass
    fault.thaw("apiserver")

    assert own_cluster.kubectl.ready_nodes()


def test_dropped_packets_leave_a_connection_half_open(own_cluster: Ground, fault: Faults) -> None:
    with _connection() as connection:
        assert _answer(connection).startswith(b"HTTP/1.1 200")

        fault.drop()
        with pytest.raises(TimeoutError):
            _answer(connection)
        fault.undrop()

        # Neither side has noticed anything: the same connection goes on where it was.
        connection.settimeout(30)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def test_dropping_only_new_connections_lets_open_ones_live(own_cluster: Ground, fault: Faults) -> None:
    with _connection() as connection:
        fault.drop(only_new=True)

        assert _answer(connection).startswith(b"HTTP/1.1 200")
        with pytest.raises(TimeoutError):
            socket.create_connection((layout.API_ADDRESS, layout.API_PORT), timeout=_SILENCE)


def test_dropping_one_address_leaves_the_others_alone(
    namespace: Namespace, workers: Workers, fault: Faults
) -> None:
    first, second = workers(2, "busybox")
    knock = ["exec", first, "--", "nc", "-w", "2", layout.API_ADDRESS, str(layout.API_PORT), "-e", "true"]
    assert namespace.kubectl(*knock, check=False).returncode == 0

    fault.drop(source=namespace.kubectl.get("pod", first)["status"]["podIP"])

    assert namespace.kubectl(*knock, check=False).returncode != 0
    assert namespace.kubectl(*knock[:1], second, *knock[2:], check=False).returncode == 0


def test_an_oom_kill_shows_as_oom_killed(namespace: Namespace, workers: Workers, fault: Faults) -> None:
    pod, _ = workers(2, "busybox")

    fault.oom(namespace.kubectl, pod)

    def reason() -> str | None:
        status = namespace.kubectl.get("pod", pod)["status"]["containerStatuses"][0]
        ended = status["state"].get("terminated") or status["lastState"].get("terminated") or {}
        return str(ended["reason"]) if ended else None

    # The runtime tells of the end and of its cause by different ways.
    until(lambda: reason() == "OOMKilled", within=30, what="the container's end by OOMKilled", instead=reason)


def test_a_forced_deletion_does_not_wait_for_the_node(namespace: Namespace, fault: Faults) -> None:
    stubborn = manifests.pod(
        "stubborn", image=namespace.ground.image("busybox"), terminationGracePeriodSeconds=300
    )
    stubborn["spec"]["containers"][0]["command"] = ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
    namespace.kubectl.apply(stubborn)
    namespace.wait_until_ready("stubborn")

    fault.force_delete(namespace.kubectl, "stubborn")

    look = ("get", "pod", "stubborn", "--ignore-not-found", "--output=name")
    until(lambda: not namespace.kubectl(*look).stdout, within=5, what="the pod's object to be gone")


def test_up_heals_everything_that_was_broken(own_cluster: Ground, fault: Faults) -> None:
    fault.node_lost("node-2")
    fault.freeze("kubelet:node-1")
    fault.kill("containerd:node-1")
    fault.drop(only_new=True)
    fault.freeze("scheduler")
    fault.kill("apiserver")
    broken = faults.active(layout.nodes(2))

    kube.up()

    assert len(broken) == 6
    assert faults.active(layout.nodes(2)) == []
    assert own_cluster.kubectl.ready_nodes() >= {"node-1", "node-2"}


def answers(namespace: Namespace, pod: str) -> bool:
    """Whether a command runs in it."""
    return namespace.kubectl("exec", pod, "--", "true", check=False).returncode == 0


def container_in(namespace: Namespace, pod: str) -> str:
    return str(namespace.kubectl.get("pod", pod)["status"]["containerStatuses"][0]["containerID"])


def _on_node(node: str, namespace: Namespace, pods: list[str]) -> str:
    """The pod of these that runs on the node."""
    return next(pod for pod in pods if namespace.nodes_of([pod]) == {node})


@contextmanager
def _connection() -> Iterator[ssl.SSLSocket]:
    """An open connection to the API server; what is asked on it is asked as the administrator."""
    trust = ssl.create_default_context(cafile=controlplane.SITE.secrets.ca)
    with (
        socket.create_connection((layout.API_ADDRESS, layout.API_PORT), timeout=_SILENCE) as plain,
        trust.wrap_socket(plain, server_hostname=layout.API_ADDRESS) as secure,
    ):
        yield secure


def _answer(connection: ssl.SSLSocket) -> bytes:
    """Ask for the health of the server; the beginning of the answer."""
    lines = (
        "GET /healthz HTTP/1.1",
        f"Host: {layout.API_ADDRESS}",
        f"Authorization: Bearer {controlplane.SITE.secrets.token('admin')}",
    )
    connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    return connection.recv(4096)
