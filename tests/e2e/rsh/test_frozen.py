"""
A command, its keeper and its agent that are frozen together, as in a paused virtual machine, all go on.

An agent that is frozen alone learns that its command was ended meanwhile, though that has ended with 0. And a
command goes on while all connections to the API server are reset, in a pod whose node is well.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from testbed import manifests
from testbed.ground import Ground, Namespace
from testbed.kube import faults, nodes
from testbed.kube.wait import until
from tests.e2e.rsh import agent
from tests.e2e.rsh.proxy import Storm, listening
from tests.e2e.rsh.starts import kubeconfig_by_way_of, server_address
from tests.promises import promise
from tests.support import switchboards

_NODE = "node-1"
# A keeper takes silence for its agent's end after 40 s, whatever the lease is below that.
_LEASE = {"MPIRT_LEASE": "1", "MPIRT_GRACE": "1"}
_FROZEN = 43.0
# It goes on for longer than a keeper listens before it ends anything.
_SAVES = "trap 'echo saved; exit 0' TERM; echo running; while :; do sleep 1; done"
_COMMAND = "trap 'echo told; exit 3' TERM; echo running; for n in 1 2 3 4; do sleep 1; echo $n; done"


@promise("A command goes on when it and its agent were frozen together, as in a paused machine.", of="mpirt-rsh")
@promise(
    "An agent that was stopped for longer than the lease reports 250, whatever the command's code.", of="mpirt-rsh"
)
def test_the_time_counts_against_nobody_but_an_agent_that_is_frozen_alone(
    own_cluster: Ground, namespace: Namespace, board: Path
) -> None:
    pod, left_alone = namespace.workers(2, "busybox", **manifests.on(_NODE))
    uid = namespace.kubectl.get("pod", pod)["metadata"]["uid"]
    with (
        agent.rsh(namespace, pod, _COMMAND, env=_LEASE) as running,
        agent.rsh(namespace, left_alone, _SAVES, env=_LEASE) as alone,
    ):
        assert (running.line(), alone.line()) == ("running", "running")
        agents = [running.process.pid, alone.process.pid]
        pids = [*nodes.container_pids(faults.node_named(_NODE), uid), *agents, switchboards.pid_of(board)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        # Nothing tells of time that has to pass.
        time.sleep(_FROZEN)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        ended = running.end(within=20)
        given_up = alone.end(within=20)

    assert (ended.code, ended.output, ended.errors) == (0, b"1\n2\n3\n4\n", "")
    assert (given_up.code, given_up.output) == (250, b"saved\n")
    line = f"the command in pod {left_alone} was ended there: it had no connection for its lease of 1 s"
    assert line in given_up.errors


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
            code = ours.end(within=30).code

    assert code == 3
