"""
Who follows a pod on the common watch.

Owns: the handle that a session has, and what its hub (podhub.py) keeps for each pod that is followed.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpirt.rsh.session import events
    from mpirt.rsh.watches.podhub import PodHub
    from mpirt.rsh.watches.podwatch import PodWatchPort

    Hear = Callable[[Sequence[events.Event]], None]


@dataclass(frozen=True, slots=True)
class Watch:
    """How a common watch is, for whoever wants to know."""

    namespace: str
    selector: str
    """Empty: all pods of the namespace, or not known yet."""
    state: str
    """idle, listing, watching, silent (the API server does not answer) or refused (by the Role)."""
    pods: int
    """How many pods are followed."""


class Follower:
    """A session's ear: it hears what a PodWatchPort of its own would tell."""

    __slots__ = ("_hub", "hear", "pod")

    def __init__(self, hub: PodHub, pod: Followed, hear: Hear) -> None:
        self._hub, self.pod, self.hear = hub, pod, hear

    def look(self, *, anew: bool) -> None:
        """Learn of the pod at once: call it when something looks wrong. With `anew` on a new connection."""
        if self in self.pod.followers:
            self._hub.look(self.pod, anew=anew)

    def drop(self) -> None:
        """Hear no more."""
        if self in self.pod.followers:
            self.pod.followers.remove(self)
            self._hub.dropped(self.pod)


class Followed:
    """A pod that somebody follows."""

    __slots__ = ("followers", "name", "own", "own_is_brief", "true_as_of")

    def __init__(self, name: str) -> None:
        self.name = name
        self.followers: list[Follower] = []
        self.own: PodWatchPort | None = None
        """Its own watch."""
        self.own_is_brief = False
        """Whether that is there for one answer only."""
        self.true_as_of = 0
        """The version up to which its own watch has told the truth: older news of the common one are stale."""

    def tell(self, told: Sequence[events.Event]) -> None:
        for follower in tuple(self.followers):
            # One that heard before it may have dropped it.
            if told and follower in self.followers:
                follower.hear(told)
