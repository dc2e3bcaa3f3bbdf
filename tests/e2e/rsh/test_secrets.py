"""What a command is, and what it knows, shows nowhere but in its own process."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube import controlplane
from tests.e2e.rsh import agent
from tests.promises import promise

Workers = Callable[[int, str], list[str]]

_SECRET = "correct-horse-battery-staple"


@promise("Audit logs contain no commands.", of="safety")
def test_the_audit_log_does_not_hold_the_command(
    own_cluster: Ground, namespace: Namespace, workers: Workers
) -> None:
    [pod] = workers(1, "busybox")

    with agent.rsh(namespace, pod, f"TOKEN={_SECRET} sh -c 'echo $TOKEN'") as running:
        assert running.line() == _SECRET
        assert running.end(within=10).code == 0

    log = controlplane.AUDIT_LOG.read_text()
    execs = [json.loads(line) for line in log.splitlines() if namespace.name in line]
    assert any(entry["objectRef"].get("subresource") == "exec" for entry in execs)
    assert _SECRET not in log


@pytest.mark.one_in(3)
def test_the_pods_process_list_shows_the_command_and_nothing_more_of_it(
    namespace: Namespace, workers: Workers
) -> None:
    [pod] = workers(1, "busybox")
    with agent.rsh(namespace, pod, "echo running; exec sleep 54321") as running:
        assert running.line() == "running"

        listed = namespace.kubectl.execute(pod, "ps", "-o", "args")

        ours = [line for line in listed.splitlines() if "54321" in line]
        assert ours == ["sleep 54321"]
