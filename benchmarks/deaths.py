"""
mpirt-rsh beside `kubectl exec` in a pod that dies: how long each takes to end, and with which code.

Owns: the events. Both run the same command in the same pod, and it happens to both at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.frame import Report, command, events
from benchmarks.place import fresh_namespace
from testbed.ground import Faults
from testbed.kube import cluster
from testbed.kube.progress import step
from testbed.kube.wait import Moment
from tests.e2e.rsh import agent
from tests.e2e.rsh import deaths as causes
from tests.e2e.rsh.agent import Ended
from tests.e2e.rsh.deaths import Happens, Worker

_ENDS_WITHIN = 30.0


@dataclass(frozen=True, slots=True)
class _Event:
    """What happens to a command. Without `happens` it is the command's own doing."""

    name: str
    happens: Happens | None
    command: str = causes.COMMAND
    is_stubborn: bool = False
    """Whether its container ends only when it is killed."""


_EVENTS = (
    _Event("container's main process killed", causes.kill_main_process),
    _Event("OOM kill", causes.run_out_of_memory),
    _Event("force delete", causes.force_delete),
    _Event("graceful delete, 30 s", causes.delete_gracefully, command=causes.OBEYS_TERM, is_stubborn=True),
    _Event("evicted by a taint", causes.drain_by_taint),
    _Event("node partitioned", causes.lose_the_node),
    _Event("kubelet frozen", causes.freeze_the_kubelet),
    _Event("kubelet restarted", causes.restart_the_kubelet),
    _Event("containerd restarted", causes.restart_containerd),
    _Event("API server killed", causes.kill_the_api_server),
    _Event("API server restarted", causes.restart_the_api_server),
    _Event("packets to the API server dropped", causes.drop_the_packets),
    _Event("a child keeps stdout open", None, command=causes.LEAVES_A_CHILD),
)


@command()
def deaths() -> Report:
    """mpirt-rsh beside kubectl exec when pods, nodes and the API server die. 5 minutes, root."""
    rows = []
    for event in _EVENTS:
        with step(event.name), _worker(event) as worker:
            rows += _race(worker, event)
    return events(["EVENT", "BY", "ENDED", "CODE"], rows, "Seconds from the event to the end of each.")


@contextmanager
def _worker(event: _Event) -> Iterator[Worker]:
    spec: dict[str, Any] = {"container": causes.STUBBORN} if event.is_stubborn else {}
    with fresh_namespace() as namespace:
        worker = causes.start_worker(namespace, Faults(), terminationGracePeriodSeconds=30, **spec)
        try:
            yield worker
        finally:
            cluster.up()
            if event.happens is causes.drain_by_taint:
                causes.take_back_the_taint(worker)


def _race(worker: Worker, event: _Event) -> list[list[str]]:
    with (
        agent.rsh(worker.namespace, worker.pod, event.command) as ours,
        agent.kubectl_exec(worker.namespace, worker.pod, event.command) as theirs,
    ):
        if event.happens is not None:
            causes.settle(ours, theirs)
        began = Moment.now()
        if event.happens is not None:
            event.happens(worker)
        first = ours.end(within=_ENDS_WITHIN, since=began)
        second = theirs.end(within=_ENDS_WITHIN + 2, since=began)
    return [[event.name, "mpirt-rsh", *_shown(first)], [event.name, "kubectl exec", *_shown(second)]]


def _shown(ended: Ended) -> list[str]:
    if ended.code is None:
        return [f"none in {ended.seconds:.0f} s", "-"]
    return [f"{ended.seconds:.1f} s", str(ended.code)]
