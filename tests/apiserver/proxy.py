"""
A loopback proxy that is asked to CONNECT, honest or not.

Owns: what its threads do, what it was asked, and where it connects. It resolves names by a
table: clients need not.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl

from tests.apiserver.certificates import HOST, Authority
from tests.apiserver.listener import Listener


class Proxy:
    """One proxy. Its attributes are settings that may be changed at any time."""

    def __init__(self, server: tuple[str, int], *, authority: Authority | None = None) -> None:
        """Every tunnel leads to `server`. With an `authority` the proxy itself speaks TLS."""
        self.server = server
        self.identity: ssl.SSLContext | None = None if authority is None else authority.good
        self.answer: bytes | None = None
        """What it says instead of opening a tunnel; b"" is silence."""
        self.answers: list[bytes] = []
        """What it says first, one request after the other."""
        self.asked: list[tuple[str, dict[str, str]]] = []
        """First line and headers of each request."""
        self._listener = Listener("proxy")
        self._open: list[socket.socket] = []
        self._listener.start(self._accepted)

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def url(self) -> str:
        return f"http{'s' if self.identity else ''}://{HOST}:{self.port}"

    def with_user(self, user: str) -> str:
        """The URL with user and password."""
        return self.url.replace("://", f"://{user}@")

    def stop(self) -> None:
        """Leave no thread and no socket behind."""
        self._listener.close()
        for each in self._open:
            _hang_up(each)
        self._listener.join()
        # Some may have come since.
        for each in self._open:
            each.close()

    def _keep(self, opened: socket.socket) -> None:
        self._open.append(opened)
        if self._listener.stopping.is_set():
            _hang_up(opened)

    def _accepted(self, client: socket.socket) -> None:
        self._keep(client)
        self._listener.begin(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self.identity is not None:
                client = self.identity.wrap_socket(client, server_side=True)
                self._keep(client)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                piece = client.recv(1)
                if not piece:
                    break
                head += piece
            first, *lines = head.decode("latin-1").rstrip().split("\r\n")
            pairs = (line.partition(":") for line in lines)
            self.asked.append((first, {name.lower(): value.strip() for name, _, value in pairs}))
            answer = self.answers.pop(0) if self.answers else self.answer
            if answer is not None:
                client.sendall(answer)
                if not answer:
                    self._listener.stopping.wait()
            else:
                self._tunnel(client)
        _hang_up(client)

    def _tunnel(self, client: socket.socket) -> None:
        server = socket.create_connection(self.server)
        self._keep(server)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        _pump(client, server)
        _hang_up(server)


def _pump(client: socket.socket, server: socket.socket) -> None:
    """Pass everything on, both ways, until one side ends; in one thread, as a TLS socket wants it."""
    ways = {client: server, server: client}
    waiting = {client: b"", server: b""}
    for each in ways:
        each.settimeout(0)
    while True:
        poll = select.poll()
        for source, sink in ways.items():
            wants = (0 if waiting[sink] else select.POLLIN) | (select.POLLOUT if waiting[source] else 0)
            poll.register(source, wants)
        has_more = isinstance(client, ssl.SSLSocket) and not waiting[server] and client.pending()
        poll.poll(0 if has_more else None)
        for source, sink in ways.items():
            with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if not waiting[sink]:
                    waiting[sink] = source.recv(16384)
                    if not waiting[sink]:
                        return
            with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                waiting[sink] = waiting[sink][sink.send(waiting[sink]) :] if waiting[sink] else b""


def _hang_up(each: socket.socket) -> None:
    """End the connection; its descriptor stays, for a thread may be polling it."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(each, socket.SHUT_RDWR)
