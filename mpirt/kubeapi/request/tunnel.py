"""
TLS with the API server through a proxy: CONNECT first, then the same end to end as without one.

Owns: the request to the proxy and what its answer means.
Never waits: what can't go on raises SSLWantReadError or SSLWantWriteError, as TLS on a socket does.
"""

from __future__ import annotations

import socket
import ssl

from mpirt.errors import ConfigError, MpirtError, PeerError, Unreachable, one_line
from mpirt.kubeapi.access.endpoint import Proxy
from mpirt.kubeapi.request.answers import ConnectionLost, Untrusted
from mpirt.kubeapi.request.http1 import ResponseReader, request
from mpirt.kubeapi.request.tls import Plain, Tls, Transport

_PIECE = 16 * 1024
_AUTHENTICATE = 407
_SERVER_ERRORS = 500


class Tunnel:
    """A Transport whose handshake begins at the proxy."""

    __slots__ = (
        "_context",
        "_outer",
        "_proxy",
        "_reader",
        "_request",
        "_said",
        "_server_name",
        "_target",
        "_tls",
    )

    def __init__(
        self,
        plain: socket.socket,
        proxy: Proxy,
        target: str,
        *,
        server: tuple[ssl.SSLContext, str],
        own: ssl.SSLContext | None,
    ) -> None:
        """`server` is the TLS context and the name of the API server, `own` the context of an https proxy."""
        self._proxy, self._target = proxy, target
        self._context, self._server_name = server
        self._outer: Transport = Plain(plain)
        if own is not None:
            self._outer = Tls(own, self._outer, proxy.host)
        self._tls: Tls | None = None
        self._reader = ResponseReader(body_limit=_PIECE)
        self._said = b""
        headers = [("Host", target), ("User-Agent", "mpirt")]
        if proxy.authorization is not None:
            headers.append(("Proxy-Authorization", f"Basic {proxy.authorization.reveal()}"))
        self._request = request("CONNECT", target, headers)

    def do_handshake(self) -> None:
        """Go on with the proxy, then with the API server."""
        if self._tls is None:
            self._reach_proxy()
            self._ask()
            self._tls = Tls(self._context, self._outer, self._server_name)
        self._tls.do_handshake()

    def read(self, size: int, /) -> bytes:
        """Bytes of the API server."""
        return b"" if self._tls is None else self._tls.read(size)

    def write(self, data: bytes, /) -> int:
        """Bytes to the API server."""
        return 0 if self._tls is None else self._tls.write(data)

    def fileno(self) -> int:
        """The descriptor to poll."""
        return (self._tls or self._outer).fileno()

    def close(self) -> None:
        """Close the connection to the proxy, and so the one inside it."""
        (self._tls or self._outer).close()

    def _reach_proxy(self) -> None:
        try:
            self._outer.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLCertVerificationError as error:
            problem = error.verify_message or error.reason
            raise Untrusted(f"the proxy {self._proxy.url} is not trusted: {problem}") from error
        except ssl.SSLError as error:
            reason = (error.reason or "unknown").replace("_", " ").lower()
            raise PeerError(f"TLS with the proxy {self._proxy.url} failed: {reason}") from error

    def _ask(self) -> None:
        while self._request:
            self._request = self._request[self._outer.write(self._request) :]
        reader = self._reader
        while reader.head is None:
            data = self._outer.read(_PIECE)
            if not data:
                raise ConnectionLost(f"the proxy {self._proxy.url} closed the connection without an answer")
            self._said = self._said or data
            try:
                reader.feed(data)
            except PeerError as error:
                raise PeerError(f"the proxy {self._proxy.url}: {error}") from error
        if reader.head.status // 100 != 2:  # noqa: PLR2004  any 2xx opens the tunnel
            raise self._refusal(reader.head.status)
        if reader.take() or reader.leftover:
            raise PeerError(f"the proxy {self._proxy.url} sent bytes before the API server was asked for any")

    def _refusal(self, status: int) -> MpirtError:
        """What the proxy's refusal means, with its own words as far as they have come."""
        line = self._said.partition(b"\r\n")[0].decode("latin-1").partition(" ")[2]
        head, body = self._reader.head, self._reader.take()
        is_text = head is not None and head.header("content-type").startswith("text/plain")
        words = one_line(
            f"({line})" + (f": {body.decode('utf-8', 'replace')}" if is_text and body.strip() else "")
        )
        name, origin = f"the proxy {self._proxy.url}", self._proxy.origin
        if status == _AUTHENTICATE:
            if self._proxy.authorization is None:
                return ConfigError(
                    f"{name} asks for a user and password {words}; put them into the URL in {origin}"
                )
            return ConfigError(f"{name} does not accept the user and password in {origin} {words}")
        if status < _SERVER_ERRORS:
            return ConfigError(f"{name} refuses to connect to {self._target} {words}; it is named by {origin}")
        return Unreachable(f"{name} can't connect to {self._target} {words}")
