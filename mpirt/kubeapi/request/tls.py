"""
TLS with the API server, always verified; through a proxy after a CONNECT, and end to end just the same.

Owns: the one configuration there is, loading PEM text into it without leaving a private key on a disk; TLS on a
socket, or inside another TLS connection; the request to a proxy and what its answer means.
Never waits: what can't go on raises SSLWantReadError or SSLWantWriteError.
"""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from typing import Protocol

from mpirt.errors import ConfigError, MpirtError, PeerError, Unreachable, one_line
from mpirt.kubeapi.access.credentials import Certificate, PemFile, PemText
from mpirt.kubeapi.access.endpoint import Proxy
from mpirt.kubeapi.request.answers import ConnectionLost, Untrusted
from mpirt.kubeapi.request.http1 import ResponseReader, request

_PIECE = 16 * 1024
_AUTHENTICATE = 407
_SERVER_ERRORS = 500

# What is read from a connection at once: several records, where Python's SSLSocket makes two calls for each. A
# connection keeps a buffer of that size once so much has come at once.
_READ = 64 * 1024


class Transport(Protocol):
    """A connection that never waits: what can't go on raises SSLWantReadError or SSLWantWriteError."""

    def do_handshake(self) -> None: ...
    def read(self, size: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> int: ...


class Plain:
    """A socket that says as TLS does what it waits for."""

    __slots__ = ("_socket",)

    def __init__(self, plain: socket.socket) -> None:
        self._socket = plain

    def do_handshake(self) -> None:
        """There is none."""

    def read(self, size: int, /) -> bytes:
        try:
            return self._socket.recv(size)
        except BlockingIOError:
            raise ssl.SSLWantReadError from None

    def write(self, data: bytes, /) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            raise ssl.SSLWantWriteError from None


class Tls:
    """TLS on a transport, with a peer whose certificate must be for `name`."""

    __slots__ = ("_incoming", "_outer", "_outgoing", "_taken", "_tls", "_unsent")

    def __init__(
        self, context: ssl.SSLContext, outer: Transport, name: str, session: ssl.SSLSession | None = None
    ) -> None:
        """
        With the `session` of an earlier connection by the same context, and for the same name, the peer need not
        prove again who it is: it has what only that peer has.
        """
        self._outer = outer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name, session=session)
        self._unsent = b""
        self._taken = 0

    def do_handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
            except ssl.SSLError:
                with suppress(OSError):
                    # The alert that tells the peer why.
                    self._flush()
                raise
            else:
                self._flush()
                return

    def read(self, size: int, /) -> bytes:
        """At most one record."""
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                self._receive()

    def write(self, data: bytes, /) -> int:
        """A write that could not be finished is repeated with the same bytes."""
        self._taken = self._taken or self._tls.write(data)
        self._flush()
        taken, self._taken = self._taken, 0
        return taken

    @property
    def is_resumed(self) -> bool:
        """Whether it has begun with the session of an earlier connection."""
        return bool(self._tls.session_reused)

    @property
    def session(self) -> ssl.SSLSession | None:
        """What a later connection may begin with. It comes with the first bytes."""
        return self._tls.session

    def _receive(self) -> None:
        try:
            data = self._outer.read(_READ)
        except ssl.SSLEOFError:
            data = b""
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        while self._unsent or self._outgoing.pending:
            self._unsent = self._unsent or self._outgoing.read()
            self._unsent = self._unsent[self._outer.write(self._unsent) :]


def tls_context(authority: PemFile | PemText | None, certificate: Certificate | None) -> ssl.SSLContext:
    """
    Make a context that trusts `authority` (None: the system's), and shows `certificate` if there is one.

    ALPN is not offered: an API server that is offered h2 takes it, and h2 can't be upgraded to WebSocket.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The certificates of many clusters lack the extensions that Python 3.13 has come to ask for. Everything else
    # is verified. A given authority is trusted even if it isn't a root, as kubectl has it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if authority is None:
        context.set_default_verify_paths()
    else:
        _trust(context, authority)
    if certificate is not None:
        _show(context, certificate)
    return context


def proxy_context(authority: PemFile | PemText | None) -> ssl.SSLContext:
    """Make a context for a proxy: it trusts the system's authorities and `authority`, and shows no certificate."""
    context = tls_context(None, None)
    if authority is not None:
        _trust(context, authority)
    return context


def _trust(context: ssl.SSLContext, authority: PemFile | PemText) -> None:
    try:
        # Bundles may carry comments in any language; the certificates between them are ASCII.
        context.load_verify_locations(cadata=authority.read().encode("ascii", "ignore").decode())
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{authority.origin} is not a CA certificate in PEM form") from error


def _show(context: ssl.SSLContext, certificate: Certificate) -> None:
    """OpenSSL reads a key from a file only. This one is in memory, has no name and ends with the with block."""
    try:
        with os.fdopen(os.memfd_create("mpirt-client"), "wb") as file:
            file.write(f"{certificate.chain}\n{certificate.key.reveal()}\n".encode())
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=_no_password)
    except ssl.SSLError as error:
        problem = "are not a certificate and its unencrypted key in PEM form, or do not belong together"
        raise ConfigError(f"{certificate.origin} and its key {problem}") from error
    except OSError as error:
        problem = f"can't be handed to TLS by a file in memory: {os.strerror(error.errno or 0)}"
        remedy = "it takes memfd_create, /proc and a descriptor that is free"
        raise ConfigError(f"{certificate.origin} and its key {problem}; {remedy}") from error


def _no_password() -> str:
    """OpenSSL would ask for a password at the terminal otherwise, in the middle of an MPI job."""
    return ""


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
