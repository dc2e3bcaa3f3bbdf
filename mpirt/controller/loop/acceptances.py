"""
Which pod templates the API server has accepted in a dry run of late, so that equal jobs are not tried again.

Owns: how long an acceptance counts, and how many are kept. A policy may change without a notification; then the
object itself is rejected. So a rejection drops what was accepted of that kind in the namespace. The clock is an
argument.
"""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

# Long enough for a batch of jobs, short beside the time in which people notice what a new policy rejects.
_BELIEVED_FOR = timedelta(minutes=5)
# Where there are more different templates, the oldest are tried again.
_MOST = 256

_Shape = tuple[str, str, str]
"""Namespace and kind of the object that was tried, and the digest of all of it but for the job's own names."""


class Acceptances:
    """What was accepted, in all namespaces. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._until: dict[_Shape, datetime] = {}
        self._lock = threading.Lock()

    def remember(self, namespace: str, kind: str, digest: str, now: datetime) -> None:
        """Remember that a dry run was accepted."""
        with self._lock:
            self._until.pop((namespace, kind, digest), None)
            self._until[namespace, kind, digest] = now + _BELIEVED_FOR
            if len(self._until) > _MOST:
                del self._until[next(iter(self._until))]

    def drop(self, namespace: str, kind: str) -> None:
        """Drop what was accepted of a kind in a namespace: an object of it was rejected."""
        with self._lock:
            self._until = {shape: until for shape, until in self._until.items() if shape[:2] != (namespace, kind)}

    def of(self, namespace: str, now: datetime) -> frozenset[str]:
        """Return the digests that count as accepted in a namespace."""
        with self._lock:
            return frozenset(
                digest for (where, _, digest), until in self._until.items() if where == namespace and now < until
            )
