"""
Connections to one API server.

Owns: everything between an Endpoint and an open stream: addresses, the TLS context, credentials and the headers
that every request carries. Must not know: what is asked.
"""

from __future__ import annotations

from mpirt.errors import Unreachable
from mpirt.kubeapi.answers import Untrusted
from mpirt.kubeapi.credentials import Certificate, Credentials
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.endpoint import Endpoint
from mpirt.kubeapi.exchange import ready
from mpirt.kubeapi.resolve import by_name, resolve
from mpirt.kubeapi.stream import Address, Peer, TlsStream
from mpirt.kubeapi.tls import tls_context
from mpirt.kubeapi.wire import get_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpirt.kubeapi.exchange import Steps
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

    def credentials(self, deadline: Deadline) -> Steps[Credentials]:
        """Who we are at this moment. Raises ConfigError."""
        return self.endpoint.source.credentials(deadline)

    def open(self, deadline: Deadline, credentials: Credentials) -> Steps[TlsStream]:
        """Connect, trying one address after the other, each for its share of the time that is left."""
        if not self._addresses:
            host, port = self.endpoint.host, self.endpoint.port
            self._addresses = yield from resolve(host, port, deadline, look_up=self._look_up)
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

    def _open_one(self, address: Address, deadline: Deadline, credentials: Credentials) -> Steps[TlsStream]:
        if self._context is None or self._shown != credentials.certificate:
            self._context = tls_context(self.endpoint.ca, credentials.certificate)
            self._shown = credentials.certificate
        stream = TlsStream(address, self._context, self._peer)
        try:
            while not stream.advance():
                yield from ready(stream, deadline, "connecting")
        except BaseException:
            stream.close()
            raise
        return stream
