"""
Questions to a hub for all pods of its set.

Owns: the questions that wait for an answer, and when the common watch is good enough to answer from. In any doubt
the answer is that the API server has to be asked, which is never wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpirt.errors import MpirtError
from mpirt.rsh.pod.jobpods import KeptPods

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mpirt.kubeapi.watch.link import WatchLink
    from mpirt.kubeapi.watch.news import News
    from mpirt.objects import Body

    # Gets what is kept of each pod, or why the pods are not known.
    Hear = Callable[[Sequence[Any] | "NotKnown"], None]

# A watch first reports what has changed since its list, and not when that is over.
SETTLES = 0.5
# The API server sends a bookmark every minute. A watch on which none comes may be a connection that something on
# the way keeps open, though its other end is gone.
_LONGEST_SILENCE = 90.0


class NotKnown(MpirtError):
    """Why the API server has to be asked."""


def keep_all(pod: Body) -> Body:
    """Keep the whole pod."""
    return pod


class PodQuestions:
    """The questions of one hub, and the pods that they are about."""

    def __init__(self, keep: Callable[[Body], Any] = keep_all) -> None:
        self._kept = KeptPods(keep)
        self._waiting: list[tuple[Sequence[str], Hear]] = []

    @property
    def are_waiting(self) -> bool:
        """Whether answer() has something to do."""
        return bool(self._waiting)

    def ask(self, selectors: Sequence[str], hear: Hear) -> None:
        """Wait for an answer."""
        self._waiting.append((selectors, hear))

    def take(self, news: News) -> None:
        """Take what the common watch reports."""
        self._kept.take(news)

    def forget(self) -> None:
        """It is another watch from now on."""
        self._kept.forget()

    def end(self) -> None:
        """No pod is followed any more."""
        self._kept.forget()
        self._answer(lambda _: NotKnown("no command runs in these pods any more"))

    def answer(self, link: WatchLink | None, watched: str, now: float) -> None:
        """Answer the questions, after a step of the watch; not before it has read all that has come."""
        if not self._waiting or (link is not None and link.has_more):
            return
        why = self._doubt(link, now)
        self._answer(lambda selectors: NotKnown(why) if why else self._kept.select(watched, selectors))

    def _answer(self, answer: Callable[[Sequence[str]], Sequence[Any] | NotKnown]) -> None:
        waiting, self._waiting = self._waiting, []
        for selectors, hear in waiting:
            hear(answer(selectors))

    def _doubt(self, link: WatchLink | None, now: float) -> str:
        """Why the API server has to be asked; empty if it needn't be."""
        if link is None or link.opened_at is None:
            return "the watch on the pods is not open at the moment"
        if now - link.heard_at > _LONGEST_SILENCE:
            link.look(anew=True)
            return f"the API server has not sent anything for {now - link.heard_at:.0f} s"
        if not self._kept.is_complete:
            self._kept.want()
            link.look(anew=True)
            return "the pods are being listed for the first time"
        return "the watch on the pods has just begun" if now - link.opened_at < SETTLES else ""
