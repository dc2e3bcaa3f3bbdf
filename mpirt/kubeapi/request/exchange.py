"""
A request sent and its answer read, in steps that never wait.

Owns: the exchange on an open connection, and the connection kept for the next one. Must not know: how to connect,
what is asked.
"""

from __future__ import annotations

from mpirt.errors import PeerError
from mpirt.kubeapi.access.credentials import Certificate, Credentials
from mpirt.kubeapi.access.steps import Deadline, Steps, Wait
from mpirt.kubeapi.request.answers import ConnectionLost, TimedOut
from mpirt.kubeapi.request.http1 import OK, ResponseReader
from mpirt.kubeapi.request.stream import TlsStream

# An answer without a length ends with its connection, which not everybody closes: a refusal is complete by then.
_GRACE = 1.0


def ready(stream: TlsStream, deadline: Deadline, doing: str) -> Steps[None]:
    """Wait once for the stream. Raises TimedOut."""
    check(stream, deadline, doing)
    yield Wait(stream.fileno(), stream.wants, deadline)


def check(stream: TlsStream, deadline: Deadline, doing: str) -> None:
    """Go on only while there is time: a peer that always has one more byte must not prolong it."""
    if deadline.passed():
        raise TimedOut(f"the API server at {stream.peer.name} did not answer within {deadline} ({doing})")


def converse(stream: TlsStream, request: bytes, reader: ResponseReader, deadline: Deadline) -> Steps[None]:
    """Send a request and read its answer. The stream is closed when that fails."""
    try:
        check(stream, deadline, "sending the request")
        stream.write(request)
        while not reader.complete:
            yield from _read_some(stream, reader, deadline)
            if reader.head is not None and not reader.framed and reader.head.status != OK:
                yield from _read_unframed(stream, reader, deadline.within(_GRACE))
    except BaseException:
        stream.close()
        raise


def _read_some(stream: TlsStream, reader: ResponseReader, deadline: Deadline) -> Steps[None]:
    doing = "waiting for its answer" if reader.head is None else "reading its answer"
    check(stream, deadline, doing)
    data = stream.read()
    if data is None:
        yield from ready(stream, deadline, doing)
        stream.flush()
    elif data:
        try:
            reader.feed(data)
        except PeerError as error:
            raise PeerError(f"the API server at {stream.peer.name}: {error}") from error
    else:
        reader.eof()
        if not reader.complete:
            what = "without an answer" if reader.untouched else "in the middle of its answer"
            raise ConnectionLost(f"the API server at {stream.peer.name} closed the connection {what}")


def _read_unframed(stream: TlsStream, reader: ResponseReader, deadline: Deadline) -> Steps[None]:
    try:
        while not reader.complete:
            yield from _read_some(stream, reader, deadline)
    except TimedOut:
        reader.eof()


class Kept:
    """The connection that is kept for the next request, if any."""

    __slots__ = ("_certificate", "_stream")

    def __init__(self) -> None:
        self._stream: TlsStream | None = None
        self._certificate: Certificate | None = None

    def put(self, stream: TlsStream, credentials: Credentials) -> None:
        """Keep an open connection on which nothing is awaited."""
        self.close()
        self._stream, self._certificate = stream, credentials.certificate

    def take(self, credentials: Credentials) -> TlsStream | None:
        """The connection that was kept, unless it has ended or showed another client certificate."""
        stream, self._stream = self._stream, None
        if stream is None:
            return None
        try:
            if self._certificate == credentials.certificate and stream.read() is None:
                return stream
        except (ConnectionLost, PeerError):
            pass
        stream.close()
        return None

    def close(self) -> None:
        """Keep none."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
