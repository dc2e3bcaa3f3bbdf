"""
Five commands a second come and go, and faults happen: nothing becomes more.

`make endurance` has an hour of it; MPIRT_TEST_MINUTES says how many minutes. After each lap all of its commands
have ended, and what the switchboard, its agents and the pods hold is noted. Some commands stay through all of it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random

import pytest

from testbed.ground import Faults, Namespace
from testbed.kube.status import table
from tests.e2e.endurance import judging, running, visits, weather
from tests.e2e.endurance.judging import Lap
from tests.e2e.endurance.running import LEASE, Stayer, Traffic, environment
from tests.e2e.endurance.weather import Weather
from tests.e2e.rsh import agent, jobworkers
from tests.e2e.rsh.remains import REAPS, seen, wait_until_same
from tests.support import switchboards

MINUTES = float(os.environ.get("MPIRT_TEST_MINUTES", "0.5"))
SEED = os.environ.get("MPIRT_TEST_SEED", "mpirt")

_SECONDS = 60 * MINUTES
_LAP = min(300.0, max(15.0, _SECONDS / 12))
_LAPS = max(2, round(_SECONDS / _LAP))
# In fewer laps there would be none to compare with.
_LAPS_WORTH_A_DEATH = 10
_PODS, _STAYERS = 6, 2

# Half a minute of it shows that it runs; an hour of it is the test.
pytestmark = [
    pytest.mark.full("the same faults in chaos, and what commands leave in test_many_commands"),
    pytest.mark.alone,
    pytest.mark.timeout(1200 + 2 * _SECONDS),
]
# A keeper may stay for its lease, and a shell that a runtime has left for the keeper's two minutes.
_WITHIN = 6.0 * LEASE


class Remains:
    """The pods as they are with nothing in them, and what more there is."""

    def __init__(self, namespace: Namespace, pods: Sequence[str]) -> None:
        self._namespace = namespace
        self._clean = {pod: self.seen(pod) for pod in pods}

    def seen(self, pod: str) -> Counter[str]:
        """What it has. A keeper that was come back to has its connection beside its socket, by the same name."""
        found = seen(self._namespace, pod)
        return Counter({what: 1 if what.startswith("socket ") else count for what, count in found.items()})

    def wait(self) -> int:
        """Wait until all pods are as they were; how many processes, files and sockets that is."""
        for pod, clean in self._clean.items():
            wait_until_same(clean, partial(self._after_another, pod), pod=pod, within=_WITHIN)
        return sum(clean.total() for clean in self._clean.values())

    def _after_another(self, pod: str) -> Counter[str]:
        """What it has. Where shells are left, another command follows, whose keeper ends those that are old."""
        found = self.seen(pod)
        if any(what.startswith("process (sh)") for what in found - self._clean[pod]):
            subprocess.run([agent.RSH, pod, "true"], env=environment(self._namespace), check=True)
            found = self.seen(pod)
        return found


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the switchboard listens."""
    for folder in switchboards.place(tmp_path_factory.mktemp("board")):
        with switchboards.used(folder):
            yield folder


def test_nothing_becomes_more_while_commands_come_and_go_and_faults_happen(
    namespace: Namespace, fault: Faults, folder: Path
) -> None:
    # With a keeper that is no file of the commands'.
    pods = jobworkers.start(namespace, _PODS, "busybox", container={"command": REAPS})

    laps, problems, ends = asyncio.run(run(namespace, fault, folder, pods))

    print("\n".join(table([judging.HEADING, *(judging.row(number, lap) for number, lap in enumerate(laps, 1))])))
    assert problems == []
    assert ends == [(0, b"", b"")] * _STAYERS
    assert list(judging.growth(laps)) == []


async def run(
    namespace: Namespace, fault: Faults, folder: Path, pods: list[str]
) -> tuple[list[Lap], list[str], list[tuple[int | None, bytes, bytes]]]:
    """All laps, what was wrong in them, and how the commands that stayed have ended."""
    traffic = Traffic(namespace, pods, Random(SEED))
    async with AsyncExitStack() as stack:
        stayers = [await running.stayer(namespace, pod) for pod in pods[:_STAYERS]]
        for stayer in stayers:
            stack.push_async_callback(running.gone, stayer.process)
        await all_are_there(stayers)
        remains = await asyncio.to_thread(Remains, namespace, pods)
        faults = Weather(namespace, fault, traffic, victims=pods[_STAYERS:])
        laps: list[Lap] = []
        while len(laps) < _LAPS:
            laps.append(await one_lap(len(laps), traffic, faults, folder))
            await all_are_there(stayers)
            laps[-1].remote = await asyncio.to_thread(remains.wait)
            switchboards.look(laps[-1], folder, [stayer.process.pid for stayer in stayers])
            print(*judging.row(len(laps), laps[-1]), *traffic.problems, flush=True)
        return laps, traffic.problems, [await stayer.end() for stayer in stayers]


async def one_lap(number: int, traffic: Traffic, faults: Weather, folder: Path) -> Lap:
    """Until the last of its commands has ended."""
    lap = Lap()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(traffic.lap(visits.of(f"{SEED}-{number}", _LAP), lap))
        tasks.create_task(faults.lap(_LAP, lap))
        tasks.create_task(running.looks(_LAP))
    if number == 0 and _LAPS >= _LAPS_WORTH_A_DEATH:
        await faults.happen(weather.switchboard_killed(folder), lap)
    return lap


async def all_are_there(stayers: list[Stayer]) -> None:
    assert [await stayer.is_there() for stayer in stayers] == [True] * len(stayers)
