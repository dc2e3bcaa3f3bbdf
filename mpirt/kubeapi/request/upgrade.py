"""
The opening handshake of a WebSocket (RFC 6455, section 4), without I/O.

Owns: the headers that ask for it and the check of the answer. Frames are somebody else's.
"""

from __future__ import annotations

import binascii
import hashlib

from mpirt.errors import PeerError
from mpirt.kubeapi.request.http1 import Head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ACCEPT_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def upgrade_headers(key: str, protocols: Sequence[str]) -> list[tuple[str, str]]:
    """Ask for a WebSocket with one of the sub-protocols. Extensions are never offered."""
    return [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key),
        ("Sec-WebSocket-Protocol", ", ".join(protocols)),
    ]


def new_key(entropy: bytes) -> str:
    """Write 16 random bytes as a handshake key."""
    return binascii.b2a_base64(entropy, newline=False).decode()


def accepted_protocol(head: Head, key: str, protocols: Sequence[str]) -> str:
    """The sub-protocol that a 101 settles on. Raises PeerError when the answer is not one to this handshake."""
    if head.header("upgrade").lower() != "websocket" or "upgrade" not in head.header("connection").lower():
        raise PeerError("the API server switched to something that is not a WebSocket")
    if head.header("sec-websocket-accept") != _answer_to(key):
        raise PeerError(
            "the API server's Sec-WebSocket-Accept is not the answer to our key; is there a cache between?"
        )
    if head.header("sec-websocket-extensions"):
        raise PeerError("the API server uses a WebSocket extension that was not offered")
    protocol = head.header("sec-websocket-protocol")
    if protocol not in protocols:
        offered = ", ".join(protocols)
        raise PeerError(f"the API server chose the sub-protocol {protocol[:40]!r}; offered: {offered}")
    return protocol


def _answer_to(key: str) -> str:
    digest = hashlib.sha1(key.encode() + _ACCEPT_SUFFIX, usedforsecurity=False).digest()
    return binascii.b2a_base64(digest, newline=False).decode()
