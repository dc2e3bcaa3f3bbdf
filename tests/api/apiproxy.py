"""
An API server's doorstep: a proxy between controllers and the API server that sees every write and every answer.

It speaks TLS on both sides, by the API server's own certificate, so controllers need no other credentials than the
usual ones. Each has a door of its own, which identifies it. Owns: the bytes, the record of the writes, and holding
a chosen one up. It does not know what a write means. Execs don't get to the API server, because no container runs
on a plane without nodes: the proxy answers them as a pod's keeper would.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property, partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from testbed.kube.commandlines import Site
from testbed.kube.wait import woken
from tests.apiserver import frames
from tests.apiserver.channel import NORMAL, STATUS, STDOUT, V4, as_go_writes_it, exit_status, switching
from tests.apiserver.connection import Request
from tests.apiserver.frames import frame, message

_WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_ENDS_WITHIN = 10.0
_PIECE = 1 << 16
_UPGRADE = "websocket"


@dataclass(frozen=True)
class Answer:
    """What a pod has answered."""

    at: float
    """When, by time.monotonic()."""
    pod: str
    sessions: int
    """How many commands run in it."""


def exec_answer(request: Request, sessions: int) -> bytes:
    """The whole of what a pod's keeper answers, in which so many commands run."""
    said = f"mpirt-sessions {sessions} 1\n".encode()
    return b"".join((
        switching(request, V4),
        message(STDOUT, said),
        message(STATUS, as_go_writes_it(exit_status(0))),
        frame(frames.CLOSE, NORMAL.to_bytes(2)),
    ))  # fmt: skip


@dataclass(eq=False)
class Write:
    """A request that changes something, and what became of it."""

    at: float
    """When it had come, by time.monotonic()."""
    sender: str
    """Whose door it came by."""
    method: str
    target: str
    body: bytes = field(repr=False)
    code: int = 0
    """What the API server answered; 0 before that."""
    is_left: bool = False
    """Whether its sender had hung up when the answer came."""

    @cached_property
    def path(self) -> str:
        return urlsplit(self.target).path

    @cached_property
    def is_dry(self) -> bool:
        return "dryRun" in parse_qs(urlsplit(self.target).query)

    @cached_property
    def content(self) -> Any:
        return json.loads(self.body or b"{}")

    @cached_property
    def kind(self) -> str:
        """The plural, and what is below the object: "mpijobs/status"."""
        below = self.path.partition("/namespaces/")[2].split("/")
        return "/".join([below[1], *below[3:]])

    @cached_property
    def name(self) -> str:
        """The object's, which is in the path of all but creations."""
        below = self.path.partition("/namespaces/")[2].split("/")
        return below[2] if len(below) > 2 else str(self.content["metadata"]["name"])

    @property
    def is_good(self) -> bool:
        """Whether the API server did it."""
        return 200 <= self.code < 300

    @property
    def made_it(self) -> bool:
        """Whether the object came into being by it."""
        return self.method == "POST" and not self.is_dry and self.code == 201

    def __str__(self) -> str:
        dry = " (dry run)" if self.is_dry else ""
        return f"{self.method} {self.kind}{dry}"


class Where(Enum):
    """On which side of the API server a write is held up."""

    BEFORE = auto()
    """It doesn't get there."""
    AFTER = auto()
    """It is carried out, and its answer is kept back."""


class Hold:
    """Writes that are held up until it is released: those that a rule is true of."""

    def __init__(self, where: Where, rule: Callable[[Write], bool], loop: asyncio.AbstractEventLoop) -> None:
        self.where = where
        self._loop = loop
        self._rule = rule
        self._standing: Write | None = None
        self._happened = threading.Event()
        self._released = asyncio.Event()

    def wants(self, write: Write) -> bool:
        """Whether it is one of them, which is asked once for each write."""
        return not self._released.is_set() and self._rule(write)

    def wait(self, within: float) -> Write:
        """The last one that stands where it is held up, once there is one."""
        if not woken(self._happened.wait, within=within):
            raise TimeoutError(f"no write was held up within {within:g} s")
        assert self._standing is not None
        return self._standing

    def release(self) -> None:
        """Let everything go on its way."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def stand(self, write: Write) -> None:
        """Hold until it is released."""
        self._standing = write
        self._happened.set()
        await self._released.wait()


class ApiProxy:
    """One proxy. start() and stop() frame its life; everything else may be called from any thread."""

    def __init__(self, site: Site) -> None:
        self.busy: dict[str, int] = {}
        """How many commands run in pods, by the pods' names, as they answer to an exec; none in all others."""
        self._site = site
        self._writes: list[Write] = []
        self._answers: list[Answer] = []
        self._holds: list[Hold] = []
        self._trust = ssl.create_default_context(cafile=str(site.secrets.ca))
        self._presented = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._presented.load_cert_chain(site.secrets.api_certificate, site.secrets.api_key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="API proxy", daemon=True)
        self._doors: list[asyncio.Server] = []
        self._links: set[asyncio.Task[None]] = set()

    # -- what a test says and asks -------------------------------------------------------------------------------

    def hold(self, where: Where, rule: Callable[[Write], bool]) -> Hold:
        """Hold up the writes that the rule is true of, from now on."""
        made = Hold(where, rule, self._loop)
        self._holds.append(made)
        return made

    def writes(self) -> list[Write]:
        """All writes so far, in the order in which they came; the lease's, too."""
        return list(self._writes)

    def answers(self, pod: str) -> list[Answer]:
        """All that the pod has answered so far when it was asked whether it is in use."""
        return [answer for answer in self._answers if answer.pod == pod]

    def open(self, sender: str) -> str:
        """Open a door for one client; returns the URL that leads there."""
        # The API server's own address, for which its certificate is.
        serve = partial(self._serve, sender)
        door = self._run(asyncio.start_server(serve, self._site.address, 0, ssl=self._presented))
        self._doors.append(door)
        host, port = door.sockets[0].getsockname()
        return f"https://{host}:{port}"

    # -- its life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_ENDS_WITHIN)
        self._loop.close()

    def _run(self, doing: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(_ENDS_WITHIN)

    async def _end(self) -> None:
        for door in self._doors:
            door.close()
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    # -- one connection ------------------------------------------------------------------------------------------

    async def _serve(self, sender: str, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._links.add(this)
        try:
            server, to_server = await asyncio.open_connection(
                self._site.address, self._site.api_port, ssl=self._trust
            )
            try:
                await _Link(self._noted, self._answered, sender, to_client, to_server).pass_on(client, server)
            finally:
                to_server.transport.abort()
        except (OSError, asyncio.CancelledError):
            # Nobody waits for this task, and its end is what was asked for.
            pass
        finally:
            to_client.transport.abort()
            self._links.discard(this)

    def _noted(self, write: Write) -> list[Hold]:
        self._writes.append(write)
        return [hold for hold in self._holds if hold.wants(write)]

    def _answered(self, asked: Request) -> bytes:
        pod = asked.words[-2]
        answer = Answer(time.monotonic(), pod, self.busy.get(pod, 0))
        self._answers.append(answer)
        return exec_answer(asked, answer.sessions)


class _Link:
    """One connection, both ways: a request, its answer, the next request."""

    def __init__(
        self,
        noted: Callable[[Write], list[Hold]],
        answered: Callable[[Request], bytes],
        sender: str,
        to_client: asyncio.StreamWriter,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self._noted = noted
        self._answered = answered
        self._to_client = to_client
        self._to_server = to_server
        self._sender = sender
        self._waiting: Write | None = None
        self._holds: list[Hold] = []
        self._is_left = False

    async def pass_on(self, client: asyncio.StreamReader, server: asyncio.StreamReader) -> None:
        """Pass everything on until one side ends. The answer to a write that was sent is awaited all the same."""
        ways = [asyncio.ensure_future(self._quietly(way)) for way in (self._up(client), self._down(server))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            self._is_left = True
            if self._waiting is not None:
                await ways[-1]
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    @staticmethod
    async def _quietly(way: Awaitable[None]) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await way

    async def _up(self, client: asyncio.StreamReader) -> None:
        while True:
            head = await client.readuntil(b"\r\n\r\n")
            asked = Request.parse(head)
            if asked.path.endswith("/exec") and asked.headers.get("upgrade", "").lower() == _UPGRADE:
                self._to_client.write(self._answered(asked))
                await client.read()
                return
            body = await client.readexactly(int(asked.headers.get("content-length", 0)))
            if asked.method in _WRITING:
                write = Write(time.monotonic(), self._sender, asked.method, asked.target, body)
                self._holds = self._noted(write)
                await self._stand(Where.BEFORE, write)
                if client.at_eof():
                    # Who sent it has given it up.
                    return
                self._waiting = write
            self._to_server.write(head + body)
            await self._to_server.drain()

    async def _down(self, server: asyncio.StreamReader) -> None:
        while piece := await server.read(_PIECE):
            if (write := self._waiting) is not None:
                # A connection carries one request at a time, so this is the beginning of its answer.
                write.code, write.is_left = int(piece.split(b" ", 2)[1]), self._is_left
                self._waiting = None
                if await self._stand(Where.AFTER, write) and (server.at_eof() or server.exception() is not None):
                    # Who gave the answer is no more, and what was kept back of it is lost.
                    return
                if self._is_left:
                    return
            self._to_client.write(piece)
            await self._to_client.drain()

    async def _stand(self, where: Where, write: Write) -> bool:
        """Wait where that is asked for. Returns whether it was."""
        holds = [hold for hold in self._holds if hold.where is where]
        for hold in holds:
            await hold.stand(write)
        return bool(holds)
