"""
Connections to one API server.

Owns: everything between an Endpoint and an open stream: addresses, the TLS context, credentials and the headers
that every request carries. Must not know: what is asked.
"""

from __future__ import annotations

import select

from mpirt.errors import Unreachable
from mpirt.kubeapi.answers import TimedOut, Untrusted
from mpirt.kubeapi.credentials import Certificate, Credentials
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.endpoint import Endpoint
from mpirt.kubeapi.resolve import by_name, resolve
from mpirt.kubeapi.stream import Address, Peer, TlsStream
from mpirt.kubeapi.tls import tls_context
from mpirt.kubeapi.wire import get_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpirt.kubeapi.resolve import GetAddrInfo
    from mpirt.kubeapi.tlslib import Context


class Dialer:
    """Opens connections to one endpoint, and remembers what need not be found out twice."""

    __slots__ = ("_addresses", "_context", "_look_up", "_peer", "_remark", "_shown", "endpoint")

    def __init__(self, endpoint: Endpoint, *, look_up: GetAddrInfo = by_name, remark: str = "") -> None:
        """`remark` is added to what is said when no connection comes about."""
        self.endpoint = endpoint
        self._look_up = look_up
        self._remark = remark
        self._addresses: Sequence[Address] = ()
        self._context: Context | None = None
        self._shown: Certificate | None = None
        self._peer = Peer(endpoint.name, endpoint.server_name or endpoint.host, endpoint.trust)

    def credentials(self, deadline: Deadline) -> Credentials:
        """Who we are at this moment. Raises ConfigError."""
        return self.endpoint.source.credentials(deadline)

    def addresses(self, deadline: Deadline) -> Sequence[Address]:
        """Where to connect to: found out once, and again after forget()."""
        if not self._addresses:
            self._addresses = resolve(self.endpoint.host, self.endpoint.port, deadline, look_up=self._look_up)
        return self._addresses

    def begin(self, address: Address, credentials: Credentials) -> TlsStream:
        """Begin to connect, without waiting. Raises ConfigError, ConnectionLost."""
        if self._context is None or self._shown != credentials.certificate:
            self._context = tls_context(self.endpoint.ca, credentials.certificate)
            self._shown = credentials.certificate
        return TlsStream(address, self._context, self._peer)

    def open(self, deadline: Deadline, credentials: Credentials) -> TlsStream:
        """Connect, trying one address after the other, each for its share of the time that is left."""
        addresses = self.addresses(deadline)
        lost: Unreachable | None = None
        for number, address in enumerate(addresses):
            share = deadline.within(deadline.left() / (len(addresses) - number))
            try:
                return self._open_one(address, share, credentials)
            except Untrusted:
                self.forget()
                raise
            except Unreachable as error:
                lost = error
        self.forget()
        lost = lost or Unreachable(f"the API server's name {self.endpoint.host} has no address")
        if self._remark:
            raise type(lost)(f"{lost}; {self._remark}") from lost
        raise lost

    def forget(self) -> None:
        """Look everything up anew the next time: names move, and authorities and certificates are replaced."""
        self._addresses = ()
        self._context = None

    def request(self, target: str, credentials: Credentials, extra: Sequence[tuple[str, str]] = ()) -> bytes:
        """Write a request for a target of this API server."""
        # No Accept: JSON is what API servers answer anyway, and with one they refuse to exec (406).
        headers = [("Host", self.endpoint.name), ("User-Agent", "mpirt"), *extra]
        if credentials.token is not None:
            headers.append(("Authorization", f"Bearer {credentials.token.reveal()}"))
        return get_request(f"{self.endpoint.base_path}{target}", headers)

    def _open_one(self, address: Address, deadline: Deadline, credentials: Credentials) -> TlsStream:
        stream = self.begin(address, credentials)
        try:
            while not stream.advance():
                wait(stream, deadline, "connecting")
        except BaseException:
            stream.close()
            raise
        return stream


def wait(stream: TlsStream, deadline: Deadline, doing: str) -> None:
    """Wait until the stream can go on. Raises TimedOut."""
    check(stream, deadline, doing)
    poll = select.poll()
    poll.register(stream.fileno(), stream.wants)
    # A millisecond more rather than less: poll cuts fractions off, and would spin through the last one.
    if not poll.poll(int(deadline.left() * 1000) + 1):
        raise _timed_out(stream, deadline, doing)


def check(stream: TlsStream, deadline: Deadline, doing: str) -> None:
    """Go on only while there is time: a peer that always has one more byte never keeps anybody waiting."""
    if deadline.passed():
        raise _timed_out(stream, deadline, doing)


def _timed_out(stream: TlsStream, deadline: Deadline, doing: str) -> TimedOut:
    return TimedOut(f"the API server at {stream.peer.name} did not answer within {deadline} ({doing})")
