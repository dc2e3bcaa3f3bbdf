"""
Nothing is started twice: wherever a connection breaks while a command is being started, the command runs once or
not at all, exactly once where its agent ends with 0, and no agent hangs.

What can break before GO is repaired by another attempt; what breaks after it ends in a code of its own.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until
from tests.e2e.rsh.proxy import Break, Harm, Proxy, Way, served
from tests.e2e.rsh.starts import (
    ENDS_WITHIN,
    Outcome,
    argv,
    environment,
    kubeconfig_by_way_of,
    server_address,
    wait_for_the_end_of_all,
)
from tests.promises import promise

Workers = Callable[[int, str], list[str]]

# The agents use all processors, and have deadlines.
pytestmark = pytest.mark.alone

_RUNS = "/tmp/runs"
# Those that meet a silence wait for fifteen seconds, most of them; the others work.
_WAITING_AT_ONCE, _WORKING_AT_ONCE = 64, 6
# As many records come before the first request.
_TLS = 2


@promise("No command is started twice, wherever its connection breaks.", of="mpirt-rsh")
def test_a_command_runs_once_or_not_at_all_wherever_its_connection_breaks(
    namespace: Namespace, workers: Workers
) -> None:
    [pod] = workers(1, "busybox")

    outcomes = asyncio.run(Sweep(namespace, pod).all())

    wrong = [f"{each.case}: {problem}\n{each.log}" for each in outcomes for problem in each.problems()]
    assert wrong == []
    # Both sides of GO were met: commands that took a second attempt, and others that were given up or found again.
    assert sum(each.dials > 1 for each in outcomes) > 20
    assert sum(each.code != 0 or "state: detached" in each.log for each in outcomes) > 5


class Sweep:
    """A command for each place where a connection can break, and one that nobody answers at first."""

    def __init__(self, namespace: Namespace, pod: str) -> None:
        self._namespace = namespace
        self._pod = pod
        self._server = server_address(namespace)
        self._waiting = asyncio.Semaphore(_WAITING_AT_ONCE)
        self._working = asyncio.Semaphore(_WORKING_AT_ONCE)

    async def all(self) -> list[Outcome]:
        proxy = Proxy(self._server)
        codes = {"whole": await self._through(proxy, "whole")}
        assert proxy.first is not None
        places = all_places(proxy.first.records)
        cases: list[tuple[Break, ...]] = [(place,) for place in places]
        cases += lost_starts(proxy.first.records[Way.UP])
        names = [", then ".join(map(str, case)) for case in cases]
        codes |= zip(names, await asyncio.gather(*map(self._broken, cases, names)), strict=True)
        codes["refused"] = await self._refused()
        runs = await asyncio.to_thread(self._runs)
        return [Outcome(case, code, self._log(case), runs[case], is_safe=True) for case, code in codes.items()]

    async def _broken(self, places: Sequence[Break], name: str) -> int | None:
        async with self._waiting if places[0].harm in (Harm.STALL, Harm.LATE) else self._working:
            return await self._through(Proxy(self._server, *places), name)

    async def _through(self, proxy: Proxy, case: str) -> int | None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with served(proxy, listener), self._agent(case, listener) as process:
                return await code(process)

    async def _refused(self) -> int | None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            async with self._agent("refused", closed) as process:
                await asyncio.to_thread(self._wait_for_a_failed_attempt, "refused")
                async with served(Proxy(self._server), closed):
                    return await code(process)

    @asynccontextmanager
    async def _agent(self, case: str, listener: socket.socket) -> AsyncIterator[asyncio.subprocess.Process]:
        """One that takes the listener for the API server."""
        config = kubeconfig_by_way_of(self._namespace, listener.getsockname()[1])
        with (self._namespace.folder / case).open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *argv(self._pod, case, _RUNS),
                env=environment(config),
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _wait_for_a_failed_attempt(self, case: str) -> None:
        until(lambda: "] not open: " in self._log(case), within=60, what="an attempt that fails")

    def _log(self, case: str) -> str:
        return (self._namespace.folder / case).read_text()

    def _runs(self) -> Counter[str]:
        """How often each has run, once nothing is left of any."""
        wait_for_the_end_of_all(self._namespace, self._pod)
        return Counter(self._namespace.kubectl.execute(self._pod, "cat", _RUNS).splitlines())


def all_places(records: dict[Way, int]) -> list[Break]:
    """Every record of a whole session, in its middle and at its end, each with two harms."""
    places = [
        Break(way, record, harm, in_middle=in_middle)
        for way, count in records.items()
        for record in range(count)
        for in_middle, harms in ((True, (Harm.CUT, Harm.STALL)), (False, (Harm.RESET, Harm.LATE)))
        for harm in harms
    ]
    # What would come to an agent that is gone comes to nobody.
    return [place for place in places if (place.way, place.harm) != (Way.DOWN, Harm.LATE)]


def lost_starts(records: int) -> list[tuple[Break, ...]]:
    """
    An attempt of which nothing comes back, and then one that breaks off somewhere around its START.

    The pod has a keeper of the first one meanwhile, which waits for a START, too.
    """
    return [
        (Break(Way.UP, first, Harm.STALL), Break(Way.UP, second, Harm.RESET))
        for first in range(_TLS, records)
        for second in range(_TLS, records)
    ]


async def code(process: asyncio.subprocess.Process) -> int | None:
    """Its exit code; None where it hangs."""
    try:
        return await asyncio.wait_for(process.wait(), ENDS_WITHIN)
    except TimeoutError:
        return None
