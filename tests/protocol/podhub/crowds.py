"""
Many followers of one hub, and the loop that they share.

Owns: what they have heard, in words, and what of the server's record is about one pod and what about many.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from mpirt.kubeapi.request.dial import Dialer
from mpirt.rsh.session import events
from mpirt.rsh.watches.followers import Follower
from mpirt.rsh.watches.loop import Loop
from mpirt.rsh.watches.podhub import PodHub
from tests.apiserver.pods import Pod
from tests.apiserver.server import ApiServer
from tests.protocol.clients import endpoint_of

Begin = Callable[..., "Crowd"]
JOB = {"mpirt.dev/job": "a"}
SELECTOR = "mpirt.dev/job=a"


class _Slice:
    """Wakes the loop often: what a test waits for may happen in the server."""

    @staticmethod
    def timeout() -> float:
        return 0.02


class Crowd:
    """A loop with a hub, and what its followers have heard."""

    def __init__(self, server: ApiServer, selector: str | None = None) -> None:
        self.loop = Loop()
        self.loop.add_clock(_Slice(), lambda: None)
        dialer = Dialer(endpoint_of(server))
        self._skipped = 0.0
        self.hub = PodHub(self.loop, dialer, "ml", selector, jitter=lambda: 0.0, clock=self.clock)
        self.heard: dict[str, list[events.Event]] = {}
        self.followers: dict[str, Follower] = {}

    def clock(self) -> float:
        return time.monotonic() + self._skipped

    def skip(self, seconds: float) -> None:
        """Have time pass for the hub."""
        self._skipped += seconds
        self.loop.touch(self.hub)

    def follow(self, *names: str) -> None:
        for name in names:
            heard = self.heard.setdefault(name, [])
            self.followers[name] = self.hub.follow(name, heard.extend)

    def until(self, wanted: Callable[[], object], *, seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while not wanted():
            assert time.monotonic() < end, {name: told(heard) for name, heard in list(self.heard.items())[:9]}
            self.loop.turn()

    def for_a_while(self, seconds: float = 0.3) -> None:
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end)

    def hears(self, name: str, *words: str) -> None:
        """Turn until the last words that the follower has heard are these."""
        self.until(lambda: told(self.heard[name])[-len(words) :] == list(words))

    def settles(self, server: ApiServer) -> None:
        """Turn until all have heard of their pods, and the common watch is open."""
        self.until(lambda: all(heard for heard in self.heard.values()) and commons(server, "watch"))
        self.for_a_while()

    def close(self) -> None:
        for follower in self.followers.values():
            follower.drop()


def told(heard: list[events.Event]) -> list[str]:
    """What was heard in words, without ApiAnswers."""
    words = {events.PodGone: "gone", events.ApiSilent: "silent", events.PodHidden: "hidden"}
    return [
        f"{each.pod.phase} {each.pod.uid}" if isinstance(each, events.PodSeen) else words[type(each)]
        for each in heard
        if not isinstance(each, events.ApiAnswers)
    ]


def commons(server: ApiServer, operation: str) -> list[str]:
    """The selectors of requests that were not about one pod."""
    return [
        request.query.get("labelSelector", "")
        for request in server.asked(operation)
        if "fieldSelector" not in request.query and "continue" not in request.query
    ]


def alone(server: ApiServer, operation: str) -> list[str]:
    """The pods that were asked about by name."""
    fields = [request.query.get("fieldSelector", "") for request in server.asked(operation)]
    return [field.removeprefix("metadata.name=") for field in fields if field]


def running(name: str) -> str:
    return f"Running uid-of-{name}"


def deleting(one: Pod) -> Pod:
    return {**one, "metadata": {**one["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
