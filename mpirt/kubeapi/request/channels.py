"""
The exec channel protocol of Kubernetes, without I/O.

Owns: the layout of messages, the two sub-protocols that are spoken, and the status object that ends a session.
Bytes of whole WebSocket messages in, events out. Must not know: keepers, sockets.

The caller's duty: send each message that `stdin_messages` gives unfragmented: the servers take every frame for a
message, and its first byte for a channel.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby

from mpirt.errors import PeerError, one_line
from mpirt.values import Value

# On v4 the API server passes bytes through, so that a ping is answered on the node; on v5 it answers itself.
V4 = "v4.channel.k8s.io"
V5 = "v5.channel.k8s.io"

STDOUT = 1
STDERR = 2
_STDIN = 0

# Servers send no more at once either; they take 32 MiB, but a piece that large would hold up everything behind it.
LARGEST_MESSAGE = 32 * 1024
# A status is a few hundred bytes; one that holds a runtime's whole complaint a few thousand.
_LONGEST_STATUS = 64 * 1024
_LARGEST_CODE = 255
# As runtimes write it, with older libraries of Kubernetes and with newer; what else comes is read as JSON.
_SUCCESS = (b'{"metadata":{},"status":"Success"}', b'{"status":"Success"}')


class Output(Value):
    """Bytes of the command's stdout or stderr."""

    stream: int
    data: bytes


class Succeeded(Value):
    """The server says that the command ended with 0. On v5 it also says so when it has lost the node."""


class ExitedWith(Value):
    """The runtime says that the process it started ended with this code, which is not 0."""

    code: int


class Failed(Value):
    """The server says that it could not run the command, or not see it through."""

    reason: str
    message: str


Status = Succeeded | ExitedWith | Failed
Event = Output | Status


def stdin_messages(data: bytes) -> Iterator[bytes]:
    """Bytes for the process's stdin as messages."""
    for start in range(0, len(data), LARGEST_MESSAGE - 1):
        yield bytes([_STDIN]) + data[start : start + LARGEST_MESSAGE - 1]


def joined(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Messages that were received, those of an output stream that follow each other as one: they cost as much."""
    for channel, group in groupby(messages, key=lambda message: message[:1]):
        if channel in (b"\1", b"\2"):
            yield b"".join((channel, *(memoryview(message)[1:] for message in group)))
        else:
            yield from group


def carries_output(message: bytes) -> bool:
    """Whether a message has bytes of the process's stdout or stderr: those come from the node."""
    return len(message) > 1 and message[0] in (STDOUT, STDERR)


class Channels:
    """One session's incoming messages."""

    __slots__ = ("_status", "_told")

    def __init__(self) -> None:
        self._status = b""
        self._told = False

    def receive(self, message: bytes) -> Event | None:
        """What a message says; None when that is nothing (yet) or its channel is unknown. Raises PeerError."""
        channel, data = message[:1], message[1:]
        # Empty messages open a session and keep it alive.
        if not data:
            return None
        if channel in (b"\1", b"\2"):
            return Output(channel[0], data)
        if channel == b"\3":
            return self._status_part(data)
        # What later servers may have to say is nothing that a command's end hangs on.
        return None

    def _status_part(self, data: bytes) -> Status | None:
        if self._told:
            raise PeerError("the session's status came twice")
        self._status += data
        if len(self._status) > _LONGEST_STATUS:
            raise PeerError(f"a status is longer than {_LONGEST_STATUS} bytes")
        if self._status in _SUCCESS:
            self._status, self._told = b"", True
            return Succeeded()
        try:
            body = json.loads(self._status)
        except (ValueError, RecursionError):
            return None
        self._status, self._told = b"", True
        return parse_status(body)


def parse_status(body: object) -> Status:
    """Read a metav1.Status strictly: an exit code only where the server means one."""
    if not isinstance(body, dict) or body.get("status") not in ("Success", "Failure"):
        raise PeerError("the session's status is neither Success nor Failure")
    if body["status"] == "Success":
        return Succeeded()
    reason = _text(body.get("reason"))
    code = _exit_code(body.get("details")) if reason == "NonZeroExitCode" else None
    return Failed(reason, _text(body.get("message"))) if code is None else ExitedWith(code)


def _exit_code(details: object) -> int | None:
    """The one cause with the reason ExitCode; other causes hold free text."""
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "ExitCode":
            text = cause.get("message")
            if isinstance(text, str) and text.isascii() and text.isdigit() and 0 < int(text) <= _LARGEST_CODE:
                return int(text)
    return None


def _text(given: object) -> str:
    return one_line(given) if isinstance(given, str) else ""
