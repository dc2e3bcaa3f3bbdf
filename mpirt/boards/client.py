"""
A connection to a switchboard, from a client that only asks.

Owns: the socket, and the frames of an answer. What is asked, and what the answer means, is the caller's business.
"""

from __future__ import annotations

import _socket
import os
import sys
import time

from mpirt.boards import protocol
from mpirt.boards.peers import is_ours
from mpirt.boards.places import NotUsed, open_folder
from mpirt.errors import PeerError
from mpirt.framing import HEADER, read_header

_READ = 256 * 1024
_WELCOME_SIZE = 8
# Of the two numbers of a timeval.
_LONG = 8


def connect(place: str, *, seconds: float) -> Client | None:
    """
    Connect to the switchboard in a folder; None where nobody listens. Raises NotUsed.

    A switchboard whose queue is full for so many seconds is one that can't be asked.
    """
    folder = open_folder(place)
    if folder is None:
        return None
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _limit_connect(connection, seconds)
        # Through the descriptor: its path may lead to another folder by now, and be too long for an address.
        connection.connect(f"/proc/self/fd/{folder}/socket")
        _check_peer(connection)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise NotUsed(f"can't be asked: {error.strerror}") from error
    except NotUsed:
        connection.close()
        raise
    finally:
        os.close(folder)
    return Client(connection)


def _limit_connect(connection: _socket.socket, seconds: float) -> None:
    """How long connect() waits for a place in the queue: without a limit, for ever."""
    if not seconds:
        connection.settimeout(0)
        return
    limit = (int(seconds), int(seconds % 1 * 1e6))
    connection.setsockopt(
        _socket.SOL_SOCKET, _socket.SO_SNDTIMEO, b"".join(each.to_bytes(_LONG, sys.byteorder) for each in limit)
    )


def _check_peer(connection: _socket.socket) -> None:
    if not is_ours(connection):
        raise NotUsed("has a socket of another user or container")


class Client:
    """A connection. Ask one thing at a time; after an error, close it."""

    __slots__ = ("_socket", "_unread", "was_welcome")

    def __init__(self, connection: _socket.socket) -> None:
        self._socket = connection
        self._unread = bytearray()
        self.was_welcome = False

    def ask(self, request: bytes, answer: int, seconds: float) -> bytes:
        """Send a frame; give the whole answer, in frames of that type. Raises EOFError, OSError, PeerError."""
        end = time.monotonic() + seconds
        if not self.was_welcome:
            self._take_welcome(end)
        self._wait_until(end)
        self._socket.sendall(request)
        pieces = []
        while piece := self._piece(answer, end):
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _take_welcome(self, end: float) -> None:
        kind, payload = self._frame(end)
        spoken = int.from_bytes(payload[:4], "little") if len(payload) == _WELCOME_SIZE else 0
        if (kind, spoken) != (protocol.WELCOME, protocol.PROTOCOL):
            raise PeerError(f"a switchboard of another version of mpirt runs here: its protocol is {spoken}")
        self.was_welcome = True

    def _piece(self, answer: int, end: float) -> bytes:
        kind, payload = self._frame(end)
        if kind != answer:
            raise PeerError(f"the switchboard answers with a frame of type {kind}")
        return payload

    def _frame(self, end: float) -> tuple[int, bytes]:
        kind, length = read_header(self._read(HEADER, end))
        if length > protocol.LARGEST_ANSWER:
            raise PeerError(f"the switchboard sends a frame of {length} bytes")
        return kind, self._read(length, end)

    def _read(self, count: int, end: float) -> bytes:
        unread = self._unread
        while len(unread) < count:
            self._wait_until(end)
            data = self._socket.recv(_READ)
            if not data:
                raise EOFError
            unread += data
        taken = bytes(unread[:count])
        del unread[:count]
        return taken

    def _wait_until(self, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
