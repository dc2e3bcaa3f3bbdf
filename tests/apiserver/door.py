"""
What can go wrong before a request: between a client's connect and the end of its TLS handshake. Values.

Owns: faults that have nothing but a TCP connection.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Visitor:
    """A TCP connection; `stopping` is set when the server goes away."""

    socket: socket.socket
    stopping: threading.Event


class DoorFault(Protocol):
    """Something that happens instead of a TLS handshake."""

    def meet(self, visitor: Visitor) -> None:
        """Do it; the caller closes the socket afterwards."""


@dataclass(frozen=True)
class Deaf:
    """The connection is accepted, and nothing is ever sent."""

    def meet(self, visitor: Visitor) -> None:
        visitor.stopping.wait()


@dataclass(frozen=True)
class Slam:
    """The connection is accepted and closed at once, or reset."""

    reset: bool = False

    def meet(self, visitor: Visitor) -> None:
        if self.reset:
            visitor.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass(frozen=True)
class PlainText:
    """Something that doesn't speak TLS lives here."""

    data: bytes = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"

    def meet(self, visitor: Visitor) -> None:
        with contextlib.suppress(OSError):
            visitor.socket.recv(65536)
            visitor.socket.sendall(self.data)
            visitor.socket.shutdown(socket.SHUT_WR)
            while visitor.socket.recv(65536):
                pass
