"""A command goes on while all connections to the API server are reset, in a pod whose node is well."""

from __future__ import annotations

from collections.abc import Callable

from testbed.ground import Namespace
from testbed.kube.wait import until
from tests.e2e.rsh import agent
from tests.e2e.rsh.proxy import Storm, listening
from tests.e2e.rsh.starts import kubeconfig_by_way_of, server_address
from tests.promises import promise

Workers = Callable[[int, str], list[str]]

# An exec takes 0.1 to 0.3 s until its keeper answers.
_LONGEST = 0.3
# Three times as many as fit into the patience with a node.
_PATIENCE, _RESETS = 5, 45


@promise("A command goes on while all connections to the API server are reset.", of="mpirt-rsh")
def test_connections_that_are_reset_are_no_lost_node(namespace: Namespace, workers: Workers) -> None:
    [pod] = workers(1, "busybox")
    storm = Storm(server_address(namespace), lambda: _LONGEST)
    with listening(storm) as port:
        config = kubeconfig_by_way_of(namespace, port)
        env = {"KUBECONFIG": str(config), "MPIRT_NODE_PATIENCE": str(_PATIENCE)}
        command = "echo running; until [ -e /tmp/go ]; do sleep 0.1; done; exit 3"
        with agent.rsh(namespace, pod, command, env=env) as ours:
            assert ours.line() == "running"
            storm.lasts = True
            until(lambda: storm.resets >= _RESETS or ours.process.poll() is not None, within=60, what="the resets")
            storm.lasts = False
            namespace.kubectl.execute(pod, "touch", "/tmp/go")
            code = ours.process.wait(30)

    assert code == 3
