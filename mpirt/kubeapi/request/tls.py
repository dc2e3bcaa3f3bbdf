"""
The one TLS configuration there is: always verified.

Owns: the SSLContext, loading PEM text into it without leaving a private key on a disk, and TLS on a socket, or
inside another TLS connection.
"""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from typing import Protocol

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import Certificate, PemFile, PemText

# What is read from a connection at once: several records, where Python's SSLSocket makes two calls for each. A
# connection keeps a buffer of that size once so much has come at once.
_READ = 64 * 1024


class Transport(Protocol):
    """A connection that never waits: what can't go on raises SSLWantReadError or SSLWantWriteError."""

    def do_handshake(self) -> None: ...
    def read(self, size: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> int: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


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

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


class Tls:
    """TLS on a transport, which belongs to it, with a peer whose certificate must be for `name`."""

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

    def fileno(self) -> int:
        return self._outer.fileno()

    def close(self) -> None:
        self._outer.close()

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
    where = f"{authority.field} {authority.path}" if isinstance(authority, PemFile) else authority.field
    try:
        # Bundles may carry comments in any language; the certificates between them are ASCII.
        context.load_verify_locations(cadata=authority.read().encode("ascii", "ignore").decode())
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{where} is not a CA certificate in PEM form") from error


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
