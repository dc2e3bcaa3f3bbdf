"""Commands that lose a node: with their own pod on it, or with that of their agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.manifests import on
from tests.e2e.lostnode.jobs import KEPT, LOST
from tests.e2e.rsh import agent, deaths, hard
from tests.e2e.rsh.agent import Agent

# MPIRT_NODE_PATIENCE is 20 s.
AGENT_ENDS_WITHIN = 30.0


@dataclass(frozen=True)
class Commands:
    """Both of them, each in a pod of its own."""

    namespace: Namespace
    kept: str
    """The pod of a command that is hard to end, whose agent's pod is lost."""
    lost: str
    """The pod of a command whose agent runs here, so that nothing happens to that."""
    agent: Agent

    def kept_one_runs(self) -> bool:
        return hard.is_running(self.namespace, self.kept)


@contextmanager
def running(namespace: Namespace) -> Iterator[Commands]:
    kept = namespace.pod("kept", "busybox", **on(KEPT))
    lost = namespace.pod("lost", "busybox", **on(LOST))
    hard.start_in_launcher(namespace, kept, variables=hard.SHORT_LEASE, **on(LOST))
    until(lambda: hard.is_running(namespace, kept), within=20, what="the command's start")
    with agent.rsh(namespace, lost, deaths.COMMAND) as beside:
        deaths.settle(beside)
        yield Commands(namespace, kept, lost, beside)
