"""
The exec sub-protocols from the server's side (v4.channel.k8s.io, v5.channel.k8s.io).

Owns: the opening handshake, and one session's frames in both directions. One thread plays the pod.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tests.apiserver import frames
from tests.apiserver.connection import Connection, Exchange, Gone, Request
from tests.apiserver.faults import Bare, head
from tests.apiserver.frames import ClientFrames, Frame, frame, message
from tests.apiserver.waiting import ready

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE_CHANNEL = 0, 1, 2, 3, 4, 255
SUCCESS: Mapping[str, Any] = {"metadata": {}, "status": "Success"}
NORMAL = 1000


def as_go_writes_it(status: Mapping[str, Any]) -> bytes:
    """JSON without blanks."""
    return json.dumps(status, separators=(",", ":")).encode()


def exit_status(code: int) -> Mapping[str, Any]:
    """What the status channel says of a command that ended with a code."""
    if code == 0:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def internal_error(message: str) -> Mapping[str, Any]:
    """What the status channel says when the runtime could not do it. It has causes too, in free text."""
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "InternalError",
        "code": 500,
        "message": f"Internal error occurred: {message}",
        "details": {"causes": [{"message": message}]},
    }


class Channel:
    """An accepted exec WebSocket."""

    def __init__(self, connection: Connection, request: Request, protocol: str) -> None:
        self.connection = connection
        self.protocol = protocol
        self.command = request.all("command")
        self.container = request.query.get("container", "")
        self.received: list[Frame] = []
        self.answers_pings = True
        self._parser = ClientFrames()
        self._waiting: list[Frame] = []
        self._stdin = b""
        self._feed(connection.take_unread())

    @property
    def complaints(self) -> list[str]:
        """What the client does that it must not."""
        return self._parser.complaints

    def stdout(self, data: bytes) -> None:
        self.raw(message(STDOUT, data))

    def stderr(self, data: bytes) -> None:
        self.raw(message(STDERR, data))

    def status(self, status: Mapping[str, Any] | bytes) -> None:
        """Say how the command ended."""
        self.raw(message(STATUS, status if isinstance(status, bytes) else as_go_writes_it(status)))

    def ping(self, payload: bytes = b"") -> None:
        self.raw(frame(frames.PING, payload))

    def close(self, code: int | None = NORMAL) -> None:
        """Send a close frame (without a code if None) and end the connection."""
        self.raw(frame(frames.CLOSE, b"" if code is None else code.to_bytes(2)))
        self.connection.close()

    def raw(self, data: bytes) -> None:
        """Send bytes that may be frames."""
        self.connection.send(data)

    def next_frame(self) -> Frame:
        """The client's next frame, ping or not. Raises Gone."""
        while not self._waiting:
            self._feed(self.connection.receive())
        return self._waiting.pop(0)

    def next_message(self) -> tuple[int, bytes]:
        """The client's next message that isn't empty: channel and bytes. Raises Gone when it closes."""
        while True:
            found = self.next_frame()
            if found.opcode == frames.CLOSE:
                raise Gone
            if found.is_data and found.payload:
                return found.payload[0], found.payload[1:]

    def stdin_line(self) -> bytes:
        """One line of what the client sends as stdin, without its end."""
        while b"\n" not in self._stdin:
            channel, data = self.next_message()
            if channel == STDIN:
                self._stdin += data
        line, _, self._stdin = self._stdin.partition(b"\n")
        return line

    def drain(self) -> list[Frame]:
        """Every frame that has arrived, without waiting. Raises Gone at the end of the connection."""
        while self.connection.socket.pending() or ready([self.connection.socket.fileno()], within=0)[0]:
            self._feed(self.connection.receive())
        found, self._waiting = self._waiting, []
        return found

    def _feed(self, data: bytes) -> None:
        for found in self._parser.feed(data):
            self.received.append(found)
            if found.opcode == frames.PING and self.answers_pings:
                self.raw(frame(frames.PONG, found.payload))
            elif found.opcode not in (frames.PING, frames.PONG):
                self._waiting.append(found)


def accept(exchange: Exchange, spoken: tuple[str, ...]) -> Channel | None:
    """Answer the handshake as the runtime does; None when no sub-protocol fits, which it says with a bare 403."""
    connection, request = exchange.connection, exchange.request
    offered = [word.strip() for word in request.headers.get("sec-websocket-protocol", "").split(",")]
    # The API server's translator takes everything that offers v5; else the runtime takes the first that it knows.
    chosen = V5 if V5 in offered and V5 in spoken else next((name for name in offered if name in spoken), "")
    if not chosen:
        Bare(403).play(exchange)
        return None
    connection.send(switching(request, chosen))
    channel = Channel(connection, request, chosen)
    # An empty message on the lowest output channel comes first. It means nothing.
    channel.stdout(b"")
    return channel


def switching(request: Request, protocol: str, *, key: str = "") -> bytes:
    """The 101 that accepts the handshake; with another `key` than the client's it is a wrong one."""
    text = (key or request.headers["sec-websocket-key"]) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    digest = hashlib.sha1(text.encode()).digest()
    fields = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", base64.b64encode(digest).decode()),
    ]
    return head(101, [*fields, ("Sec-WebSocket-Protocol", protocol)] if protocol else fields)
