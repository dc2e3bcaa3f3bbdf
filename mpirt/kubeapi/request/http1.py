"""
HTTP/1.1 as an API client speaks it, without I/O.

Owns: the bytes of a request, and the reading of one response out of bytes that arrive in any pieces.
Must not import: socket, ssl, or http.client, which brings the whole email package (10 ms per remote command).

The caller's duty: feed() what arrives, eof() when the peer closes, until `complete`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mpirt.errors import PeerError
from mpirt.values import Value

# API servers send about 2 KB of headers, proxies before them a few more.
HEAD_LIMIT = 64 * 1024
# etcd holds objects up to 1.5 MiB; a page of pods is the largest thing ever asked for.
BODY_LIMIT = 32 * 1024 * 1024
# "a size in hex; extensions" and trailers are short.
_LINE_LIMIT = 8 * 1024
# 100, 102 and 103 may come before the answer; no server sends more than a few.
_INTERIM_LIMIT = 8
# Of a status.
_DIGITS = 3
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

SWITCHING_PROTOCOLS = 101
OK = 200
_NO_BODY = frozenset((SWITCHING_PROTOCOLS, 204, 304))


class Head(Value):
    """A response up to the empty line. Header names are lower case; repeated ones are joined by commas."""

    status: int
    headers: dict[str, str]
    keeps_alive: bool

    def header(self, name: str) -> str:
        """The header's value, or nothing."""
        return self.headers.get(name, "")


def escaped(text: str) -> str:
    """Percent-encode everything that isn't plainly safe in a path segment or a query value."""
    # As urllib.parse.quote, which costs each mpirt-discover 4 ms.
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode())


def query(pairs: Iterable[tuple[str, str]]) -> str:
    """Write a query string; names may repeat, as `command` does."""
    return "&".join(f"{escaped(name)}={escaped(value)}" for name, value in pairs)


def request(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes = b"") -> bytes:
    """Write a request. A line break in a header would let its author add headers: refused."""
    if body:
        headers = [*headers, ("Content-Length", str(len(body)))]
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a request header holds a line break")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


class ResponseReader:
    """
    Reads one response. `head` is there once the empty line has arrived; take() hands out the body piece by piece.

    Where the body of a 200 may be `endless` (a watch), the caller must take() as it comes.
    """

    __slots__ = (
        "_body",
        "_buffer",
        "_endless",
        "_interim",
        "_left",
        "_limit",
        "_step",
        "complete",
        "framed",
        "head",
    )

    def __init__(self, *, body_limit: int = BODY_LIMIT, endless: bool = False) -> None:
        self.head: Head | None = None
        self.complete = False
        # False when only the end of the connection ends the body.
        self.framed = True
        self._buffer = bytearray()
        self._body = bytearray()
        self._left = 0
        self._limit: int | None = body_limit
        self._endless = endless
        self._interim = 0
        self._step: Callable[[], bool] = self._read_head

    def feed(self, data: bytes) -> None:
        """Take bytes as they came from the connection. Raises PeerError when they can't be HTTP."""
        self._buffer += data
        while not self.complete and self._step():
            pass

    def eof(self) -> None:
        """Take note that the peer will send no more. A response that isn't `complete` now was cut short."""
        if self.head is not None and not self.framed:
            self.complete = True

    def take(self) -> bytes:
        """The body bytes that have arrived since the last call."""
        body = bytes(self._body)
        self._body.clear()
        return body

    def answer(self) -> tuple[Head, bytes]:
        """The whole of it, once it is complete."""
        if self.head is None or not self.complete:
            raise ValueError("the answer is not complete")
        return self.head, self.take()

    @property
    def untouched(self) -> bool:
        """Whether not a single byte has arrived."""
        return self.head is None and not self._buffer and not self._interim

    @property
    def reusable(self) -> bool:
        """Whether the connection can be asked again."""
        return (
            self.complete and self.framed and not self._buffer and self.head is not None and self.head.keeps_alive
        )

    @property
    def leftover(self) -> bytes:
        """What came after the response: the first bytes of the next protocol, after an upgrade."""
        return bytes(self._buffer) if self.complete else b""

    def _read_head(self) -> bool:
        start = bytes(self._buffer[:7])
        if not b"HTTP/1.".startswith(start) and start != b"HTTP/1.":
            raise PeerError(f"the answer is not HTTP: it begins with {bytes(self._buffer[:16])!r}")
        end = self._buffer.find(b"\r\n\r\n", 0, HEAD_LIMIT)
        if end < 0:
            if len(self._buffer) >= HEAD_LIMIT:
                raise PeerError(f"the answer's headers are longer than {HEAD_LIMIT} bytes")
            return False
        head = _parse_head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        if 100 <= head.status < 200 and head.status != SWITCHING_PROTOCOLS:  # noqa: PLR2004  the range named 1xx
            self._interim += 1
            if self._interim > _INTERIM_LIMIT:
                raise PeerError(f"more than {_INTERIM_LIMIT} interim answers before the answer itself")
            return True
        self.head = head
        self._begin_body(head)
        return True

    def _begin_body(self, head: Head) -> None:
        coding, length = head.header("transfer-encoding").lower(), head.header("content-length")
        if head.header("content-encoding") not in ("", "identity"):
            raise PeerError("the answer's body is compressed, which was not asked for")
        if self._endless and head.status == OK:
            self._limit = None
        if head.status in _NO_BODY:
            self.complete = True
        elif coding:
            if coding != "chunked" or length:
                raise PeerError(f"the answer's body is framed in a way that can't be read: {coding[:40]!r}")
            self._step = self._read_chunk_size
        elif length:
            self._left = _body_length(length)
            self._make_room(self._left)
            self._step = self._read_sized
        else:
            self.framed = False
            self._step = self._read_rest

    def _read_sized(self) -> bool:
        self._move(self._left)
        if self._left == 0:
            self.complete = True
        return False

    def _read_rest(self) -> bool:
        self._make_room(len(self._body) + len(self._buffer))
        self._body += self._buffer
        self._buffer.clear()
        return False

    def _read_chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        digits = line.split(b";", 1)[0].strip()
        if not digits or len(digits) > 8 or not all(digit in b"0123456789abcdefABCDEF" for digit in digits):  # noqa: PLR2004  8 hex digits are 4 GiB
            raise PeerError(f"the answer's chunk size is not a number: {line[:16]!r}")
        self._left = int(digits, 16)
        if self._limit is not None:
            self._make_room(len(self._body) + self._left)
        self._step = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self) -> bool:
        self._move(self._left)
        if self._left:
            return False
        self._step = self._read_chunk_end
        return True

    def _read_chunk_end(self) -> bool:
        line = self._line()
        if line:
            raise PeerError("the answer's chunk is longer than it said")
        if line is None:
            return False
        self._step = self._read_chunk_size
        return True

    def _read_trailer(self) -> bool:
        line = self._line()
        if line is None:
            return False
        self.complete = not line
        return True

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", 0, _LINE_LIMIT)
        if end < 0:
            if len(self._buffer) >= _LINE_LIMIT:
                raise PeerError("the answer's chunk size is longer than a line may be")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _move(self, wanted: int) -> None:
        piece = self._buffer[:wanted]
        del self._buffer[:wanted]
        self._body += piece
        self._left = wanted - len(piece)

    def _make_room(self, size: int) -> None:
        if self._limit is not None and size > self._limit:
            raise PeerError(f"the answer's body is larger than {self._limit} bytes")


def _parse_head(text: bytes) -> Head:
    status_line, *lines = text.decode("latin-1").split("\r\n")
    version, _, rest = status_line.partition(" ")
    code, _, _ = rest.partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (code.isascii() and code.isdigit()) or len(code) != _DIGITS:
        raise PeerError(f"the answer's first line is not HTTP/1.1: {status_line[:40]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise PeerError(f"the answer has a malformed header: {line[:40]!r}")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    tokens = headers.get("connection", "").lower()
    return Head(int(code), headers, keeps_alive=version == "HTTP/1.1" and "close" not in tokens)


def _body_length(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004  enough for any length
        raise PeerError(f"the answer's Content-Length is not a number: {text[:20]!r}")
    return int(text)
