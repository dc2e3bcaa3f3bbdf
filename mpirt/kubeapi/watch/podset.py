"""
Keeping an eye on all pods with the same labels, without I/O.

Owns: the pages of their list, and when a look at them begins another one. listwatch.py has the rest. No pod is
kept: of a list the names only, until it is complete.
"""

from __future__ import annotations

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request import asks
from mpirt.kubeapi.request.answers import Forbidden, JsonObject, Rejected
from mpirt.kubeapi.request.asks import Ask
from mpirt.kubeapi.watch.lines import resource_version
from mpirt.kubeapi.watch.listing import read_page
from mpirt.kubeapi.watch.listwatch import WATCH_AGAIN_SECONDS, Kind, ListWatch, News, Question
from mpirt.objects import table, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.kubeapi.watch.listwatch import Jitter

# A page of 250 pods is one to three MB of JSON.
_PAGE = 250
# Each look of thousands of sessions is worth a list, but they share it.
_LOOKS_APART = 1.0


class PodSetWatch(ListWatch):
    """The watch of a namespace's pods that have the labels; of all its pods if `labels` is empty."""

    # fmt: off
    __slots__ = (
        "_after", "_begun", "_labels", "_list_asked", "_listed", "_look_at", "_looked", "_names", "_namespace",
    )
    # fmt: on

    def __init__(self, namespace: str, labels: str, *, now: float, jitter: Jitter, origin: str) -> None:
        super().__init__(now=now, jitter=jitter, origin=origin)
        self._namespace, self._labels = namespace, labels
        self._names: set[str] = set()
        self._listed, self._after = "", ""
        self._begun = False
        self._list_asked = now
        self._looked = now - _LOOKS_APART
        self._look_at: float | None = None

    @property
    def interrupt(self) -> float | None:
        return None if self._begun else self._look_at

    def look(self, now: float) -> None:
        """
        Read all pods anew, because something looks wrong; on a new connection, this one may be dead.

        A list that is under way may be older than what looks wrong: another one follows it. Looks that come close
        together share a list.
        """
        at = max(now, self._looked + _LOOKS_APART)
        if self._begun or at > now:
            self._look_at = at if self._look_at is None else self._look_at
        else:
            self._begin_anew(now)

    def tick(self, now: float) -> list[News]:
        if not self._begun and self._look_at is not None and now >= self._look_at:
            self._begin_anew(now)
            return []
        return super().tick(now)

    def _next(self, now: float) -> tuple[Question, Ask]:
        if self.version:
            ask = asks.watch_pods(self._namespace, labels=self._labels, since=self.version, seconds=self._seconds)
            return Question.WATCH, ask
        if not self._begun:
            self._begun, self._list_asked = True, now
            if self._look_at is not None:
                self._look_at, self._looked = None, now
        return Question.LIST, asks.list_pods(self._namespace, labels=self._labels, limit=_PAGE, after=self._after)

    def _read(self, answer: JsonObject, now: float) -> list[News]:
        page = read_page(answer, self._ask)
        if page.following and page.following == self._after:
            raise PeerError(f"could not {self._ask.doing}: the list goes round in a circle")
        self.due = now
        # That of the first page: a server may date the others later.
        self._listed = self._listed or page.resource_version
        listed, asked = self._listed, self._list_asked
        news = [News(Kind.SEEN, pod, name=_name(pod), version=listed, asked=asked) for pod in page.items]
        self._names |= {piece.name for piece in news}
        self._after = page.following
        if not page.following:
            names = frozenset(self._names)
            news.append(News(Kind.LISTED, version=listed, names=names, asked=asked))
            self.version = self._listed
            self._forget_list()
        return news

    def _changed(self, kind: Kind, pod: JsonObject) -> News:
        return News(kind, pod, name=_name(pod), version=resource_version(pod))

    def _failed(self, error: MpirtError, question: Question | None, now: float) -> list[News] | None:
        is_first = not self._after
        if self._look_at is not None or isinstance(error, PeerError) or is_first:
            # The page is not asked for again: it must be newer, the token has expired, or there is none yet.
            self._forget_list()
        # A Role that lets single pods be read may refuse a set of them; and the labels may be no valid selector.
        if isinstance(error, Forbidden) or (isinstance(error, Rejected) and is_first):
            self._forget_list()
            self.version, self.due = "", now + WATCH_AGAIN_SECONDS * (1 + self._jitter() / 4)
            return [News(Kind.REFUSED, error=error)]
        if question is Question.WATCH and self._look_at is not None and self.version:
            # The look would have left this connection.
            self.version, self.due = "", self._look_at
            return []
        return None

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
