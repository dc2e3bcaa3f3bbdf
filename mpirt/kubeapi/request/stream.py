"""
A TCP connection with TLS on it that never waits.

Owns: connecting, the handshake, bytes in and out, and the typed error, with the peer's name, for what goes wrong.
Must not know: HTTP, deadlines. The caller polls as `to_poll` says, then calls advance(), flush() or read().
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
from collections.abc import Callable, Iterable

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request.answers import CertificateRefused, ConnectionLost, Untrusted
from mpirt.kubeapi.request.tls import Transport
from mpirt.values import Value

# A peer that has vanished is given up after 5 + 3 * 5 s without a packet. TCP_USER_TIMEOUT is left alone on
# purpose: Linux also counts the time in which a living peer keeps its receive window closed, and a command that
# doesn't read its stdin for a while does just that.
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
# Where others rely on what has not come: after 5 + 3 * 2 s.
_CLOSE_KEEPALIVE = ((socket.TCP_KEEPINTVL, 2),)
# A write that could not be finished is repeated with the same bytes: four TLS records at a time.
_PIECE = 64 * 1024
# One TLS record is all that a read ever returns.
READ_SIZE = 16 * 1024


# The last form is what getaddrinfo gives a Python without IPv6.
SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


class Address(Value):
    """Where to connect to, as getaddrinfo has it."""

    family: int
    sockaddr: SocketAddress


class Peer(Value):
    """Who is meant to be at the other end."""

    name: str
    """For messages: host and port, and the proxy on the way."""
    server_name: str
    """What its certificate must be for."""
    trust: str
    """For messages: what vouches for that certificate."""


class TlsStream:
    """One connection. Begins to connect when made; open once advance() has said so."""

    # fmt: off
    __slots__ = (
        "_address", "_connected", "_piece", "_socket", "_tls", "_unread", "_unsent", "_wrap",
        "_write_first", "opened", "peer",
    )
    # fmt: on

    def __init__(self, address: Address, wrap: Callable[[socket.socket], Transport], peer: Peer) -> None:
        """`wrap` puts TLS on the socket once it is connected."""
        self.peer = peer
        self.opened = False
        self._address = address
        self._wrap: Callable[[socket.socket], Transport] | None = wrap
        self._connected = False
        self._unsent = bytearray()
        self._unread = b""
        self._piece = b""
        self._write_first = True
        try:
            # Fails by itself for an IPv6 address where there is no IPv6: another address may do better.
            self._socket = socket.socket(address.family, socket.SOCK_STREAM)
        except OSError as error:
            raise self._error(error, "connecting") from error
        self._tls: Transport
        try:
            self._begin()
        except OSError as error:
            raise self._error(error, "connecting") from error

    def _begin(self) -> None:
        try:
            self._socket.settimeout(0)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._set(_KEEPALIVE)
            self._judge(self._socket.connect_ex(self._address.sockaddr))
        except BaseException:
            self._socket.close()
            raise

    def guard_closely(self) -> None:
        """Give up a peer that has vanished after 11 s, not after 20."""
        try:
            self._set(_CLOSE_KEEPALIVE)
        except OSError as error:
            raise self._error(error, "connecting") from error

    def _set(self, options: Iterable[tuple[int, int]]) -> None:
        for option, value in options:
            self._socket.setsockopt(socket.IPPROTO_TCP, option, value)

    @property
    def to_poll(self) -> tuple[int, int]:
        """The descriptor to poll, -1 once closed; and for what."""
        writes = self._write_first or (self.opened and self.unsent)
        reads = self.opened or not writes
        return self._socket.fileno(), (select.POLLIN if reads else 0) | (select.POLLOUT if writes else 0)

    @property
    def unsent(self) -> int:
        """How many bytes were taken and not sent yet: the caller bounds it by not writing more."""
        return len(self._unsent) + len(self._piece)

    def advance(self) -> bool:
        """Connect and shake hands as far as it goes without waiting. True once the stream is open."""
        if self.opened:
            return True
        if not self._connected:
            self._judge(self._socket.connect_ex(self._address.sockaddr))
        try:
            self._shake_hands()
        except ssl.SSLWantReadError:
            self._write_first = False
        except ssl.SSLWantWriteError:
            self._write_first = True
        except (OSError, ValueError) as error:
            raise self._error(error, "the TLS handshake") from error
        return self.opened

    def _shake_hands(self) -> None:
        if not self._connected:
            return
        if self._wrap is not None:
            self._tls, self._wrap = self._wrap(self._socket), None
        self._tls.do_handshake()
        self.opened, self._write_first = True, False

    def put(self, data: bytes) -> None:
        """Queue bytes, which flush() sends."""
        self._unsent += data

    def write(self, data: bytes) -> None:
        """Take bytes and send what can be sent now."""
        self.put(data)
        self.flush()

    def flush(self) -> None:
        """Send what can be sent now."""
        while self.unsent:
            if not self._piece:
                self._piece = bytes(self._unsent[:_PIECE])
                del self._unsent[:_PIECE]
            try:
                sent = self._tls.write(self._piece)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError as error:
                raise self._error(self._alert() or error, "sending") from error
            self._piece = self._piece[sent:]

    def read(self) -> bytes | None:
        """
        Bytes if there are any, b"" at the end, None when there is nothing now.

        TLS may hold bytes that poll doesn't see: read until None.
        """
        self._write_first = False
        if self._unread:
            data, self._unread = self._unread, b""
            return data
        try:
            return self._receive()
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLWantWriteError:
            self._write_first = True
            return None
        except OSError as error:
            raise self._error(error, "reading") from error

    @property
    def is_resumed(self) -> bool:
        """Whether it has begun with what an earlier connection had agreed on."""
        return bool(getattr(self._tls, "is_resumed", False))

    @property
    def session(self) -> ssl.SSLSession | None:
        """What a later connection to the same server may begin with. It comes with the first bytes from there."""
        # Through a proxy there is none.
        return getattr(self._tls, "session", None)

    def close(self) -> None:
        """Close at once; what is unsent is lost."""
        self._socket.close()

    def _receive(self) -> bytes:
        try:
            return self._tls.read(READ_SIZE)
        except ssl.SSLEOFError:
            # TLS inside TLS has ended without a close: whether the answer is complete is what HTTP knows.
            return b""

    def _judge(self, code: int) -> None:
        if code in (0, errno.EISCONN):
            self._connected = True
        elif code not in (errno.EINPROGRESS, errno.EALREADY, errno.EINTR):
            raise ConnectionLost(f"cannot connect to the API server at {self.peer.name}: {os.strerror(code)}")

    def _alert(self) -> OSError | None:
        """Why the server has hung up on us, if it said so: a refused client certificate shows only now."""
        if self._unread:
            return None
        try:
            # What was still sent before the end is not lost: read() gives it.
            self._unread = self._receive()
        except ssl.SSLError as error:
            return error if "ALERT" in (error.reason or "") else None
        except OSError:
            return None
        return None

    def _error(self, error: OSError | ValueError, doing: str) -> MpirtError:
        server = f"the API server at {self.peer.name}"
        if isinstance(error, ssl.SSLCertVerificationError):
            problem = error.verify_message or error.reason
            return Untrusted(
                f"{self.peer.name} is not the API server that {self.peer.trust} vouches for: {problem}"
            )
        if not isinstance(error, ssl.SSLError):
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            return ConnectionLost(
                f"{server} was lost while {doing}: {reason}" if self.opened else f"{server}: {reason}"
            )
        reason = error.reason or "unknown"
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or reason == "UNEXPECTED_EOF_WHILE_READING":
            return ConnectionLost(f"{server} closed the connection during {doing}")
        if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason or "ACCESS_DENIED" in reason):
            said = _words(reason)
            return CertificateRefused(f"{server} does not accept our client certificate ({said}); has it expired?")
        if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return PeerError(f"{server} does not speak TLS; is the port right?")
        return PeerError(f"TLS with {server} failed during {doing}: {_words(reason)}")


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()
