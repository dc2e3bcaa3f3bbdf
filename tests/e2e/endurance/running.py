"""
Carrying out a lap: commands come, faults happen, and everything ends.

Owns: the agents' processes, which of them a fault concerns, and the commands that stay from the first lap to the
last. What the ends are worth is judging.py's.
"""

from __future__ import annotations

import asyncio
import json
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from random import Random

from testbed.ground import Namespace
from tests.e2e.endurance.judging import End, Fate, Lap, problem
from tests.e2e.endurance.visits import Visit
from tests.e2e.rsh import agent

# Far beyond the outages and the patience of an agent, so that what has not ended by then hangs.
_ENDS_WITHIN = 240.0
# Longer than any outage. A keeper that could not be told that its command's end is known stays for so long.
LEASE = 40

_LOOK_EVERY = 10.0


@dataclass(slots=True, eq=False)
class Running:
    """A command that has not ended."""

    pod: str
    fate: Fate | None = None
    process: Process | None = None
    """None: it is about to start."""


class Traffic:
    """The commands that run, and those that have ended wrongly."""

    def __init__(self, namespace: Namespace, pods: Sequence[str], random: Random) -> None:
        self.open = list(pods)
        """The pods into which commands go now."""
        self.random = random
        self.problems: list[str] = []
        self._env = environment(namespace)
        self._running: set[Running] = set()
        self._numbers = count()

    async def lap(self, visits: Iterable[Visit], lap: Lap) -> None:
        """Have them come at their times; the end of the last one is the end of the lap."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for visit in visits:
                # Its own time, for which nothing else stands.
                await asyncio.sleep(began + visit.comes - time.monotonic())
                tasks.create_task(self._see_through(visit, lap))
        lap.seconds = time.monotonic() - began

    def concern(self, pod: str, fate: Fate) -> None:
        """Something happens to all that run in a pod."""
        for one in self._running:
            if one.pod == pod:
                one.fate = one.fate or fate

    def kill_agents(self, most: int) -> None:
        """Kill some agents with -9."""
        there = {one.process.pid: (one, one.process) for one in self._running if one.process is not None}
        for pid in self.random.sample(sorted(there), min(most, len(there))):
            one, process = there[pid]
            one.fate = Fate.AGENT_KILLED
            with suppress(ProcessLookupError):
                process.kill()

    async def _see_through(self, visit: Visit, lap: Lap) -> None:
        pod = self.random.choice(self.open)
        # At once: what happens to all that run there happens to this one, too.
        running = Running(pod)
        self._running.add(running)
        lap.at_once = max(lap.at_once, len(self._running))
        try:
            code, output, errors = await self._outcome(running, visit)
        finally:
            self._running.discard(running)
        end = End(visit, running.fate, code, output, errors.decode(errors="replace"))
        lap.note(end)
        if what := problem(end):
            self.problems.append(f"command {visit.number} ({visit.kind.value}) in {pod}, {running.fate}: {what}")

    async def _outcome(self, running: Running, visit: Visit) -> tuple[int | None, bytes, bytes]:
        process = await started(["-o", "ConnectTimeout=120", running.pod, visit.script], self._env)
        running.process = process
        try:
            async with asyncio.timeout(_ENDS_WITHIN):
                # Its reader's own time.
                await asyncio.sleep(visit.read_after)
                output, errors = await process.communicate(visit.stdin)
                return process.returncode, output, errors
        except TimeoutError:
            return None, b"", b""
        finally:
            await gone(process)


async def looks(seconds: float) -> None:
    """Somebody looks at the commands now and then, for so many seconds."""
    began = time.monotonic()
    for number in range(int(seconds / _LOOK_EVERY)):
        # Its own time, for which nothing else stands.
        await asyncio.sleep(began + number * _LOOK_EVERY - time.monotonic())
        process = await asyncio.create_subprocess_exec(str(agent.MPIRT), "ps", "--json", stdout=PIPE, stderr=PIPE)
        found, errors = await process.communicate()
        assert process.returncode == 0, errors
        [board] = json.loads(found)["switchboards"]
        assert board["commands"]


class Stayer:
    """A command that is there from the first lap to the last."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._said = count(1)

    async def is_there(self) -> bool:
        """Whether it answers, and no more than once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        said = b"%d\n" % next(self._said)
        self.process.stdin.write(said)
        async with asyncio.timeout(_ENDS_WITHIN):
            return await self.process.stdout.readline() == said

    async def end(self) -> tuple[int | None, bytes, bytes]:
        """End its stdin: the code, and what it has written since."""
        async with asyncio.timeout(_ENDS_WITHIN):
            # Without an argument it would leave stdin open.
            output, errors = await self.process.communicate(b"")
        return self.process.returncode, output, errors


async def stayer(namespace: Namespace, pod: str) -> Stayer:
    """Start one."""
    return Stayer(await started([pod, "cat"], environment(namespace)))


def environment(namespace: Namespace) -> dict[str, str]:
    """That of all agents. With a job's fence, a command removes what a dead container has left in /dev/shm."""
    return agent.environment(namespace, MPIRT_LEASE=str(LEASE), MPIRT_FENCE="endurance")


async def started(words: Sequence[str], env: Mapping[str, str]) -> Process:
    """An agent with three pipes."""
    return await asyncio.create_subprocess_exec(
        str(agent.RSH), *words, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


async def gone(process: Process) -> None:
    """Have it end, if it has not."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
