"""
A list, and a watch from there, without I/O.

Owns: the answer that is awaited, when to give it up, when to ask again, and the words for what was learned. Bytes
in, news out; clock and jitter are handed in. Must not know: what is listed (pods.py), sockets (link.py).

The caller's duty: at `due`, send ask() and hand over what comes back with receive(), eof() or failed(); call
tick() when `expires` has passed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum

from mpirt.backoff import Backoff
from mpirt.errors import MpirtError
from mpirt.kubeapi.request.answers import (
    ApiError,
    ConnectionLost,
    Expired,
    JsonObject,
    TimedOut,
    failure_error,
    parse_object,
    read_failure,
    status_failure,
)
from mpirt.kubeapi.request.asks import Ask
from mpirt.kubeapi.request.http1 import OK, ResponseReader
from mpirt.kubeapi.watch.lines import ADDED, DELETED, ERROR, MODIFIED, RawEvent, WatchLines
from mpirt.values import Value

# A number from 0 up to 1: random.random, or a constant in a test.
Jitter = Callable[[], float]

# The server ends a watch after so many seconds to twice as many, so that watchers spread over API servers again.
_WATCH_SECONDS = 240
# How long an answer may be on its way; a watch's last words too.
_PATIENCE = 10.0
# A watch that ends sooner than this has failed, however politely.
_SHORTEST_WATCH = 5.0
_FIRST_DELAY, _LONGEST_DELAY = 0.25, 10.0
# So many old versions in a row are no accident any more.
_EXPIRED_IN_A_ROW = 5


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


class Verb(Enum):
    """What is asked."""

    LIST = "list"
    WATCH = "watch"
    GET = "get"


class ListWatch(ABC):
    """Lists, then watches from there: one question at a time. What is asked for, and of what, has a subclass."""

    __slots__ = (
        "_ask",
        "_asked_at",
        "_backoff",
        "_expired_in_a_row",
        "_heard",
        "_jitter",
        "_lines",
        "_origin",
        "_question",
        "_reader",
        "_seconds",
        "due",
        "expires",
        "heard_at",
        "opened_at",
        "reusable",
        "version",
    )

    def __init__(self, *, now: float, jitter: Jitter, origin: str) -> None:
        self.due = now
        """When to ask next, while nothing is being asked."""
        self.expires: float | None = None
        """When to give up the answer that is awaited; None while nothing is being asked."""
        self.reusable = True
        """Whether the connection can be asked again."""
        self.version = ""
        """The resource version up to which everything was reported; empty if unknown."""
        self.opened_at: float | None = None
        """Since when a watch is open: what changes comes by itself. None while there is none."""
        self.heard_at = now
        """When the last bytes have come."""
        self._jitter, self._origin = jitter, origin
        self._backoff = Backoff(_FIRST_DELAY, _LONGEST_DELAY, jitter)
        self._expired_in_a_row = 0
        self._reader: ResponseReader | None = None

    @property
    def asking(self) -> bool:
        """Whether an answer is awaited."""
        return self._reader is not None

    @property
    @abstractmethod
    def interrupt(self) -> float | None:
        """When tick() must be called even though an answer is awaited that has not expired."""

    @abstractmethod
    def look(self, now: float) -> None:
        """Read all anew, because something looks wrong; on a new connection, this one may be dead."""

    @abstractmethod
    def _next(self, now: float) -> tuple[Verb, Ask]:
        """What to ask now."""

    @abstractmethod
    def _read(self, answer: JsonObject, now: float) -> list[News]:
        """Take what was listed or got."""

    @abstractmethod
    def _changed(self, kind: NewsKind, pod: JsonObject) -> News:
        """Take an event of the watch."""

    @abstractmethod
    def _failed(self, error: MpirtError, question: Verb | None, now: float) -> list[News] | None:
        """Take an error that means more than that the API server does not answer; None for one that doesn't."""

    def hurry(self, now: float) -> None:
        """Ask at once unless an answer or a watch is on its way."""
        if not self.asking:
            self.due = now

    def ask(self, now: float) -> Ask:
        """Begin the next question; its answer belongs to receive()."""
        self._seconds = int(_WATCH_SECONDS * (1 + self._jitter()))
        self._question, self._ask = self._next(now)
        self._reader = ResponseReader(endless=self._question is Verb.WATCH)
        self._lines, self._heard = WatchLines(), False
        self._asked_at, self.expires = now, now + _PATIENCE
        return self._ask

    def receive(self, data: bytes, now: float) -> list[News]:
        """Take bytes of the answer."""
        reader = self._reader
        if reader is None:
            raise ValueError("nothing was asked")
        news: list[News] = []
        self.heard_at = now
        try:
            opened = reader.head is not None
            reader.feed(data)
            head = reader.head
            if head is not None and head.status == OK and self._question is Verb.WATCH:
                if not opened:
                    self.expires = now + self._seconds + _PATIENCE
                    self.opened_at = now
                    news.append(News(NewsKind.OPEN))
                for event in self._lines.feed(reader.take()):
                    news += self._event(event)
            if reader.complete:
                news += self._answered(reader, now)
        except MpirtError as error:
            news += self.failed(error, now)
        return news

    def eof(self, now: float) -> list[News]:
        """Take note that the connection was closed."""
        reader = self._reader
        if reader is None:
            return []
        reader.eof()
        if not reader.complete:
            return self.failed(
                ConnectionLost(f"could not {self._ask.doing}: the API server closed the connection"), now
            )
        try:
            return self._answered(reader, now)
        except MpirtError as error:
            return self.failed(error, now)

    def tick(self, now: float) -> list[News]:
        """Give up an answer that does not come."""
        if self.expires is None or now < self.expires:
            return []
        waited = now - self._asked_at
        return self.failed(TimedOut(f"could not {self._ask.doing}: no answer within {waited:.0f} s"), now)

    def failed(self, error: MpirtError, now: float) -> list[News]:
        """Take note that there is no answer, or none that helps; decide what to do instead."""
        question = self._question if self.asking else None
        self._settle(reusable=isinstance(error, ApiError) and self._is_complete())
        is_expired = isinstance(error, Expired)
        if is_expired:
            self.version = ""
        news = self._failed(error, question, now)
        if news is not None:
            return news
        is_news = not is_expired or self._expired_in_a_row >= _EXPIRED_IN_A_ROW
        self._expired_in_a_row += is_expired
        self.due = now + self._backoff.next(error.failure.retry_after if isinstance(error, ApiError) else None)
        return [News(NewsKind.SILENT, error=error)] if is_news else []

    def _event(self, event: RawEvent) -> list[News]:
        if event.type == ERROR:
            raise failure_error(status_failure(event.object), self._ask, origin=self._origin)
        self._heard = True
        self._recovered()
        self.version = event.resource_version or self.version
        if event.type in (ADDED, MODIFIED):
            return [self._changed(NewsKind.SEEN, event.object)]
        return [self._changed(NewsKind.GONE, event.object)] if event.type == DELETED else []

    def _answered(self, reader: ResponseReader, now: float) -> list[News]:
        head, body = reader.answer()
        if head.status != OK:
            raise failure_error(read_failure(head, body), self._ask, origin=self._origin)
        if self._question is Verb.WATCH:
            return self._watch_ended(now)
        news = self._read(parse_object(body, self._ask), now)
        self._settle(reusable=self._is_complete())
        return news

    def _watch_ended(self, now: float) -> list[News]:
        """A watch is meant to end after a while. One that ends at once is an API server in trouble."""
        self._settle(reusable=self._is_complete())
        if self._heard or now - self._asked_at >= _SHORTEST_WATCH:
            self._recovered()
            self.due = now + self._jitter()
        else:
            self.due = now + self._backoff.next()
        return []

    def _is_complete(self) -> bool:
        reader = self._reader
        return reader is not None and reader.complete and reader.reusable

    def _settle(self, *, reusable: bool) -> None:
        self._reader, self.expires, self.reusable = None, None, reusable
        self.opened_at = None

    def _recovered(self) -> None:
        self._backoff.reset()
        self._expired_in_a_row = 0
