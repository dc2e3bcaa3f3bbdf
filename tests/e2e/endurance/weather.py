"""
What happens while commands come and go, one thing after the other.

Owns: the order of faults, and how each begins and ends. Those that end commands tell
the traffic which they concern.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

from testbed.ground import Faults, Namespace
from testbed.kube import faults, nodes
from testbed.kube.kubectl import is_ready
from testbed.kube.wait import until
from tests.e2e.endurance.judging import Fate, Lap
from tests.e2e.endurance.running import Traffic
from tests.e2e.rsh import outages
from tests.support import switchboards

_EVERY = 40.0
"""Seconds between two of them; a shorter lap has one."""
_AWAY = 10.0
_AGENTS = 10
_READY_WITHIN = 120.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that happens once."""

    name: str
    happen: Callable[[], Awaitable[None]]


class Weather:
    """The faults, in an order that begins anew when all have happened."""

    def __init__(self, namespace: Namespace, fault: Faults, traffic: Traffic, victims: list[str]) -> None:
        """`victims` are the pods that may die."""
        self._namespace, self._fault, self._traffic = namespace, fault, traffic
        self._victims = cycle(victims)
        self._turn: Iterator[Fault] = cycle(self._all())

    async def lap(self, seconds: float, lap: Lap) -> None:
        """Those of a lap of so many seconds, which are over when it is."""
        began, many = time.monotonic(), max(1, int(seconds / _EVERY))
        for number in range(many):
            # Its own time, for which nothing else stands.
            await asyncio.sleep(began + (number + 0.3) * seconds / many - time.monotonic())
            await self.happen(next(self._turn), lap)

    @staticmethod
    async def happen(fault: Fault, lap: Lap) -> None:
        """See one through."""
        lap.faults.append(fault.name)
        await fault.happen()

    def _all(self) -> list[Fault]:
        nodes_there = self._namespace.nodes_of(self._traffic.open)
        away = outages.every(self._fault, nodes_there, away=_AWAY, frozen=_AWAY, dropped=_AWAY)
        return [
            Fault("agents killed", self._agents_killed),
            Fault("container died", self._container_died),
            Fault("pod deleted", self._pod_deleted),
            *(Fault(outage.name, partial(asyncio.to_thread, outage)) for outage in away),
        ]

    async def _agents_killed(self) -> None:
        self._traffic.kill_agents(_AGENTS)

    async def _pod_deleted(self) -> None:
        await self._dies(Fate.POD_DELETED, partial(self._fault.force_delete, self._namespace.kubectl))

    async def _container_died(self) -> None:
        await self._dies(Fate.CONTAINER_DIED, self._kill_main)

    async def _dies(self, fate: Fate, kill: Callable[[str], None]) -> None:
        """Nobody goes there meanwhile."""
        pod = next(self._victims)
        before = await asyncio.to_thread(_containers, self._namespace, pod)
        self._traffic.open.remove(pod)
        self._traffic.concern(pod, fate)
        await asyncio.to_thread(kill, pod)
        await asyncio.to_thread(_await_another, self._namespace, pod, before)
        self._traffic.open.append(pod)

    def _kill_main(self, pod: str) -> None:
        item = self._namespace.kubectl.get("pod", pod)
        node = faults.node_named(item["spec"]["nodeName"])
        os.kill(nodes.main_process_of_pod(node, item["metadata"]["uid"]), signal.SIGKILL)


def switchboard_killed(folder: Path) -> Fault:
    """What happens once only: another process has nothing of the first one's memory."""

    async def kill() -> None:
        os.kill(switchboards.pid_of(folder), signal.SIGKILL)

    return Fault("switchboard killed", kill)


def _containers(namespace: Namespace, pod: str) -> set[str]:
    """The containers of the pod by that name, if it is Ready."""
    for item in namespace.kubectl.get("pods", f"--field-selector=metadata.name={pod}"):
        if is_ready(item) and "deletionTimestamp" not in item["metadata"]:
            return {status["containerID"] for status in item["status"]["containerStatuses"]}
    return set()


def _await_another(namespace: Namespace, pod: str, before: set[str]) -> None:
    until(
        lambda: (now := _containers(namespace, pod)) and not now & before,
        within=_READY_WITHIN,
        what=f"{pod} with another container",
    )
