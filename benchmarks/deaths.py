"""
mpirt-rsh beside `kubectl exec` in a pod that dies: how long each takes to end, and with which code.

Owns: the events and the table. Both run the same command in the same pod, and it happens to both at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks import place
from testbed.ground import Faults
from testbed.kube import cluster
from testbed.kube.progress import step
from testbed.kube.status import table
from testbed.kube.wait import Moment
from tests.e2e.rsh import agent, deaths
from tests.e2e.rsh.agent import Ended
from tests.e2e.rsh.deaths import Happens, Worker

# For how long an end is waited for.
_PATIENCE = 30.0

_HEADING = ["EVENT", "MPIRT-RSH", "CODE", "KUBECTL EXEC", "CODE"]


@dataclass(frozen=True, slots=True)
class Event:
    """What happens to a command. Without `happens` it is the command's own doing."""

    name: str
    happens: Happens | None
    command: str = deaths.COMMAND
    is_stubborn: bool = False
    """Whether its container ends only when it is killed."""


_EVENTS = (
    Event("container's main process killed", deaths.kill_main_process),
    Event("OOM kill", deaths.run_out_of_memory),
    Event("force delete", deaths.force_delete),
    Event("graceful delete, 30 s", deaths.delete_gracefully, command=deaths.OBEYS_TERM, is_stubborn=True),
    Event("evicted by a taint", deaths.drain_by_taint),
    Event("node partitioned", deaths.lose_the_node),
    Event("kubelet frozen", deaths.freeze_the_kubelet),
    Event("kubelet restarted", deaths.restart_the_kubelet),
    Event("containerd restarted", deaths.restart_containerd),
    Event("API server killed", deaths.kill_the_api_server),
    Event("API server restarted", deaths.restart_the_api_server),
    Event("packets to the API server dropped", deaths.drop_the_packets),
    Event("a child keeps stdout open", None, command=deaths.LEAVES_A_CHILD),
)


@dataclass(frozen=True, slots=True)
class Race:
    """How both ended."""

    event: str
    ours: Ended
    theirs: Ended


def races() -> Iterator[Race]:
    """One after the other, each in a pod of its own on a cluster that is well."""
    for event in _EVENTS:
        with step(event.name), _worker(event) as worker:
            yield _race(worker, event)


def rendered(found: Iterable[Race]) -> str:
    rows = [[race.event, *_shown(race.ours), *_shown(race.theirs)] for race in found]
    return "\n".join([*table([_HEADING, *rows]), "", "Seconds from the event to the end of each."])


@contextmanager
def _worker(event: Event) -> Iterator[Worker]:
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 30}
    if event.is_stubborn:
        spec["container"] = deaths.STUBBORN
    with place.fresh_namespace() as namespace:
        worker = deaths.start_worker(namespace, Faults(), **spec)
        try:
            yield worker
        finally:
            cluster.up()
            if event.happens is deaths.drain_by_taint:
                deaths.take_back_the_taint(worker)


def _race(worker: Worker, event: Event) -> Race:
    with (
        agent.rsh(worker.namespace, worker.pod, event.command) as ours,
        agent.kubectl_exec(worker.namespace, worker.pod, event.command) as theirs,
    ):
        if event.happens is not None:
            deaths.settle(ours, theirs)
        began = Moment.now()
        if event.happens is not None:
            event.happens(worker)
        return Race(
            event.name, ours.end(within=_PATIENCE, since=began), theirs.end(within=_PATIENCE + 2, since=began)
        )


def _shown(ended: Ended) -> list[str]:
    if ended.code is None:
        return [f"none in {ended.seconds:.0f} s", "-"]
    return [f"{ended.seconds:.1f} s", str(ended.code)]
