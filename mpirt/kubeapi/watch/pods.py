"""
The watch of pods, without I/O: of those with the same labels, of one by its name, or of all in a namespace.

Owns: the pages of their list, when a look begins another one, and what is asked where a Role allows less: one pod
is polled where only `get` is allowed. listwatch.py has the rest. Of a list only the names are kept, until it is
complete.
"""

from __future__ import annotations

from collections.abc import Callable

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request import asks
from mpirt.kubeapi.request.answers import Forbidden, JsonObject, NotFound, Rejected, read_page
from mpirt.kubeapi.request.asks import PAGE, Ask
from mpirt.kubeapi.watch.lines import resource_version
from mpirt.kubeapi.watch.listwatch import Jitter, ListWatch, News, NewsKind, Verb
from mpirt.objects import table, text

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


class PodWatch(ListWatch):
    """One watch."""

    # fmt: off
    __slots__ = (
        "_after", "_begun", "_labels", "_list_asked", "_listed", "_look_at", "_looked", "_may_watch", "_name",
        "_names", "_namespace", "_poll_seconds", "_slowest", "_watch_again",
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
        super().__init__(now=now, jitter=jitter, origin=origin)
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
    def interrupt(self) -> float | None:
        return None if self._begun else self._look_at

    def look(self, now: float) -> None:
        """
        Read all anew, because something looks wrong; on a new connection, this one may be dead.

        A list that is under way may be older than what looks wrong: another one follows it. Looks that come close
        together share a list. Of one pod the answer that is under way is enough.
        """
        if self._name:
            if not self.asking or self._question is Verb.WATCH:
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
        super().hurry(now)

    def tick(self, now: float) -> list[News]:
        if not self._begun and self._look_at is not None and now >= self._look_at:
            self._begin_anew(now)
            return []
        return super().tick(now)

    def _next(self, now: float) -> tuple[Verb, Ask]:
        namespace, labels, name = self._namespace, self._labels, self._name
        self._may_watch = self._may_watch or now >= self._watch_again
        if not self._may_watch:
            return Verb.GET, asks.get_pod(namespace, name)
        if self.version:
            since, seconds = self.version, self._seconds
            return Verb.WATCH, asks.watch_pods(namespace, labels=labels, name=name, since=since, seconds=seconds)
        if not self._begun:
            self._begun, self._list_asked = True, now
            if self._look_at is not None:
                self._look_at, self._looked = None, now
        limit = 0 if name else PAGE
        return Verb.LIST, asks.list_pods(namespace, labels=labels, name=name, limit=limit, after=self._after)

    def _read(self, answer: JsonObject, now: float) -> list[News]:
        if self._question is Verb.GET:
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

    def _changed(self, kind: NewsKind, pod: JsonObject) -> News:
        return News(kind, pod, name=_name(pod), version=resource_version(pod))

    def _failed(self, error: MpirtError, question: Verb | None, now: float) -> list[News] | None:
        is_first = not self._after
        if self._look_at is not None or isinstance(error, PeerError) or is_first:
            # The page is not asked for again: it must be newer, the token has expired, or there is none yet.
            self._forget_list()
        # A load balancer's 404 says nothing of the pod.
        if isinstance(error, NotFound) and question is Verb.GET and error.failure.is_status:
            self._poll_again(now)
            return [News(NewsKind.GONE, name=self._name, asked=self._asked_at)]
        # A Role that lets single pods be read may refuse a set of them; and the labels may be no valid selector.
        if isinstance(error, Forbidden) or (isinstance(error, Rejected) and is_first and not self._name):
            self._forget_list()
            self.version = ""
            return [News(self._ask_for_less(now), error=error)]
        if question is Verb.WATCH and self._look_at is not None and self.version:
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


def _name(pod: JsonObject) -> str:
    return text(table(pod, "metadata"), "name")
