"""
What a request can be answered with, instead of the truth. Each is a value; server.on() takes them.

Owns: answers and ways to withhold one. A fault plays itself on a connection; one that doesn't end it leaves it
open for the next request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any, Protocol

from tests.apiserver.connection import Connection, Exchange


class Fault(Protocol):
    """Something that happens to a request."""

    def play(self, exchange: Exchange) -> None:
        """Do it. Raises Gone when the client has left."""


class Then(Enum):
    """What becomes of a connection after some bytes."""

    STAY = "stay"
    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"

    def happen(self, connection: Connection) -> None:
        match self:
            case Then.CLOSE:
                connection.close()
            case Then.RESET:
                connection.reset()
            case Then.HANG:
                connection.hang()


@dataclass(frozen=True)
class Answer:
    """An ordinary answer with a body and its length."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    type: str = "application/json"

    def play(self, exchange: Exchange) -> None:
        exchange.connection.send(self.head() + self.body)

    def head(self) -> bytes:
        fields = (("Content-Type", self.type), *self.headers, ("Content-Length", str(len(self.body))))
        return head(self.status, fields)


def head(status: int, fields: Sequence[tuple[str, str]]) -> bytes:
    """A status line and headers."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status_object(code: int, reason: str = "", message: str = "") -> dict[str, Any]:
    """The Status that an API server says no with."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


@dataclass(frozen=True)
class Status:
    """A no, as an API server says it."""

    code: int
    reason: str = ""
    message: str = ""
    retry_after: int | None = None

    def play(self, exchange: Exchange) -> None:
        wait = () if self.retry_after is None else (("Retry-After", str(self.retry_after)),)
        body = json.dumps(status_object(self.code, self.reason, self.message)).encode()
        Answer(self.code, body, wait).play(exchange)


@dataclass(frozen=True)
class Text:
    """A no in plain text, as a kubelet behind the API server says it."""

    code: int
    text: str

    def play(self, exchange: Exchange) -> None:
        Answer(self.code, f"{self.text}\n".encode(), type="text/plain; charset=utf-8").play(exchange)


@dataclass(frozen=True)
class Bare:
    """A status line and not one header, as the WebSocket library behind the kubelet refuses a sub-protocol."""

    code: int
    then: Then = Then.CLOSE

    def play(self, exchange: Exchange) -> None:
        exchange.connection.send(head(self.code, ()))
        self.then.happen(exchange.connection)


@dataclass(frozen=True)
class Redirect:
    """Go elsewhere. Nobody should."""

    location: str
    code: int = 301

    def play(self, exchange: Exchange) -> None:
        Answer(self.code, headers=(("Location", self.location),)).play(exchange)


@dataclass(frozen=True)
class Raw:
    """Exactly these bytes, whatever they are."""

    data: bytes
    then: Then = Then.CLOSE

    def play(self, exchange: Exchange) -> None:
        exchange.connection.send(self.data)
        self.then.happen(exchange.connection)


CHUNKED = head(200, (("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")))


@dataclass(frozen=True)
class Chunked:
    """A 200 whose body comes in chunks; `then` may come before the last one."""

    chunks: tuple[bytes, ...]
    then: Then = Then.STAY

    def play(self, exchange: Exchange) -> None:
        exchange.connection.send(CHUNKED)
        for chunk in self.chunks:
            exchange.connection.send(in_chunk(chunk))
        self.then.happen(exchange.connection)
        if self.then is Then.STAY:
            exchange.connection.send(b"0\r\n\r\n")


def in_chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@dataclass(frozen=True)
class Silence:
    """Half-open: the request is read, and that is all that ever happens."""

    def play(self, exchange: Exchange) -> None:
        exchange.connection.hang()


@dataclass(frozen=True)
class Hangup:
    """The connection ends without an answer."""

    then: Then = Then.CLOSE

    def play(self, exchange: Exchange) -> None:
        self.then.happen(exchange.connection)


@dataclass(frozen=True)
class ByteByByte:
    """An answer of which every byte comes in a TLS record of its own."""

    answer: Answer

    def play(self, exchange: Exchange) -> None:
        for byte in self.answer.head() + self.answer.body:
            exchange.connection.send(bytes([byte]))


@dataclass(frozen=True)
class Endless:
    """A body without end: a byte, and another, and another, until the client leaves."""

    start: bytes = field(default_factory=lambda: head(200, (("Content-Length", str(10**9)),)))
    piece: bytes = b"x"

    def play(self, exchange: Exchange) -> None:
        exchange.connection.send(self.start)
        while True:
            exchange.connection.send(self.piece)


@dataclass(frozen=True)
class Trickle:
    """An answer that comes byte by byte, with a pause after each: there is always something, and never enough."""

    answer: Answer
    pause: float = 0.02

    def play(self, exchange: Exchange) -> None:
        for byte in self.answer.head() + self.answer.body:
            exchange.connection.send(bytes([byte]))
            exchange.connection.pause(self.pause)
