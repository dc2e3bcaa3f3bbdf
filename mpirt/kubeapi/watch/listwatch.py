"""
A list of pods, and a watch from there, without I/O: of those with the same labels, of one by its name, or of all
in a namespace.

Owns: the answer that is awaited, when to give it up, when to ask again, and what is reported as news; the pages
of a list, when a look begins another one, and what is asked where a Role allows less: one pod is polled where only
`get` is allowed. Of a list only the names are kept, until it is complete. Bytes in, news out; clock and jitter are
handed in. Must not know: sockets (link.py).

The caller's duty: at `due`, send ask() and hand over what comes back with receive(), eof() or failed(); call
tick() when `expires` or `interrupt` has passed.
"""

from __future__ import annotations

from collections.abc import Callable

from mpirt.backoff import Backoff
from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request import asks
from mpirt.kubeapi.request.answers import (
    ApiError,
    ConnectionLost,
    Expired,
    Forbidden,
    JsonObject,
    NotFound,
    Rejected,
    TimedOut,
    failure_error,
    parse_object,
    read_failure,
    read_page,
    status_failure,
)
from mpirt.kubeapi.request.asks import PAGE, Ask
from mpirt.kubeapi.request.http1 import OK, ResponseReader
from mpirt.kubeapi.watch.news import (
    ADDED,
    DELETED,
    ERROR,
    MODIFIED,
    News,
    NewsKind,
    RawEvent,
    WatchLines,
    resource_version,
)
from mpirt.objects import table, text

# A number from 0 up to 1: random.random, or a constant in a test.
Jitter = Callable[[], float]

# The server ends a watch after so many seconds to twice as many, so that watchers spread over API servers again.
_WATCH_SECONDS = 240
# How long an answer may be on its way; a watch's last words too.
_PATIENCE = 10.0
# A watch that ends sooner than this has failed, however politely.
_SHORTEST_WATCH = 5.0
_FIRST_DELAY, _LONGEST_DELAY = 0.25, 10.0
# The verbs of an Ask.
_GET, _WATCH = "get", "watch"
# So many old versions in a row are no accident any more.
_EXPIRED_IN_A_ROW = 5
# Each look of thousands of sessions is worth a list, but they share it.
_LOOKS_APART = 1.0
# A refusal may pass after so long: a Role may come late.
_WATCH_AGAIN_SECONDS = 60.0
# Where only `get` is allowed: a deleted pod is noticed within four seconds.
_POLL_SECONDS = 3.0
# And where something has happened to it, which the API server may not have heard yet.
_HURRIED_SECONDS = 0.2
# Polling goes on for a minute after a refusal, or for so many polls, where many share a pace.
_WATCH_AGAIN_POLLS = 10
# Where nothing is allowed at all: the Role may still be created.
_REFUSED_SECONDS = 30.0


class PodWatch:
    """Lists, then watches from there: one question at a time."""

    # fmt: off
    __slots__ = (
        "_after", "_ask", "_asked_at", "_backoff", "_begun", "_expired_in_a_row", "_heard", "_jitter", "_labels",
        "_lines", "_list_asked", "_listed", "_look_at", "_looked", "_may_watch", "_name", "_names", "_namespace",
        "_origin", "_poll_seconds", "_reader", "_seconds", "_slowest", "_verb", "_watch_again", "due", "expires",
        "heard_at", "opened_at", "reusable", "version",
    )
    # fmt: on

    def __init__(
        self,
        namespace: str,
        *,
        labels: str = "",
        name: str = "",
        now: float,
        jitter: Jitter,
        origin: str,
        slowest: Callable[[], float] = float,
    ) -> None:
        """`slowest`: how many seconds must pass between polls of one pod where many share a pace."""
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
        self._namespace, self._labels, self._name = namespace, labels, name
        self._names: set[str] = set()
        self._listed, self._after = "", ""
        self._begun = False
        self._list_asked = now
        self._looked = now - _LOOKS_APART
        self._look_at: float | None = None
        self._slowest = slowest
        self._may_watch = True
        self._watch_again = now
        self._poll_seconds = _POLL_SECONDS

    @property
    def asking(self) -> bool:
        """Whether an answer is awaited."""
        return self._reader is not None

    @property
    def interrupt(self) -> float | None:
        """When tick() must be called even though an answer is awaited that has not expired."""
        return None if self._begun else self._look_at

    def look(self, now: float) -> None:
        """
        Read all anew, because something looks wrong; on a new connection, this one may be dead.

        A list that is under way may be older than what looks wrong: another one follows it. Looks that come close
        together share a list. Of one pod the answer that is under way is enough.
        """
        if self._name:
            if not self.asking or self._verb == _WATCH:
                self._begin_anew(now)
            return
        at = max(now, self._looked + _LOOKS_APART)
        if self._begun or at > now:
            self._look_at = at if self._look_at is None else self._look_at
        else:
            self._begin_anew(now)

    def hurry(self, now: float) -> None:
        """Ask at once unless an answer or a watch is on its way; from now on, poll often where polling is all."""
        self._poll_seconds = _HURRIED_SECONDS
        if not self.asking:
            self.due = now

    def ask(self, now: float) -> Ask:
        """Begin the next question; its answer belongs to receive()."""
        self._seconds = int(_WATCH_SECONDS * (1 + self._jitter()))
        self._ask = self._next(now)
        self._verb = self._ask.verbs[0]
        self._reader = ResponseReader(endless=self._verb == _WATCH)
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
            if head is not None and head.status == OK and self._verb == _WATCH:
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
        """Begin the look that was due, or give up an answer that does not come."""
        if not self._begun and self._look_at is not None and now >= self._look_at:
            self._begin_anew(now)
            return []
        if self.expires is None or now < self.expires:
            return []
        waited = now - self._asked_at
        return self.failed(TimedOut(f"could not {self._ask.doing}: no answer within {waited:.0f} s"), now)

    def failed(self, error: MpirtError, now: float) -> list[News]:
        """Take note that there is no answer, or none that helps; decide what to do instead."""
        verb = self._verb if self.asking else ""
        self._settle(reusable=isinstance(error, ApiError) and self._is_complete())
        is_expired = isinstance(error, Expired)
        if is_expired:
            self.version = ""
        news = self._understood(error, verb, now)
        if news is not None:
            return news
        is_news = not is_expired or self._expired_in_a_row >= _EXPIRED_IN_A_ROW
        self._expired_in_a_row += is_expired
        self.due = now + self._backoff.next(error.failure.retry_after if isinstance(error, ApiError) else None)
        return [News(NewsKind.SILENT, error=error)] if is_news else []

    def _next(self, now: float) -> Ask:
        """What to ask now."""
        namespace, labels, name = self._namespace, self._labels, self._name
        self._may_watch = self._may_watch or now >= self._watch_again
        if not self._may_watch:
            return asks.get_pod(namespace, name)
        if self.version:
            since, seconds = self.version, self._seconds
            return asks.watch_pods(namespace, labels=labels, name=name, since=since, seconds=seconds)
        if not self._begun:
            self._begun, self._list_asked = True, now
            if self._look_at is not None:
                self._look_at, self._looked = None, now
        limit = 0 if name else PAGE
        return asks.list_pods(namespace, labels=labels, name=name, limit=limit, after=self._after)

    def _read(self, answer: JsonObject, now: float) -> list[News]:
        """Take what was listed or got."""
        if self._verb == _GET:
            self._poll_again(now)
            return [News(NewsKind.SEEN, answer, name=self._name, asked=self._asked_at)]
        page = read_page(answer, self._ask)
        if page.following and page.following == self._after:
            raise PeerError(f"could not {self._ask.doing}: the list goes round in a circle")
        self.due = now
        # That of the first page: a server may date the others later.
        self._listed = self._listed or page.resource_version
        listed, asked = self._listed, self._list_asked
        news = [News(NewsKind.SEEN, pod, name=_name(pod), version=listed, asked=asked) for pod in page.items]
        self._names |= {piece.name for piece in news}
        self._after = page.following
        if not page.following:
            names = frozenset(self._names)
            if not self._name:
                news.append(News(NewsKind.LISTED, version=listed, names=names, asked=asked))
            elif not names:
                news.append(News(NewsKind.GONE, name=self._name, version=listed, asked=asked))
            self.version = listed
            self._forget_list()
        return news

    def _event(self, event: RawEvent) -> list[News]:
        if event.type == ERROR:
            raise failure_error(status_failure(event.object), self._ask, origin=self._origin)
        self._heard = True
        self._recovered()
        self.version = event.resource_version or self.version
        if event.type in (ADDED, MODIFIED):
            return [_changed(NewsKind.SEEN, event.object)]
        return [_changed(NewsKind.GONE, event.object)] if event.type == DELETED else []

    def _answered(self, reader: ResponseReader, now: float) -> list[News]:
        head, body = reader.answer()
        if head.status != OK:
            raise failure_error(read_failure(head, body), self._ask, origin=self._origin)
        if self._verb == _WATCH:
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

    def _understood(self, error: MpirtError, verb: str, now: float) -> list[News] | None:
        """Take an error that means more than that the API server does not answer; None for one that doesn't."""
        is_first = not self._after
        if self._look_at is not None or isinstance(error, PeerError) or is_first:
            # The page is not asked for again: it must be newer, the token has expired, or there is none yet.
            self._forget_list()
        # A load balancer's 404 says nothing of the pod.
        if isinstance(error, NotFound) and verb == _GET and error.failure.is_status:
            self._poll_again(now)
            return [News(NewsKind.GONE, name=self._name, asked=self._asked_at)]
        # A Role that lets single pods be read may refuse a set of them; and the labels may be no valid selector.
        if isinstance(error, Forbidden) or (isinstance(error, Rejected) and is_first and not self._name):
            self._forget_list()
            self.version = ""
            return [News(self._ask_for_less(now), error=error)]
        if verb == _WATCH and self._look_at is not None and self.version:
            # The look would have left this connection.
            self.version, self.due = "", self._look_at
            return []
        return None

    def _ask_for_less(self, now: float) -> NewsKind:
        """Poll one pod at once, and watch again after a while; where that is refused too, try everything later."""
        if not self._name:
            self.due = now + _WATCH_AGAIN_SECONDS * (1 + self._jitter() / 4)
            return NewsKind.REFUSED
        if self._may_watch:
            self._may_watch, self.due = False, now
            self._watch_again = now + max(_WATCH_AGAIN_SECONDS, _WATCH_AGAIN_POLLS * self._slowest())
            return NewsKind.REFUSED
        self._may_watch, self.due = True, now + _REFUSED_SECONDS
        return NewsKind.HIDDEN

    def _poll_again(self, now: float) -> None:
        self._recovered()
        self.due = now + max(self._poll_seconds, self._slowest()) * (0.75 + self._jitter() / 2)

    def _begin_anew(self, now: float) -> None:
        self._look_at, self._looked = None, now
        self._settle(reusable=False)
        self._forget_list()
        self.version, self.due = "", now

    def _forget_list(self) -> None:
        self._begun, self._listed, self._after = False, "", ""
        self._names.clear()


def _changed(kind: NewsKind, pod: JsonObject) -> News:
    return News(kind, pod, name=_name(pod), version=resource_version(pod))


def _name(pod: JsonObject) -> str:
    return text(table(pod, "metadata"), "name")
