"""What must be different each time: a session's nonce, and how long to wait among many who wait."""

from __future__ import annotations

import os


def nonce() -> str:
    """A name that no other session has."""
    return os.urandom(8).hex()


def jitter() -> float:
    """A number from 0 up to 1."""
    # The random module costs a third of what ssl does.
    return int.from_bytes(os.urandom(4)) / 2**32
