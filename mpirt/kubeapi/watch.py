"""
Keeping an eye on one pod, without I/O.

Owns: what to ask next and when (list, then watch from there; list again when that is too old; poll where only
`get` is allowed), and what the answers say about the pod. Bytes in, news out; clock and jitter are handed in.
Must not know: sockets. watchlink.py owns the connection.

The caller's duty: at `due`, send ask() and hand over what comes back with receive(), eof() or failed(); call
tick() when `expires` has passed.
"""

from __future__ import annotations

from mpirt.errors import MpirtError
from mpirt.kubeapi import asks
from mpirt.kubeapi.answers import (
    ApiError,
    ConnectionLost,
    Expired,
    Forbidden,
    JsonObject,
    NotFound,
    TimedOut,
    failure_error,
    parse_object,
    read_failure,
    status_failure,
)
from mpirt.kubeapi.asks import Ask
from mpirt.kubeapi.listing import read_page
from mpirt.kubeapi.watchlines import ADDED, DELETED, ERROR, MODIFIED, RawEvent, WatchLines
from mpirt.kubeapi.wire import OK, ResponseReader
from mpirt.values import Enum, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # A number from 0 up to 1: random.random, or a constant in a test.
    Jitter = Callable[[], float]

# The server ends a watch after so many seconds to twice as many, so that watchers spread over API servers again.
_WATCH_SECONDS = 240
# How long an answer may be on its way; a watch's last words too.
_PATIENCE = 10.0
# A watch that ends sooner than this has failed, however politely.
_SHORTEST_WATCH = 5.0
_FIRST_DELAY, _LONGEST_DELAY = 0.25, 10.0
# Where only `get` is allowed: a deleted pod is noticed within four seconds.
_POLL_SECONDS = 3.0
# And where something has happened to it, which the API server may not have heard yet.
_HURRIED_SECONDS = 0.2
# Polling goes on for so long after a refusal, which may pass: a Role may come late.
_WATCH_AGAIN_SECONDS = 60.0
# Where nothing is allowed at all: somebody may still create the Role.
_REFUSED_SECONDS = 30.0


class Kind(Enum):
    """What the news are."""

    SEEN = "seen"
    """The pod as it is now."""
    GONE = "gone"
    """There is no such pod any more; `pod` is its last state where the server told."""
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

    kind: Kind
    pod: JsonObject | None = None
    error: MpirtError | None = None


class _Question(Enum):
    LIST = "list"
    WATCH = "watch"
    GET = "get"


class PodWatch:
    """One pod's watch. `since` saves the first list where a fresh resource version is known."""

    __slots__ = (
        "_ask",
        "_asked_at",
        "_failures",
        "_heard",
        "_jitter",
        "_lines",
        "_may_watch",
        "_name",
        "_namespace",
        "_origin",
        "_poll_seconds",
        "_question",
        "_reader",
        "_seconds",
        "_version",
        "_watch_again",
        "due",
        "expires",
        "reusable",
    )

    def __init__(
        self, namespace: str, name: str, *, now: float, jitter: Jitter, origin: str, since: str = ""
    ) -> None:
        self.due = now
        """When to ask next, while nothing is being asked."""
        self.expires: float | None = None
        """When to give up the answer that is awaited; None while nothing is being asked."""
        self.reusable = True
        """Whether the connection can be asked again."""
        self._namespace, self._name, self._origin = namespace, name, origin
        self._jitter = jitter
        self._version = since
        self._may_watch = True
        self._watch_again = now
        self._poll_seconds = _POLL_SECONDS
        self._failures = 0
        self._reader: ResponseReader | None = None

    @property
    def asking(self) -> bool:
        """Whether an answer is awaited."""
        return self._reader is not None

    def ask(self, now: float) -> Ask:
        """Begin the next question; its answer belongs to receive()."""
        namespace, name = self._namespace, self._name
        self._may_watch = self._may_watch or now >= self._watch_again
        if not self._may_watch:
            self._question, self._ask = _Question.GET, asks.get_pod(namespace, name)
        elif not self._version:
            self._question, self._ask = _Question.LIST, asks.list_pods(namespace, name=name)
        else:
            self._seconds = int(_WATCH_SECONDS * (1 + self._jitter()))
            self._question = _Question.WATCH
            self._ask = asks.watch_pod(namespace, name, since=self._version, seconds=self._seconds)
        self._reader = ResponseReader(endless=self._question is _Question.WATCH)
        self._lines, self._heard = WatchLines(), False
        self._asked_at, self.expires = now, now + _PATIENCE
        return self._ask

    def receive(self, data: bytes, now: float) -> list[News]:
        """Take bytes of the answer."""
        reader = self._reader
        if reader is None:
            raise ValueError("nothing was asked")
        news: list[News] = []
        try:
            opened = reader.head is not None
            reader.feed(data)
            head = reader.head
            if head is not None and head.status == OK and self._question is _Question.WATCH:
                if not opened:
                    self.expires = now + self._seconds + _PATIENCE
                    news.append(News(Kind.OPEN))
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
        match error:
            case Expired():
                self._version = ""
                self._retry(now)
                return []
            # A load balancer's 404 says nothing of the pod.
            case NotFound(failure=failure) if question is _Question.GET and failure.is_status:
                self._poll_again(now)
                return [News(Kind.GONE)]
            case Forbidden():
                return [News(self._ask_for_less(now), error=error)]
        self._retry(now, retry_after=error.failure.retry_after if isinstance(error, ApiError) else None)
        return [News(Kind.SILENT, error=error)]

    def _ask_for_less(self, now: float) -> Kind:
        """Poll at once, and watch again after a while; where that is refused too, try everything later."""
        # Of the version that was listed a watch would tell what polling has already seen.
        self._version = ""
        if self._may_watch:
            self._may_watch, self.due, self._watch_again = False, now, now + _WATCH_AGAIN_SECONDS
            return Kind.REFUSED
        self._may_watch, self.due = True, now + _REFUSED_SECONDS
        return Kind.HIDDEN

    def look(self, now: float) -> None:
        """Read the pod anew at once, because something looks wrong; on a new connection, this one may be dead."""
        if self.asking and self._question is not _Question.WATCH:
            return
        self._settle(reusable=False)
        self._version = ""
        self.due = now

    def hurry(self, now: float) -> None:
        """Ask at once unless an answer or a watch is on its way; from now on, poll often where polling is all."""
        self._poll_seconds = _HURRIED_SECONDS
        if not self.asking:
            self.due = now

    def _event(self, event: RawEvent) -> list[News]:
        if event.type == ERROR:
            raise failure_error(status_failure(event.object), self._ask, origin=self._origin)
        self._heard, self._failures = True, 0
        self._version = event.resource_version or self._version
        if event.type in (ADDED, MODIFIED):
            return [News(Kind.SEEN, event.object)]
        return [News(Kind.GONE, event.object)] if event.type == DELETED else []

    def _answered(self, reader: ResponseReader, now: float) -> list[News]:
        head, body = reader.answer()
        if head.status != OK:
            raise failure_error(read_failure(head, body), self._ask, origin=self._origin)
        if self._question is _Question.WATCH:
            return self._watch_ended(now)
        answer = parse_object(body, self._ask)
        if self._question is _Question.LIST:
            page = read_page(answer, self._ask)
            self._version, self.due = page.resource_version, now
            pods = page.items
        else:
            self._poll_again(now)
            pods = [answer]
        self._settle(reusable=self._is_complete())
        return [News(Kind.SEEN, pod) for pod in pods] or [News(Kind.GONE)]

    def _watch_ended(self, now: float) -> list[News]:
        """A watch is meant to end after a while. One that ends at once is an API server in trouble."""
        self._settle(reusable=self._is_complete())
        if self._heard or now - self._asked_at >= _SHORTEST_WATCH:
            self._failures = 0
            self.due = now + self._jitter()
        else:
            self._retry(now)
        return []

    def _is_complete(self) -> bool:
        reader = self._reader
        return reader is not None and reader.complete and reader.reusable

    def _settle(self, *, reusable: bool) -> None:
        self._reader, self.expires, self.reusable = None, None, reusable

    def _poll_again(self, now: float) -> None:
        self._failures = 0
        self.due = now + self._poll_seconds * (0.75 + self._jitter() / 2)

    def _retry(self, now: float, *, retry_after: float | None = None) -> None:
        """Back off, each watcher by another time: an API server that comes back is not met by all at once."""
        delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(self._failures, 10))
        self._failures += 1
        # Not before the server's own word, but up to half as long again; else half to all of the delay.
        spread = self._jitter() / 2
        self.due = now + (
            delay * (0.5 + spread) if retry_after is None else max(delay, retry_after) * (1 + spread)
        )
