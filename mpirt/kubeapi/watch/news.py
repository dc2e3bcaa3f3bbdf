"""
What a watch has to say, and the lines in which the API server says it. No I/O.

Owns: the news for those who watch; and the body of a watch, one JSON object per line, in bytes that arrive in any
pieces: lines, their bound, and what a line may say.
"""

from __future__ import annotations

import json
from enum import Enum

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request.answers import JsonObject
from mpirt.values import Value

# etcd holds objects up to 1.5 MiB, and JSON may be twice as long as what it stores.
LINE_LIMIT = 4 * 1024 * 1024

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"
ERROR = "ERROR"


class NewsKind(Enum):
    """What the news are."""

    SEEN = "seen"
    """The current state of the pod."""
    GONE = "gone"
    """The pod was deleted; `pod` is its last state, if the server sent it."""
    LISTED = "listed"
    """Of a set: the list is complete. `names` are the pods in it; all others are not in the set."""
    OPEN = "open"
    """The API server answers, and will tell what changes."""
    SILENT = "silent"
    """The API server can't be heard, for `error`; it is asked again."""
    REFUSED = "refused"
    """The Role does not allow it, says `error`; something humbler is tried."""
    HIDDEN = "hidden"
    """The Role does not allow the humblest either, says `error`; it is asked again after a while."""


class News(Value):
    """One piece of news about the pod, or about hearing of it."""

    kind: NewsKind
    pod: JsonObject | None = None
    error: MpirtError | None = None
    name: str = ""
    """Of a set: which pod."""
    version: str = ""
    """Of a set: the resource version as of which it is true."""
    names: frozenset[str] = frozenset()
    asked: float | None = None
    """Of a list, or of a pod that was read: when it was asked for, so that it is not older."""


class RawEvent(Value):
    """One line: what happened, and to which object (for an ERROR, a Status)."""

    type: str
    object: JsonObject

    @property
    def resource_version(self) -> str:
        """The version that the object has, or the bookmark marks."""
        return resource_version(self.object)


class WatchLines:
    """Bytes in, events out."""

    __slots__ = ("_buffer", "_limit", "_searched")

    def __init__(self, *, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[RawEvent]:
        """Take bytes; give the events that are complete now. Raises PeerError."""
        self._buffer += data
        events = []
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end]).strip()
            del self._buffer[: end + 1]
            self._searched = 0
            if line:
                events.append(_parse(line))
        self._searched = len(self._buffer)
        if self._searched > self._limit:
            raise PeerError(f"an event of the watch is longer than {self._limit} bytes")
        return events


def resource_version(value: JsonObject) -> str:
    """The metadata.resourceVersion of an object or a list; empty when it has none."""
    metadata = value.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""


def _parse(line: bytes) -> RawEvent:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise PeerError(f"an event of the watch is not JSON ({len(line)} bytes)") from error
    kind, thing = (value.get("type"), value.get("object")) if isinstance(value, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(thing, dict):
        raise PeerError(f"an event of the watch has no type or no object ({len(line)} bytes)")
    return RawEvent(kind, thing)
