"""
One client's connection on the fleet's loop: TLS, requests, and then perhaps a watch or an exec.

Owns: the socket, without ever waiting for it. What it receives are requests at first, and bytes for
its owner once it has been taken over.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from tests.apiserver.connection import Request

_READ = 64 * 1024
# Enough for a burst; then the others get their turn.
_READS_AT_ONCE = 16
_LONGEST_HEAD = 64 * 1024


class Owner(Protocol):
    """Who has taken a connection over: a watch or an exec."""

    def receive(self, data: bytes) -> None:
        """Bytes have come."""

    def ended(self) -> None:
        """The connection has ended."""


class Server(Protocol):
    """Who answers requests, and wants to know what a connection needs."""

    def shaken(self, *, resumed: bool) -> None:
        """A handshake is through."""

    def answer(self, connection: Connection, request: Request) -> None:
        """Answer it, or have it taken over."""

    def watch_for(self, connection: Connection, events: int) -> None:
        """Poll for something else from now on."""

    def closed(self, connection: Connection) -> None:
        """It is gone."""


class Connection:
    """One connection."""

    # fmt: off
    __slots__ = (
        "_events", "_server", "_socket", "_step", "_unread", "_unsent", "is_closed", "number", "owner",
    )
    # fmt: on

    def __init__(self, server: Server, accepted: socket.socket, context: ssl.SSLContext) -> None:
        accepted.setblocking(False)  # noqa: FBT003  it is called so
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server = server
        self._socket = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        self._step: Callable[[], None] = self._shake
        self._events = select.EPOLLIN
        self._unread = b""
        self._unsent = bytearray()
        self.number = self._socket.fileno()
        self.owner: Owner | None = None
        self.is_closed = False

    def act(self) -> None:
        """It is ready."""
        try:
            self._step()
        except ssl.SSLWantReadError:
            self._want(select.EPOLLIN)
        except ssl.SSLWantWriteError:
            self._want(select.EPOLLOUT)
        except OSError:
            self.close()

    def send(self, data: bytes) -> None:
        """Send it, now or when there is room."""
        if self.is_closed:
            return
        self._unsent += data
        try:
            self._flush()
        except OSError:
            self.close()

    def close(self) -> None:
        """End it."""
        if self.is_closed:
            return
        self.is_closed = True
        self._server.closed(self)
        self._socket.close()
        if self.owner is not None:
            self.owner.ended()

    def take_over(self, owner: Owner) -> None:
        """From now on all that is received goes to the owner."""
        self.owner = owner
        early, self._unread = self._unread, b""
        if early:
            owner.receive(early)

    def _shake(self) -> None:
        self._socket.do_handshake()
        self._server.shaken(resumed=bool(self._socket.session_reused))
        self._step = self._serve
        self._serve()

    def _serve(self) -> None:
        self._flush()
        for _ in range(_READS_AT_ONCE):
            if self.is_closed:
                return
            try:
                data = self._socket.recv(_READ)
            except ssl.SSLWantReadError:
                break
            if not data:
                self.close()
                return
            self._take(data)
            if len(data) < _READ and not self._socket.pending():
                break
        else:
            # poll can't see what TLS has read ahead; it can see that there is room to write.
            self._want(select.EPOLLIN | select.EPOLLOUT)
            return
        self._want(select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))

    def _take(self, data: bytes) -> None:
        if self.owner is not None:
            self.owner.receive(data)
            return
        self._unread += data
        while self.owner is None and not self.is_closed:
            head, end, rest = self._unread.partition(b"\r\n\r\n")
            if not end:
                if len(head) > _LONGEST_HEAD:
                    self.close()
                return
            self._unread = rest
            self._server.answer(self, Request.parse(head))

    def _flush(self) -> None:
        while self._unsent:
            try:
                sent = self._socket.send(bytes(self._unsent[:_READ]))
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                self._want(select.EPOLLIN | select.EPOLLOUT)
                return
            del self._unsent[:sent]

    def _want(self, events: int) -> None:
        if events != self._events and not self.is_closed:
            self._events = events
            self._server.watch_for(self, events)
