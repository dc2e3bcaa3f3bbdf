"""
Connections to one API server, in steps that never wait.

Owns: everything between an Endpoint and an open stream: addresses, the TLS context, credentials and the headers
that every request carries; a request sent and its answer read; the connection that is kept for the next one. Must
not know: what is asked. Names are resolved in a thread that can be left behind: the C library's resolver has no
deadline, and a name server that does not answer holds it for 10 s and more.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mpirt.errors import PeerError, Unreachable
from mpirt.kubeapi.access.credentials import Certificate, Credentials
from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.access.steps import Clock, Deadline, Steps, Wait
from mpirt.kubeapi.request.answers import ConnectionLost, TimedOut, Untrusted
from mpirt.kubeapi.request.http1 import OK, ResponseReader, request
from mpirt.kubeapi.request.stream import Address, Peer, SocketAddress, TlsStream
from mpirt.kubeapi.request.tls import Plain, Tls, Transport, Tunnel, proxy_context, tls_context

GetAddrInfo: TypeAlias = Callable[[str, int], Sequence[Address]]

_SESSION_SECONDS = 60.0
# An answer without a length ends with its connection, which not everybody closes: a refusal is complete by then.
_GRACE = 1.0


def by_name(host: str, port: int) -> Sequence[Address]:
    """Ask the system's resolver, for as long as it takes."""
    return _addresses(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def resolve(
    host: str, port: int, deadline: Deadline, *, what: str, look_up: GetAddrInfo = by_name
) -> Steps[Sequence[Address]]:
    """Find the addresses of a host, in the order to try them. `what` names it. Raises Unreachable."""
    try:
        # As bytes: text would bring in the tables of international names, for a millisecond; a number has none.
        number = host.encode("ascii")
        numbers = socket.getaddrinfo(number, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        return (yield from _in_thread(host, port, deadline, what, look_up))
    return _addresses(numbers)


def _in_thread(
    host: str, port: int, deadline: Deadline, what: str, look_up: GetAddrInfo
) -> Steps[Sequence[Address]]:
    found: list[Sequence[Address]] = []
    failed: list[Exception] = []

    def look() -> None:
        try:
            found.append(look_up(host, port))
        except Exception as error:  # noqa: BLE001  raised again by the waiting side
            failed.append(error)

    try:
        reading = _beside(look, f"resolve {host}")
    except (OSError, RuntimeError) as error:
        # No descriptors, or no threads: it may be better the next time.
        raise Unreachable(f"{what} can't be resolved: {error}") from error
    try:
        while not (found or failed):
            if deadline.passed():
                raise TimedOut(f"{what} was not resolved within {deadline}; is DNS up?")
            yield Wait(reading, select.POLLIN, deadline)
    finally:
        os.close(reading)
    if failed:
        problem = failed[0]
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else "not a usable name"
        raise Unreachable(f"{what} can't be resolved: {reason}") from problem
    return found[0]


def _beside(act: Callable[[], None], name: str) -> int:
    """Begin it in a thread. A descriptor that can be read when it is over. Raises OSError, RuntimeError."""
    import threading  # noqa: PLC0415  a launcher has the API server's address, and mpirt-discover starts once a second

    # Each end is closed by one side only: a thread that was left behind never touches a descriptor of ours.
    reading, writing = os.pipe()

    def run() -> None:
        try:
            act()
        finally:
            os.close(writing)

    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError:
        os.close(reading)
        os.close(writing)
        raise
    return reading


def _addresses(found: Sequence[tuple[int, int, int, str, SocketAddress]]) -> Sequence[Address]:
    return [Address(family, address) for family, _, _, _, address in found]


class Dialer:
    """Opens connections to one endpoint, and remembers what need not be found out twice."""

    # fmt: off
    __slots__ = (
        "_addresses", "_clock", "_context", "_look_up", "_peer", "_read_again_at", "_session", "_shown",
        "endpoint",
    )
    # fmt: on

    def __init__(
        self, endpoint: Endpoint, *, look_up: GetAddrInfo = by_name, clock: Clock = time.monotonic
    ) -> None:
        self.endpoint = endpoint
        self._look_up, self._clock = look_up, clock
        self._addresses: Sequence[Address] = ()
        self._context: ssl.SSLContext | None = None
        self._session: ssl.SSLSession | None = None
        self._read_again_at = 0.0
        self._shown: Certificate | None = None
        self._peer = Peer(endpoint.route, endpoint.server_name or endpoint.host, endpoint.trust)

    def credentials(self, deadline: Deadline) -> Steps[Credentials]:
        """Who we are at this moment. Raises ConfigError."""
        return self.endpoint.source.credentials(deadline)

    def open(self, deadline: Deadline, credentials: Credentials) -> Steps[TlsStream]:
        """Connect, trying one address after the other, each for its share of the time that is left."""
        first = self.endpoint.proxy or self.endpoint
        what = f"the {'API server' if first is self.endpoint else 'proxy'}'s name {first.host}"
        if not self._addresses:
            self._addresses = yield from resolve(
                first.host, first.port, deadline, what=what, look_up=self._look_up
            )
        addresses = self._addresses
        lost: Unreachable | None = None
        for number, address in enumerate(addresses):
            share = deadline.within(deadline.left() / (len(addresses) - number))
            try:
                return (yield from self._open_one(address, share, credentials))
            except Untrusted:
                self.forget()
                raise
            except Unreachable as error:
                lost = error
        self.forget()
        raise lost or Unreachable(f"{what} has no address")

    def forget(self) -> None:
        """Look everything up anew the next time: names move, and authorities and certificates are replaced."""
        self._addresses = ()
        self._context = self._session = None

    def remember(self, stream: TlsStream) -> None:
        """Begin the next connections with what this one, which was read from, has agreed on."""
        now = self._clock()
        # Each reading of a session loses 6 kB for ever in Python 3.10 to 3.12 (gh-116810). So one is read where
        # the one before did not do; and seldom, where none ever does.
        if self._session is None or (not stream.is_resumed and now >= self._read_again_at):
            self._session, self._read_again_at = stream.session, now + _SESSION_SECONDS

    def request(
        self,
        target: str,
        credentials: Credentials,
        extra: Sequence[tuple[str, str]] = (),
        *,
        method: str = "GET",
        body: bytes = b"",
    ) -> bytes:
        """Write a request for a target of this API server."""
        # No Accept: JSON is what API servers answer anyway, and with one they refuse to exec (406).
        headers = [("Host", self.endpoint.name), ("User-Agent", "mpirt"), *extra]
        if credentials.token is not None:
            headers.append(("Authorization", f"Bearer {credentials.token.reveal()}"))
        return request(method, f"{self.endpoint.base_path}{target}", headers, body)

    def _open_one(self, address: Address, deadline: Deadline, credentials: Credentials) -> Steps[TlsStream]:
        if self._context is None or self._shown != credentials.certificate:
            self._context = tls_context(self.endpoint.ca, credentials.certificate)
            self._shown, self._session = credentials.certificate, None
        stream = TlsStream(address, self._wrapping(self._context), self._peer)
        try:
            while not stream.advance():
                yield from ready(stream, deadline, "connecting")
        except BaseException:
            stream.close()
            raise
        return stream

    def _wrapping(self, context: ssl.SSLContext) -> Callable[[socket.socket], Transport]:
        """What makes a TLS connection of one that is being made."""
        endpoint, name, proxy = self.endpoint, self._peer.server_name, self.endpoint.proxy
        if proxy is None:
            session = self._session
            return lambda plain: Tls(context, Plain(plain), name, session)
        own = proxy_context(endpoint.ca) if proxy.scheme == "https" else None
        return lambda plain: Tunnel(plain, proxy, endpoint.name, server=(context, name), own=own)


def ready(stream: TlsStream, deadline: Deadline, doing: str) -> Steps[None]:
    """Wait once for the stream. Raises TimedOut."""
    _check(stream, deadline, doing)
    yield Wait(*stream.to_poll, deadline)


def _check(stream: TlsStream, deadline: Deadline, doing: str) -> None:
    """Go on only while there is time: a peer that always has one more byte must not prolong it."""
    if deadline.passed():
        raise TimedOut(f"the API server at {stream.peer.name} did not answer within {deadline} ({doing})")


def converse(stream: TlsStream, request: bytes, reader: ResponseReader, deadline: Deadline) -> Steps[None]:
    """Send a request and read its answer. The stream is closed when that fails."""
    try:
        _check(stream, deadline, "sending the request")
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
    _check(stream, deadline, doing)
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
