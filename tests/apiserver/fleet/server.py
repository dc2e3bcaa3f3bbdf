"""
The fleet's API server: one epoll loop for all connections, and the answers to their requests.

Owns: the loop, what is counted, and who may ask. /fleet/stats has the counts.
"""

from __future__ import annotations

import json
import resource
import select
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.apiserver import routes
from tests.apiserver.certificates import HOST, Authority
from tests.apiserver.channel import V4, V5, switching
from tests.apiserver.connection import Request
from tests.apiserver.faults import CHUNKED, Answer, Bare, head, in_chunk, status_object
from tests.apiserver.fleet.connection import Connection
from tests.apiserver.fleet.execs import Exec, Keepers
from tests.apiserver.fleet.pods import NAMESPACE, Pods
from tests.apiserver.frames import message
from tests.apiserver.routes import Operation
from tests.apiserver.world import Selection

_BACKLOG = 4096
_ACCEPTS_AT_ONCE = 64
_TICK = 1.0
_BOOKMARK_EVERY = 60.0
_MOST_COMPLAINTS = 20


@dataclass(eq=False, slots=True)
class Watch:
    """One watch that is open."""

    connection: Connection
    selection: Selection
    until: float
    bookmarks: bool
    forget: Callable[[Watch], None]

    def receive(self, data: bytes) -> None:
        """Nobody says anything on a watch's connection."""

    def ended(self) -> None:
        self.forget(self)

    def tell(self, line: bytes) -> None:
        self.connection.send(in_chunk(line))


class Fleet:
    """The server."""

    def __init__(self, authority: Authority, pods: int, token: str) -> None:
        self._context = _context(authority)
        self._token = f"Bearer {token}"
        self._pods = Pods(pods)
        self._complaints: list[str] = []
        self._keepers = Keepers(time.monotonic, self._complaints)
        self._watches: set[Watch] = set()
        self._counts: Counter[str] = Counter()
        self._connections: dict[int, Connection] = {}
        self._listener = socket.create_server((HOST, 0), backlog=_BACKLOG)
        self._listener.setblocking(False)  # noqa: FBT003  it is called so
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._next_tick = time.monotonic()
        self._next_bookmark = self._next_tick + _BOOKMARK_EVERY

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self._listener.getsockname()[1]}"

    def serve(self, until: int) -> None:
        """Serve until a descriptor can be read."""
        self._epoll.register(until, select.EPOLLIN)
        listener = self._listener.fileno()
        while True:
            for number, _ in self._epoll.poll(max(self._next_tick - time.monotonic(), 0)):
                if number == until:
                    return
                if number == listener:
                    self._accept()
                elif number in self._connections:
                    self._connections[number].act()
            if time.monotonic() >= self._next_tick:
                self._tick()

    # What connections say

    def shaken(self, *, resumed: bool) -> None:
        self._counts["handshakes_resumed" if resumed else "handshakes_full"] += 1

    def watch_for(self, connection: Connection, events: int) -> None:
        self._epoll.modify(connection.number, events)

    def closed(self, connection: Connection) -> None:
        self._epoll.unregister(connection.number)
        del self._connections[connection.number]

    def answer(self, connection: Connection, request: Request) -> None:
        wanted = routes.operation(request, "")
        self._counts[f"requests_{wanted.name if wanted else 'other'}"] += 1
        if request.headers.get("authorization") != self._token:
            _refuse(connection, 401, "Unauthorized", "Unauthorized")
        elif wanted is None:
            self._own(connection, request)
        elif wanted.namespace != NAMESPACE or (wanted.pod and wanted.pod not in self._pods):
            _refuse(connection, 404, "NotFound", f'pods "{wanted.pod}" not found')
        else:
            {"get": self._get, "list": self._list, "watch": self._watch, "exec": self._exec}[wanted.name](
                connection, request, wanted
            )

    # Answers

    def _get(self, connection: Connection, _request: Request, wanted: Operation) -> None:
        _answer(connection, self._pods.get(wanted.pod) or b"")

    def _list(self, connection: Connection, request: Request, wanted: Operation) -> None:
        query = request.query
        selection = routes.selected_by(wanted, request)
        limit = int(query.get("limit", "0"))
        _answer(connection, self._pods.page(selection, limit, query.get("continue", "")))

    def _watch(self, connection: Connection, request: Request, wanted: Operation) -> None:
        query = request.query
        until = time.monotonic() + float(query.get("timeoutSeconds", "1800"))
        selection = routes.selected_by(wanted, request)
        bookmarks = query.get("allowWatchBookmarks") == "true"
        watch = Watch(connection, selection, until, bookmarks, self._watches.discard)
        self._watches.add(watch)
        connection.send(CHUNKED)
        for line in self._pods.since(int(query.get("resourceVersion") or 0), selection):
            watch.tell(line)
        connection.take_over(watch)

    def _exec(self, connection: Connection, request: Request, wanted: Operation) -> None:
        if request.headers.get("upgrade", "").lower() != "websocket":
            _refuse(connection, 400, "BadRequest", "Upgrade request required")
            return
        offered = [word.strip() for word in request.headers.get("sec-websocket-protocol", "").split(",")]
        chosen = V5 if V5 in offered else next((name for name in offered if name == V4), "")
        if not chosen:
            connection.send(head(Bare(403).code, ()))
            connection.close()
            return
        # An empty message on the lowest output channel comes first. It means nothing.
        connection.send(switching(request, chosen) + message(1))
        connection.take_over(Exec(connection, self._keepers, wanted.pod))

    def _own(self, connection: Connection, request: Request) -> None:
        match request.method, request.words:
            case "GET", ["fleet", "stats"]:
                _answer(connection, json.dumps(self._stats()).encode())
            case "POST", ["fleet", "delete" | "modify" as what, name] if name in self._pods:
                change = self._pods.delete(name) if what == "delete" else self._pods.modify(name)
                for watch in [each for each in self._watches if each.selection.matches(change.pod)]:
                    watch.tell(change.line)
                if what == "delete":
                    self._keepers.pod_has_gone(name)
                _answer(connection, b"{}")
            case _:
                _refuse(connection, 404, "NotFound", "nothing lives here")

    def _stats(self) -> dict[str, object]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            **self._counts,
            **self._keepers.heard,
            "watches": len(self._watches),
            "execs": len(self._keepers.execs),
            "sessions": len(self._keepers.found),
            "connections": len(self._connections),
            "cpu_seconds": used.ru_utime + used.ru_stime,
            "complaints": self._complaints[:_MOST_COMPLAINTS],
        }

    # The loop

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            connection = Connection(self, accepted, self._context)
            self._connections[connection.number] = connection
            self._epoll.register(connection.number, select.EPOLLIN)

    def _tick(self) -> None:
        now = time.monotonic()
        self._next_tick = now + _TICK
        self._keepers.tick()
        for watch in [each for each in self._watches if each.until <= now]:
            watch.connection.send(b"0\r\n\r\n")
            # The next request may come on it.
            watch.connection.owner = None
            self._watches.discard(watch)
        if now >= self._next_bookmark:
            self._next_bookmark = now + _BOOKMARK_EVERY
            line = self._pods.bookmark()
            for watch in [each for each in self._watches if each.bookmarks]:
                watch.tell(line)


def _context(authority: Authority) -> ssl.SSLContext:
    context = authority.good
    # As Go's servers do.
    context.num_tickets = 1
    return context


def _answer(connection: Connection, body: bytes) -> None:
    connection.send(Answer(200, body).head() + body)


def _refuse(connection: Connection, code: int, reason: str, why: str) -> None:
    answer = Answer(code, json.dumps(status_object(code, reason, why)).encode())
    connection.send(answer.head() + answer.body)
