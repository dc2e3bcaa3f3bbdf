"""
Sessions that follow a pod on the common watch.

Owns: the handle of a session, what its hub (podhub.py) keeps for each pod that is followed, and what is reported
to a session that may be newer than what is known of its pod.

The watch may be dead, and the session's command in a pod or a container of which it has not heard. Until something
comes that is certainly newer than the session, it hears only what it can draw no conclusions from; with the
first pod that is newer it begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mpirt.kubeapi.watch.link import WatchLink
from mpirt.kubeapi.watch.news import News, NewsKind
from mpirt.rsh.pod.facts import Pod, read_pod
from mpirt.rsh.session import events
from mpirt.rsh.watches.jobpods import SETTLES

if TYPE_CHECKING:
    from mpirt.rsh.watches.podhub import PodHub

Hear: TypeAlias = Callable[[Sequence[events.Event]], None]


class Follower:
    """A session's ear: it hears what a watch of its own would tell."""

    __slots__ = ("_hub", "_older", "hear", "is_up_to_date", "pod", "since")

    def __init__(self, hub: PodHub, pod: Followed, hear: Hear, *, now: float) -> None:
        self._hub, self.pod, self.hear = hub, pod, hear
        self.since = now
        """When it came, and all that had arrived by then was read."""
        self.is_up_to_date = False
        """Whether what comes is newer than its session, with no gap since what it heard before."""
        # What it heard that may be older.
        self._older: Pod | None = None

    def tell(self, pod: Pod | None, *, asked: float | None = None) -> bool:
        """
        The pod (None: gone), by a list that was `asked` for then, or by a watch.

        False if it may be older, and would mean something.
        """
        is_first = False
        if not self.is_up_to_date:
            is_first = self.is_up_to_date = asked is not None and self.since <= asked
            if not is_first and (pod is None or not _means_nothing(pod, self._older)):
                return False
            self._older = None if is_first else pod
        found = events.PodGone() if pod is None else events.PodSeen(pod, is_first=is_first)
        self.hear([events.ApiAnswers(), found])
        return True

    def look(self, *, anew: bool) -> None:
        """Learn of the pod at once: call it when something looks wrong. With `anew` on a new connection."""
        if self in self.pod.followers:
            self._hub.look(self.pod, anew=anew)

    def drop(self) -> None:
        """Hear no more."""
        if self in self.pod.followers:
            self.pod.followers.remove(self)
            self._hub.dropped(self)


class Followed:
    """A pod that at least one session follows."""

    __slots__ = ("followers", "name", "own", "own_is_brief", "true_as_of")

    def __init__(self, name: str) -> None:
        self.name = name
        self.followers: list[Follower] = []
        self.own: WatchLink | None = None
        """Its own watch."""
        self.own_is_brief = False
        """Whether that is there for one answer only."""
        self.true_as_of = 0
        """The version up to which its own watch has reported: older news of the common one are stale."""

    def tell(self, news: Sequence[events.Event]) -> None:
        for follower in tuple(self.followers):
            # One that heard before it may have dropped it.
            if news and follower in self.followers:
                follower.hear(news)

    def tell_pod(self, pod: Pod | None, *, asked: float | None) -> bool:
        """See Follower.tell(); False if it may be too old for one of them."""
        left = tuple(self.followers)
        too_old = [one for one in left if one in self.followers and not one.tell(pod, asked=asked)]
        return not too_old


class Latecomers:
    """The followers for whom the common watch may be too old."""

    __slots__ = ("_heard", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Follower, None] = {}
        self._heard = 0.0

    def add(self, follower: Follower, now: float) -> None:
        """It has come; all that had arrived by now was read."""
        follower.since = now
        self._waiting[follower] = None

    def drop(self, follower: Follower) -> None:
        """It has gone."""
        self._waiting.pop(follower, None)

    @property
    def are_left(self) -> bool:
        """Whether what the watch may have missed is older than some of them."""
        return not all(follower.is_up_to_date for follower in self._waiting)

    def hear(self, opened: float | None, heard: float) -> None:
        """
        The watch is open since then, and something came last at that moment: all before it has been reported.

        If it has just begun, it first tells what has happened since the list, which takes a moment.
        """
        if opened is None or heard == self._heard:
            return
        self._heard = heard
        for follower in tuple(self._waiting):
            if follower.since < heard and (follower.since > opened or heard >= opened + SETTLES):
                follower.is_up_to_date = True
                del self._waiting[follower]


def _means_nothing(pod: Pod, before: Pod | None) -> bool:
    """Whether a session that hears of it draws no conclusion."""
    is_leaving = pod.deleting or pod.has_ended
    is_same = before is None or (before.uid, before.containers) == (pod.uid, pod.containers)
    return is_same and not is_leaving


def events_of(news: News) -> list[events.Event]:
    """What news of a pod are to its session."""
    match news.kind:
        case NewsKind.SEEN:
            return [events.ApiAnswers(), events.PodSeen(read_pod(news.pod or {}))]
        case NewsKind.GONE:
            return [events.ApiAnswers(), events.PodGone()]
        case NewsKind.OPEN | NewsKind.LISTED:
            return [events.ApiAnswers()]
        case NewsKind.REFUSED:
            # What a lesser Role may still read is asked for next.
            return []
        case NewsKind.HIDDEN:
            return [events.PodHidden(str(news.error))]
        case NewsKind.SILENT:
            return [events.ApiSilent(str(news.error))]


def version_number(version: str) -> int:
    """A resource version as a number: newer ones are higher."""
    return int(version) if version.isascii() and version.isdigit() else 0
