"""
The one TLS configuration there is: always verified.

Owns: the SSLContext, loading PEM text into it without leaving a private key on a disk, and TLS on a socket.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import Protocol

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import Certificate, PemFile, PemText


class TlsSocket(Protocol):
    """TLS on a connection, which never waits: what can't go on raises SSLWantReadError or SSLWantWriteError."""

    def do_handshake(self) -> None: ...
    def read(self, size: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> int: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


def wrap(
    context: ssl.SSLContext, plain: socket.socket, name: str, session: ssl.SSLSession | None = None
) -> ssl.SSLSocket:
    """
    Put TLS on a connected socket, for a peer whose certificate must be for `name`. The socket belongs to it then.

    With the `session` of an earlier connection by the same context, and for the same name, the peer need not prove
    again who it is: it has what only that peer has.
    """
    return context.wrap_socket(plain, server_hostname=name, session=session, do_handshake_on_connect=False)


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
