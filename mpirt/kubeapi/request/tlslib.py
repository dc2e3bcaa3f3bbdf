"""
TLS as the interpreter itself has it, without the module ssl around it.

Owns: the only use of `_ssl`. ssl makes enums of hundreds of constants, and brings base64, selectors and socket,
which does the same, for names that nobody here uses; docs/architecture.md has what that costs. What decides about
security, the verification of certificates and names, stands below ssl, in `_ssl` and OpenSSL, and is the same.
`_ssl` is CPython's own business, though: the protocol tests cover each call made here.
"""

from __future__ import annotations

import _socket
import _ssl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    Context = _ssl._SSLContext  # noqa: SLF001  see above

    TlsSession = object

    class TlsSocket(Protocol):
        """TLS on a connection."""

        def do_handshake(self) -> None: ...
        def read(self, size: int, /) -> bytes: ...
        def write(self, data: bytes, /) -> int: ...


SSLError = _ssl.SSLError
SSLCertVerificationError = _ssl.SSLCertVerificationError
SSLEOFError = _ssl.SSLEOFError
SSLWantReadError = _ssl.SSLWantReadError
SSLWantWriteError = _ssl.SSLWantWriteError
SSLZeroReturnError = _ssl.SSLZeroReturnError

MemoryBIO = _ssl.MemoryBIO

VERIFY_X509_STRICT = _ssl.VERIFY_X509_STRICT
VERIFY_X509_PARTIAL_CHAIN = _ssl.VERIFY_X509_PARTIAL_CHAIN


class Socket(_socket.socket):
    """A socket that TLS can be put on: `_ssl` keeps a weak reference to it."""

    __slots__ = ("__weakref__",)


def client_context() -> Context:
    """A context of a client: it verifies the peer's certificate and its name. TLS 1.2 at least."""
    context = _ssl._SSLContext(_ssl.PROTOCOL_TLS_CLIENT)  # noqa: SLF001  see above
    context.minimum_version = _ssl.PROTO_TLSv1_2
    return context


def wrap_bytes(context: Context, incoming: MemoryBIO, outgoing: MemoryBIO, name: str) -> TlsSocket:
    """Put TLS on bytes that somebody else carries."""
    wrapped: TlsSocket = context._wrap_bio(incoming, outgoing, False, _wire_name(name))  # type: ignore[attr-defined]  # noqa: FBT003, SLF001  see above
    return wrapped


def wrap(context: Context, plain: Socket, name: str, session: TlsSession | None = None) -> TlsSocket:
    """
    Put TLS on a socket, connected or not, for a peer whose certificate must be for `name`.

    With the `session` of an earlier connection by the same context, and for the same name, the peer need not prove
    again who it is: it has what only that peer has.
    """
    wrapped: TlsSocket = context._wrap_socket(plain, False, _wire_name(name), session=session)  # type: ignore[attr-defined]  # noqa: FBT003, SLF001  see above
    return wrapped


def _wire_name(name: str) -> str:
    # The tables of international names are dear, so they are left to who needs them.
    return name if name.isascii() else name.encode("idna").decode("ascii")
