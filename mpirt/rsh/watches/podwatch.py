"""
The pod's watch, in the session's words.

Owns: what news of the pod are to a session. Imported when a command has run for a second, or when something looks
wrong: short commands pay nothing for it.
"""

from __future__ import annotations

import time

from mpirt.kubeapi.watch.link import WatchLink
from mpirt.kubeapi.watch.listwatch import Kind, News
from mpirt.kubeapi.watch.pod import PodWatch
from mpirt.rsh.pod.facts import read_pod
from mpirt.rsh.ports.chance import jitter
from mpirt.rsh.session import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpirt.kubeapi.access.steps import Clock
    from mpirt.kubeapi.request.dial import Dialer
    from mpirt.rsh.ports.loop import Loop


class PodWatchPort(WatchLink):
    """One pod's watch, for the loop that owns everything else too."""

    __slots__ = ()

    def __init__(
        self,
        dialer: Dialer,
        namespace: str,
        pod: str,
        *,
        jitter: Callable[[], float],
        clock: Clock = time.monotonic,
        after: float = 0.0,
        slowest: Callable[[], float] = float,
    ) -> None:
        """Asks first `after` so many seconds; `slowest` bounds the pace of polls (see PodWatch)."""
        begin, origin = clock() + after, dialer.endpoint.origin
        watch = PodWatch(namespace, pod, now=begin, jitter=jitter, origin=origin, slowest=slowest)
        super().__init__(dialer, watch, clock=clock)

    def learn(self) -> list[events.Event]:
        """Do what can be done without waiting; give what the session should know."""
        return [event for news in self.step() for event in told_by(news)]


class OwnWatch:
    """One pod's watch on a loop, and who hears of it."""

    __slots__ = ("_loop", "_port")

    def __init__(
        self, loop: Loop, dialer: Dialer, namespace: str, pod: str, hear: Callable[[Sequence[events.Event]], None]
    ) -> None:
        self._loop = loop
        self._port = port = PodWatchPort(dialer, namespace, pod, jitter=jitter)
        loop.add(port, lambda: hear(port.learn()), group=self)

    def look(self, *, anew: bool) -> None:
        """Read the pod at once; with `anew` on another connection."""
        self._port.look(anew=anew)
        self._loop.touch(self)

    def drop(self) -> None:
        """Nobody wants to hear of it any more."""
        self._loop.remove(self._port)
        self._port.drop()


def told_by(news: News) -> list[events.Event]:
    """What news of a pod are to its session."""
    match news.kind:
        case Kind.SEEN:
            return [events.ApiAnswers(), events.PodSeen(read_pod(news.pod or {}))]
        case Kind.GONE:
            return [events.ApiAnswers(), events.PodGone()]
        case Kind.OPEN | Kind.LISTED:
            return [events.ApiAnswers()]
        case Kind.REFUSED:
            # What a lesser Role may still read is asked for next.
            return []
        case Kind.HIDDEN:
            return [events.PodHidden(str(news.error))]
        case Kind.SILENT:
            return [events.ApiSilent(str(news.error))]
