"""
A command, its keeper and its agent that are frozen together, as in a paused virtual machine, all go on.

An agent that is frozen alone learns that its command was ended meanwhile, though that has ended with 0.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from testbed import manifests
from testbed.ground import Ground, Namespace
from testbed.kube import faults, nodes
from tests.e2e.rsh import agent
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
