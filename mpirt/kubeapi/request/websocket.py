"""
WebSocket frames as a client has them (RFC 6455, section 5), without I/O.

Owns: frames in both directions, and the bounds of what a server may send. Randomness is handed in.
Must not import: websocket, which costs every remote command 18 ms and 4 MB, http.client and logging among them.

The caller's duty: feed() what arrives, the `leftover` of the upgrade first; answer a Ping with pong(), and a
Closed with close(). Messages are written in one frame each, for Go's servers take every fragment for a message.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterator, Sequence

from mpirt.errors import PeerError
from mpirt.kubeapi.request.http1 import Head
from mpirt.values import Value

_ACCEPT_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
# Servers send at most 32 KiB at a time; what is far beyond that is not an exec's output.
MESSAGE_LIMIT = 1024 * 1024
_CONTINUATION, _TEXT, _BINARY = 0x0, 0x1, 0x2
_CLOSE, _PING, _PONG = 0x8, 0x9, 0xA
_KNOWN = frozenset((_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG))
_LAST, _RESERVED, _CONTROL, _MASKED = 0x80, 0x70, 0x08, 0x80
_CONTROL_LIMIT = 125
_IN_2_BYTES, _IN_8_BYTES = 126, 127
_HEADER = _CODE = 2
NORMAL = 1000
# Of a table of 256 bytes: each byte in its place, and a one in each place.
_ALL_BYTES, _ONE_EACH = int.from_bytes(range(256)), int.from_bytes(b"\1" * 256)


class Message(Value):
    """A whole message. Text and binary are the same here."""

    data: bytes


class Ping(Value):
    """The server wants a pong with the same data."""

    data: bytes


class Pong(Value):
    """The answer to a ping of ours, or a sign of life without one."""

    data: bytes


class Closed(Value):
    """The server sends no more. The code is None where it gave none."""

    code: int | None
    reason: str


class FrameReader:
    """Bytes in, events out."""

    __slots__ = ("_held", "_limit", "_missing", "_parts")

    def __init__(self, *, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        # The beginning of a frame, and how much more has to come before more can be said.
        self._held: list[bytes] = []
        self._missing = 0
        self._parts: bytearray | None = None

    def feed(self, data: bytes) -> Iterator[Message | Ping | Pong | Closed]:
        """Take bytes; give what is complete now. Raises PeerError, after what stands before the offence."""
        self._held.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        data, self._held = b"".join(self._held), []
        at = 0
        while (found := self._next(data, at)) is not None:
            first, payload, at = found
            event = self._event(first, payload)
            if event is not None:
                yield event
        self._held.append(data[at:])

    def _next(self, data: bytes, at: int) -> tuple[int, bytes, int] | None:
        """The frame that begins there, and where it ends."""
        start = at + _HEADER
        if self._lacks(data, start):
            return None
        first, size = data[at], data[at + 1]
        if first & _RESERVED or size & _MASKED or first & 0x0F not in _KNOWN:
            raise PeerError(f"invalid WebSocket frame header: {data[at : at + 8].hex(' ')}")
        if first & _CONTROL and (not first & _LAST or size > _CONTROL_LIMIT):
            raise PeerError("a WebSocket control frame is longer than 125 bytes or in fragments")
        if size in (_IN_2_BYTES, _IN_8_BYTES):
            length_at, start = start, start + (2 if size == _IN_2_BYTES else 8)
            if self._lacks(data, start):
                return None
            size = int.from_bytes(data[length_at:start])
        if size > self._limit:
            raise PeerError(f"a WebSocket frame of {size} bytes; more than {self._limit} are not taken")
        end = start + size
        return None if self._lacks(data, end) else (first, data[start:end], end)

    def _lacks(self, data: bytes, end: int) -> bool:
        self._missing = end - len(data)
        return self._missing > 0

    def _event(self, first: int, payload: bytes) -> Message | Ping | Pong | Closed | None:
        opcode = first & 0x0F
        if opcode == _PING:
            return Ping(payload)
        if opcode == _PONG:
            return Pong(payload)
        if opcode == _CLOSE:
            code = int.from_bytes(payload[:2]) if len(payload) >= _CODE else None
            return Closed(code, payload[_CODE:].decode("utf-8", "replace"))
        return self._message(payload, begins=opcode != _CONTINUATION, ends=bool(first & _LAST))

    def _message(self, payload: bytes, *, begins: bool, ends: bool) -> Message | None:
        """No server that we know sends fragments, but a proxy may make some."""
        if begins != (self._parts is None):
            raise PeerError("fragments of WebSocket messages come out of order")
        if begins and ends:
            return Message(payload)
        parts = self._parts if self._parts is not None else bytearray()
        parts += payload
        if len(parts) > self._limit:
            raise PeerError(f"a WebSocket message is longer than {self._limit} bytes")
        self._parts = None if ends else parts
        return Message(bytes(parts)) if ends else None


def binary(data: bytes, mask: bytes) -> bytes:
    """A binary message in one frame. The mask is four random bytes, for each frame its own."""
    return _frame(_BINARY, data, mask)


def ping(data: bytes, mask: bytes) -> bytes:
    """A ping; its data, at most 125 bytes, comes back in the pong."""
    return _frame(_PING, data, mask)


def pong(data: bytes, mask: bytes) -> bytes:
    """The answer to a ping."""
    return _frame(_PONG, data, mask)


def close(code: int, mask: bytes) -> bytes:
    """The last frame."""
    return _frame(_CLOSE, code.to_bytes(2), mask)


def _frame(opcode: int, payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    if size <= _CONTROL_LIMIT:
        header = bytes((_LAST | opcode, _MASKED | size))
    elif size <= 0xFFFF:  # noqa: PLR2004  what two bytes hold
        header = bytes((_LAST | opcode, _MASKED | _IN_2_BYTES)) + size.to_bytes(2)
    else:
        header = bytes((_LAST | opcode, _MASKED | _IN_8_BYTES)) + size.to_bytes(8)
    return b"".join((header, mask, _masked(payload, mask)))


def _masked(payload: bytes, mask: bytes) -> bytearray:
    """Each byte's exclusive or with the mask's: by a table for each of those, the fastest way without C."""
    masked = bytearray(len(payload))
    step = len(mask)
    for at, key in enumerate(mask):
        masked[at::step] = payload[at::step].translate((_ALL_BYTES ^ _ONE_EACH * key).to_bytes(256))
    return masked


def upgrade_headers(key: str, protocols: Sequence[str]) -> list[tuple[str, str]]:
    """Ask for a WebSocket with one of the sub-protocols. Extensions are never offered."""
    return [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key),
        ("Sec-WebSocket-Protocol", ", ".join(protocols)),
    ]


def new_key(entropy: bytes) -> str:
    """Write 16 random bytes as a handshake key."""
    return binascii.b2a_base64(entropy, newline=False).decode()


def accepted_protocol(head: Head, key: str, protocols: Sequence[str]) -> str:
    """The sub-protocol that a 101 settles on. Raises PeerError when the answer is not one to this handshake."""
    if head.header("upgrade").lower() != "websocket" or "upgrade" not in head.header("connection").lower():
        raise PeerError("the API server switched to something that is not a WebSocket")
    if head.header("sec-websocket-accept") != _answer_to(key):
        raise PeerError(
            "the API server's Sec-WebSocket-Accept is not the answer to our key; is there a cache between?"
        )
    if head.header("sec-websocket-extensions"):
        raise PeerError("the API server uses a WebSocket extension that was not offered")
    protocol = head.header("sec-websocket-protocol")
    if protocol not in protocols:
        offered = ", ".join(protocols)
        raise PeerError(f"the API server chose the sub-protocol {protocol[:40]!r}; offered: {offered}")
    return protocol


def _answer_to(key: str) -> str:
    digest = hashlib.sha1(key.encode() + _ACCEPT_SUFFIX, usedforsecurity=False).digest()
    return binascii.b2a_base64(digest, newline=False).decode()
