"""
Keeping an eye on one pod, without I/O.

Owns: what to ask next (list, then watch from there; poll where only `get` is allowed), and what the answers say
about the pod. listwatch.py has the rest.
"""

from __future__ import annotations

from mpirt.errors import MpirtError
from mpirt.kubeapi.request import asks
from mpirt.kubeapi.request.answers import Forbidden, JsonObject, NotFound
from mpirt.kubeapi.request.asks import Ask
from mpirt.kubeapi.watch.listing import read_page
from mpirt.kubeapi.watch.listwatch import WATCH_AGAIN_SECONDS, Kind, ListWatch, News, Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.kubeapi.watch.listwatch import Jitter

# Where only `get` is allowed: a deleted pod is noticed within four seconds.
_POLL_SECONDS = 3.0
# And where something has happened to it, which the API server may not have heard yet.
_HURRIED_SECONDS = 0.2
# Polling goes on for a minute after a refusal, or for so many polls, where many share a pace.
_WATCH_AGAIN_POLLS = 10
# Where nothing is allowed at all: somebody may still create the Role.
_REFUSED_SECONDS = 30.0


class PodWatch(ListWatch):
    """One pod's watch. `since` saves the first list where a fresh resource version is known."""

    __slots__ = ("_may_watch", "_name", "_namespace", "_poll_seconds", "_slowest", "_watch_again")

    def __init__(
        self,
        namespace: str,
        name: str,
        *,
        now: float,
        jitter: Jitter,
        origin: str,
        since: str = "",
        slowest: Callable[[], float] = float,
    ) -> None:
        """`slowest` tells how many seconds must pass between polls where many share a pace."""
        super().__init__(now=now, jitter=jitter, origin=origin, since=since)
        self._namespace, self._name = namespace, name
        self._slowest = slowest
        self._may_watch = True
        self._watch_again = now
        self._poll_seconds = _POLL_SECONDS

    def look(self, now: float) -> None:
        """Read the pod anew at once, because something looks wrong; on a new connection, this one may be dead."""
        if self.asking and self._question is not Question.WATCH:
            return
        self._settle(reusable=False)
        self.version = ""
        self.due = now

    def hurry(self, now: float) -> None:
        """Ask at once unless an answer or a watch is on its way; from now on, poll often where polling is all."""
        self._poll_seconds = _HURRIED_SECONDS
        super().hurry(now)

    def _next(self, now: float) -> tuple[Question, Ask]:
        namespace, name = self._namespace, self._name
        self._may_watch = self._may_watch or now >= self._watch_again
        if not self._may_watch:
            return Question.GET, asks.get_pod(namespace, name)
        if not self.version:
            return Question.LIST, asks.list_pods(namespace, name=name)
        return Question.WATCH, asks.watch_pod(namespace, name, since=self.version, seconds=self._seconds)

    def _read(self, answer: JsonObject, now: float) -> list[News]:
        if self._question is Question.LIST:
            page = read_page(answer, self._ask)
            self.version, self.due = page.resource_version, now
            pods = page.items
        else:
            self._poll_again(now)
            pods = [answer]
        asked = self._asked_at
        return [News(Kind.SEEN, pod, asked=asked) for pod in pods] or [News(Kind.GONE, asked=asked)]

    def _changed(self, kind: Kind, pod: JsonObject) -> News:
        return News(kind, pod)

    def _failed(self, error: MpirtError, question: Question | None, now: float) -> list[News] | None:
        match error:
            # A load balancer's 404 says nothing of the pod.
            case NotFound(failure=failure) if question is Question.GET and failure.is_status:
                self._poll_again(now)
                return [News(Kind.GONE, asked=self._asked_at)]
            case Forbidden():
                return [News(self._ask_for_less(now), error=error)]
        return None

    def _ask_for_less(self, now: float) -> Kind:
        """Poll at once, and watch again after a while; where that is refused too, try everything later."""
        # Of the version that was listed a watch would tell what polling has already seen.
        self.version = ""
        if self._may_watch:
            self._may_watch, self.due = False, now
            self._watch_again = now + max(WATCH_AGAIN_SECONDS, _WATCH_AGAIN_POLLS * self._slowest())
            return Kind.REFUSED
        self._may_watch, self.due = True, now + _REFUSED_SECONDS
        return Kind.HIDDEN

    def _poll_again(self, now: float) -> None:
        self._failures = 0
        self.due = now + max(self._poll_seconds, self._slowest()) * (0.75 + self._jitter() / 2)
