"""Which exec protocol is spoken, and what a launcher is told whose Role is not enough for it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from mpirt.errors import ExitCode
from testbed.ground import Ground, Namespace
from testbed.kube.kubectl import Manifest
from tests.e2e.rsh import agent, launcher
from tests.promises import promise

pytestmark = pytest.mark.oldest

Workers = Callable[[int, str], list[str]]


@promise("MPIRT_PROTOCOL selects v4 or v5 of the exec protocol.", of="mpirt-rsh")
@pytest.mark.parametrize("protocol", ["v4", "v5"])
def test_the_protocol_that_is_asked_for_is_spoken(
    namespace: Namespace, workers: Workers, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIRT_PROTOCOL", protocol)
    monkeypatch.setenv("MPIRT_LOG", "debug")
    [pod] = workers(1, "busybox")

    ended = run(namespace, pod, "echo out; echo err >&2; exit 7")

    opened = [line for line in ended.errors.splitlines() if line.partition("] ")[2].startswith("open: ")]
    assert [line.partition("open: ")[2] for line in opened] == [f"{protocol}.channel.k8s.io"]
    assert (ended.code, ended.output) == (7, b"out\n")


@promise("Code 242 comes with the verbs that the Role lacks: get and create on pods/exec.", of="mpirt-rsh")
def test_the_right_to_create_execs_alone_is_not_enough(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    account = namespace.account("launcher", rules=rules(pod, verbs=["create"]))

    ended = run(namespace, pod, "echo started", account=account)

    assert (ended.code, ended.output) == (ExitCode.REFUSED, b"")
    assert NEEDED in ended.errors


@pytest.mark.one_in(3)
def test_the_right_to_get_execs_alone_is_enough_where_kubernetes_asks_for_no_more(
    cluster: Ground, namespace: Namespace, workers: Workers
) -> None:
    [pod] = workers(1, "busybox")
    account = namespace.account("launcher", rules=rules(pod, verbs=["get"]))

    ended = run(namespace, pod, "echo started", account=account)

    # From 1.35 on the API server asks for `create` too, and refuses without a reason.
    if minor_of(cluster) < 35:
        assert (ended.code, ended.output) == (0, b"started\n")
    else:
        assert (ended.code, ended.output) == (ExitCode.REFUSED, b"")
        assert NEEDED in ended.errors


NEEDED = "must hold get and create on pods/exec"


def rules(pod: str, *, verbs: list[str]) -> list[Manifest]:
    """What a launcher needs, but for the verbs on its worker's execs."""
    [execs, pods] = launcher.rules([pod])
    return [execs | {"verbs": verbs}, pods]


def run(namespace: Namespace, pod: str, command: str, *, account: str = "") -> agent.Ended:
    with agent.rsh(namespace, pod, command, account=account) as started:
        return started.end(within=30)


def minor_of(cluster: Ground) -> int:
    version = json.loads(cluster.kubectl("version", "--output=json").stdout)
    return int(version["serverVersion"]["minor"].rstrip("+"))
