"""
WebSocket frames as a server has them (RFC 6455, section 5): client frames in, server frames out.

Owns: bytes and frames, and noticing everything in a client's frames that a Go server would stumble over. No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTINUATION, TEXT, BINARY = 0x0, 0x1, 0x2
CLOSE, PING, PONG = 0x8, 0x9, 0xA
_DATA = (CONTINUATION, TEXT, BINARY)
# golang.org/x/net/websocket closes the connection above this.
FRAME_LIMIT = 32 * 1024 * 1024


@dataclass(frozen=True)
class Frame:
    """One frame from the client."""

    opcode: int
    payload: bytes

    @property
    def is_data(self) -> bool:
        return self.opcode in _DATA


def frame(opcode: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    """A server's frame: not masked."""
    first, size = opcode | (0x80 if last else 0), len(payload)
    if size < 126:
        return bytes([first, size]) + payload
    if size < 65536:
        return bytes([first, 126]) + size.to_bytes(2) + payload
    return bytes([first, 127]) + size.to_bytes(8) + payload


def message(channel: int, payload: bytes = b"") -> bytes:
    """An exec message in one frame: the channel's number and its bytes."""
    return frame(BINARY, bytes([channel]) + payload)


class ClientFrames:
    """Bytes in, frames out. `complaints` is what the client does that it must not."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._buffer = b""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now."""
        self._buffer += data
        frames = []
        while (found := self._next()) is not None:
            frames.append(found)
        return frames

    def _next(self) -> Frame | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, start = buffer[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(buffer) < 2 + width:
                return None
            size, start = int.from_bytes(buffer[2 : 2 + width]), 2 + width
        is_masked = bool(buffer[1] & 0x80)
        end = start + 4 * is_masked + size
        if len(buffer) < end:
            return None
        self._buffer = buffer[end:]
        self._check(buffer[0], size, is_masked=is_masked)
        payload = buffer[start + 4 * is_masked : end]
        if is_masked:
            mask = buffer[start : start + 4] * (size // 4 + 1)
            payload = (int.from_bytes(payload) ^ int.from_bytes(mask[:size])).to_bytes(size)
        return Frame(buffer[0] & 0x0F, payload)

    def _check(self, first: int, size: int, *, is_masked: bool) -> None:
        if not is_masked:
            self.complaints.append("a client's frame is not masked")
        if not first & 0x80 or first & 0x0F == CONTINUATION:
            # x/net hands every fragment on as a message, so that its first byte becomes a channel number.
            self.complaints.append("a message is fragmented")
        if first & 0x70:
            self.complaints.append("a frame uses an extension that was not negotiated")
        if size > FRAME_LIMIT:
            self.complaints.append(f"a frame of {size} bytes is larger than a server takes")
