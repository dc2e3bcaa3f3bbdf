"""
One client's connection, as the loopback API server's threads use it.

Owns: a TLS socket and its ways to end: properly, by reset, or never (half-open). One thread uses each.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


class Gone(Exception):
    """The client, or the whole server, is no longer there."""


@dataclass(frozen=True)
class Request:
    """One request as it arrived. Header names are lower case."""

    method: str
    target: str
    headers: dict[str, str]

    @classmethod
    def parse(cls, head: bytes) -> Request:
        """From all that comes before its body."""
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        pairs = (line.split(":", 1) for line in lines if line)
        return cls(method, target, {name.strip().lower(): value.strip() for name, value in pairs})

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def words(self) -> list[str]:
        """The path, split and unquoted."""
        return [unquote(word) for word in self.path.strip("/").split("/")]

    @property
    def query(self) -> dict[str, str]:
        """The query; of repeated names the last."""
        return dict(self._pairs)

    def all(self, name: str) -> list[str]:
        """Every value that the query has for a name."""
        return [value for found, value in self._pairs if found == name]

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)


class Connection:
    """An open connection; `stopping` is set when the server goes away."""

    def __init__(self, sock: ssl.SSLSocket, stopping: threading.Event) -> None:
        self.socket = sock
        self._stopping = stopping
        self._buffer = b""
        self.closed = False

    @property
    def client_name(self) -> str:
        """The common name of the client's certificate; empty without one."""
        certificate: dict[str, Any] = dict(self.socket.getpeercert() or {})
        name: str = dict(pair for part in certificate.get("subject", ()) for pair in part).get("commonName", "")
        return name

    def receive(self) -> bytes:
        """Whatever arrives next. Raises Gone at the end."""
        if self._buffer:
            data, self._buffer = self._buffer, b""
            return data
        try:
            data = self.socket.recv(65536)
        except OSError as error:
            raise Gone from error
        if not data:
            raise Gone
        return data

    def receive_until(self, end: bytes) -> bytes:
        """Everything up to and with `end`; what comes after it is left for later."""
        data = b""
        while end not in data:
            data += self.receive()
        cut = data.index(end) + len(end)
        self._buffer = data[cut:] + self._buffer
        return data[:cut]

    def receive_request(self) -> Request:
        """The next request; they have no bodies here."""
        return Request.parse(self.receive_until(b"\r\n\r\n"))

    def unread(self, data: bytes) -> None:
        """Put bytes back."""
        self._buffer = data + self._buffer

    def take_unread(self) -> bytes:
        """Bytes that have arrived after the request."""
        data, self._buffer = self._buffer, b""
        return data

    def send(self, data: bytes) -> None:
        """Send everything. Raises Gone."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Gone from error

    def pause(self, seconds: float) -> None:
        """Say nothing for a while. Raises Gone when the server stops."""
        if self._stopping.wait(seconds):
            raise Gone

    def hang(self) -> None:
        """Be half-open: neither read nor write nor close, until the server stops."""
        self._stopping.wait()
        raise Gone

    def close(self) -> None:
        """End the connection in the ordinary way."""
        self.closed = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self.closed = True
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


@dataclass(frozen=True)
class Exchange:
    """A request and the connection to answer it on."""

    connection: Connection
    request: Request
