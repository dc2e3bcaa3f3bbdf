"""
TCP proxies between agents and the API server: one breaks the first connections where it is told to, another resets
all of them again and again.

TLS passes through untouched. Its bytes can't be looked into, but its records can be counted: places are records,
and their middles.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum

# Type, version and length of a record.
_HEADER = 5
_AT_ONCE = struct.pack("ii", 1, 0)


class Way(Enum):
    """Where bytes go."""

    UP = "to the API server"
    DOWN = "to the agent"


class Harm(Enum):
    """What is done to a connection."""

    CUT = "cut"
    """It is closed on both sides."""
    RESET = "reset"
    """It is reset on both sides."""
    STALL = "stalled"
    """Nothing passes any more, whichever way; when the agent has given up it is reset."""
    LATE = "late"
    """Nothing passes that way until the agent has given up; then the rest of it does after all."""


@dataclass(frozen=True)
class Break:
    """Where a connection is harmed, and how: after a record, or in its middle."""

    way: Way
    record: int
    harm: Harm
    in_middle: bool = False

    def __str__(self) -> str:
        where = "in the middle of" if self.in_middle else "after"
        return f"{self.harm.value} {where} record {self.record} {self.way.value}"


class Proxy:
    """What one agent connects to. Each break harms a connection, from the first on; the others stay whole."""

    def __init__(self, server: tuple[str, int], *broken: Break) -> None:
        self.first: Link | None = None
        self._server = server
        self._broken = list(broken)

    async def serve(self, agent: asyncio.StreamReader, to_agent: asyncio.StreamWriter) -> None:
        """See one connection through."""
        try:
            with suppress(OSError):
                server, to_server = await asyncio.open_connection(*self._server)
                await self._pass_on(agent, to_agent, server, to_server)
        finally:
            to_agent.close()

    async def _pass_on(
        self,
        agent: asyncio.StreamReader,
        to_agent: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        link = Link(to_agent, to_server, self._broken.pop(0) if self._broken else None)
        self.first = self.first or link
        try:
            await link.pass_on(agent, server)
        finally:
            to_server.close()


class Link:
    """One connection, both ways."""

    def __init__(
        self, to_agent: asyncio.StreamWriter, to_server: asyncio.StreamWriter, broken: Break | None
    ) -> None:
        self.records = {Way.UP: 0, Way.DOWN: 0}
        """How many have come."""
        self._sinks = {Way.UP: to_server, Way.DOWN: to_agent}
        self._broken = broken
        self._held: dict[Way, bytearray] = {}

    async def pass_on(self, agent: asyncio.StreamReader, server: asyncio.StreamReader) -> None:
        """Pass everything on until one side ends, and then that too."""
        up = asyncio.create_task(self._pass(Way.UP, agent))
        down = asyncio.create_task(self._pass(Way.DOWN, server))
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        if self._held:
            # However the API server ends it: the agent must not be told.
            await up
        for task in (up, down):
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
        await self._end()

    async def _pass(self, way: Way, source: asyncio.StreamReader) -> None:
        sink, broken = self._sinks[way], self._broken
        async for record in _records(source):
            number = self.records[way]
            self.records[way] = number + 1
            if way in self._held:
                self._held[way] += record
                continue
            breaks = broken is not None and (broken.way, broken.record) == (way, number)
            passed = len(record) // 2 if breaks and broken is not None and broken.in_middle else len(record)
            with suppress(ConnectionError):
                sink.write(record[:passed])
                await sink.drain()
            if breaks and not self._hold(way, record[passed:]):
                return

    def _hold(self, way: Way, rest: bytes) -> bool:
        """Hold things up from here on. False where the connection is to end instead."""
        harm = None if self._broken is None else self._broken.harm
        if harm is Harm.STALL:
            self._held = {Way.UP: bytearray(), Way.DOWN: bytearray()}
        elif harm is Harm.LATE:
            self._held = {way: bytearray(rest)}
        return bool(self._held)

    async def _end(self) -> None:
        harm = None if self._broken is None else self._broken.harm
        if harm is Harm.LATE and self._held:
            with suppress(ConnectionError):
                self._sinks[Way.UP].write(bytes(self._held.get(Way.UP, b"")))
                await self._sinks[Way.UP].drain()
        for sink in self._sinks.values():
            if harm in (Harm.RESET, Harm.STALL):
                _reset(sink)
            else:
                sink.close()


class Storm:
    """What agents connect to: while it lasts, no connection lasts longer than some seconds, each its own."""

    def __init__(self, server: tuple[str, int], seconds: Callable[[], float]) -> None:
        self.lasts = False
        self.resets = 0
        self._server, self._seconds = server, seconds

    async def serve(self, agent: asyncio.StreamReader, to_agent: asyncio.StreamWriter) -> None:
        """See one connection through, to its end or to the proxy's."""
        sinks = [to_agent]
        try:
            with suppress(OSError):
                server, to_server = await asyncio.open_connection(*self._server)
                sinks.append(to_server)
                await self._pass_on(Link(to_agent, to_server, None).pass_on(agent, server), sinks)
        finally:
            for sink in sinks:
                sink.close()

    async def _pass_on(self, whole: Coroutine[None, None, None], sinks: Iterable[asyncio.StreamWriter]) -> None:
        passing = asyncio.create_task(whole)
        while not passing.done():
            await asyncio.wait({passing}, timeout=self._seconds())
            if self.lasts and not passing.done():
                self.resets += 1
                for sink in sinks:
                    _reset(sink)


@asynccontextmanager
async def served(proxy: Proxy, listener: socket.socket) -> AsyncIterator[None]:
    """The listener's connections go through the proxy."""
    server = await asyncio.start_server(proxy.serve, sock=listener)
    try:
        yield
    finally:
        server.close()


@contextmanager
def listening(proxy: Proxy | Storm) -> Iterator[int]:
    """A port of this machine that leads through it."""
    over = threading.Event()

    async def serve() -> None:
        async with await asyncio.start_server(proxy.serve, sock=listener):
            await asyncio.to_thread(over.wait)

    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


def _reset(sink: asyncio.StreamWriter) -> None:
    # It may have ended by itself.
    with suppress(OSError):
        sink.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    sink.transport.abort()


async def _records(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The TLS records of one way, whole, until its end however it comes."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            header = await source.readexactly(_HEADER)
            yield header + await source.readexactly(int.from_bytes(header[3:]))
