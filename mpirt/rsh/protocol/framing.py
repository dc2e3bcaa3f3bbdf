"""
Frames as bytes: one layout for a switchboard with its agents and clients, and for an agent with its keeper.

Owns: the header, which docs/keeper.md describes and images/common/frames.c has in C, and the bytes of a frame that
is not whole yet. No I/O. Must not know: what a type means.
"""

from __future__ import annotations

from mpirt.errors import PeerError
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["HEADER", "Frame", "FrameReader", "frame", "header", "read_header"]

# type u8, length u24, epoch u32, number u64: little endian.
HEADER = 16


class Frame(Value):
    """One frame."""

    kind: int
    epoch: int
    number: int
    payload: bytes


def header(kind: int, length: int, *, epoch: int = 0, number: int = 0) -> bytes:
    """The beginning of a frame, for a payload of that many bytes that follows."""
    head = kind.to_bytes(1, "little") + length.to_bytes(3, "little")
    return head + epoch.to_bytes(4, "little") + number.to_bytes(8, "little")


def frame(kind: int, payload: bytes = b"", *, epoch: int = 0, number: int = 0) -> bytes:
    """A whole frame."""
    return header(kind, len(payload), epoch=epoch, number=number) + payload


def read_header(data: bytes | bytearray, at: int = 0) -> tuple[int, int]:
    """The type, and the length of the payload, of the frame that begins there."""
    return data[at], data[at + 1] | data[at + 2] << 8 | data[at + 3] << 16


class FrameReader:
    """Makes frames out of a stream of bytes that may be cut anywhere."""

    __slots__ = ("_held", "_limits", "_missing", "_sender")

    def __init__(self, sender: str, limits: Mapping[int, int]) -> None:
        """`sender`: for errors. `limits`: the types that it may send, and how long their payloads may be."""
        self._sender, self._limits = sender, limits
        # The beginning of a frame, and how much more has to come before more can be said.
        self._held: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole by now; take all of them. Raises PeerError for an invalid header."""
        self._held.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        data, self._held = b"".join(self._held), []
        at, needed = 0, HEADER
        while len(data) - at >= HEADER:
            kind, length = read_header(data, at)
            if length > self._limits.get(kind, -1):
                raise PeerError(f"invalid frame from {self._sender}: type {kind}, {length} bytes")
            after = at + HEADER + length
            if after > len(data):
                needed = after - at
                break
            epoch = int.from_bytes(data[at + 4 : at + 8], "little")
            number = int.from_bytes(data[at + 8 : at + HEADER], "little")
            yield Frame(kind, epoch, number, data[at + HEADER : after])
            at = after
        self._held, self._missing = [data[at:]], at + needed - len(data)
