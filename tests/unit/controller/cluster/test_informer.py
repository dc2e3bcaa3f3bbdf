"""How a kind is listed, and how long after a failure it is asked for again."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from mpirt.controller.cluster.discovery import Fixed, Forbidden, OtherVersion, Unserved
from mpirt.controller.cluster.informer import Informer, Where, look_again
from mpirt.controller.cluster.link import Answer, Away, Link, Request
from mpirt.controller.dialects.mpijob import VERSIONS
from mpirt.controller.model import kinds
from mpirt.controller.model.kinds import Resource
from tests.unit.controller.cluster.listeners import Silent, Sink


class Pages:
    """An API server that has two pages of everything, and no watch."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []

    def ask(self, request: Request) -> Answer:
        self.asked.append(dict(request.query))
        is_last = "continue" in request.query
        metadata = {"resourceVersion": "7", "continue": "" if is_last else "more"}
        return Answer(200, {"metadata": metadata, "items": [{"metadata": {"name": f"n{len(self.asked)}"}}]})

    def watch(self, _request: Request) -> Answer:
        raise Away("no watch")


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        pytest.param(kinds.POD, "500", id="pods"),
        pytest.param(kinds.CONFIG_MAP, "8", id="ConfigMaps, for the files in them"),
        pytest.param(kinds.ROLE, "20", id="Roles, for the workers in them"),
    ],
)
def test_all_pages_are_read_and_each_is_as_large_as_memory_allows(kind: str, size: str) -> None:
    pages, sink = Pages(), Sink()
    source = Fixed(kinds.RESOURCES[kind])
    informer = Informer(cast(Link, pages), source, Where(), sink, Silent(), chance=lambda: 0.5)

    informer.start()
    assert sink.listed.wait(60)
    informer.stop()
    informer.join(60)

    assert sink.names == ["n1", "n2"]
    assert pages.asked == [{"limit": size}, {"limit": size, "continue": "more"}]


class SlowPages(Pages):
    """The same with more pages, each of which takes a hundred seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.is_alive: Callable[[], bool] = bool
        self.alive: list[bool] = []

    def ask(self, request: Request) -> Answer:
        self.seconds += 100
        self.alive.append(self.is_alive())
        answer = super().ask(request)
        metadata = {"resourceVersion": "7", "continue": "more" if len(self.asked) < 5 else ""}
        return Answer(200, {**answer.body, "metadata": metadata})


def test_a_list_that_comes_page_by_page_is_progress() -> None:
    pages, sink = SlowPages(), Sink()
    source = Fixed(kinds.RESOURCES[kinds.POD])
    informer = Informer(
        cast(Link, pages), source, Where(), sink, Silent(), chance=lambda: 0.5, clock=lambda: pages.seconds
    )
    pages.is_alive = informer.is_alive

    informer.start()
    assert sink.listed.wait(60)
    informer.stop()
    informer.join(60)

    assert pages.alive == [True] * 5


class Notes:
    """A log that is read: level, message and error of each line."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []

    def info(self, message: str, **fields: Any) -> None:
        self.lines.append(("info", message, fields.get("error", "")))

    def warning(self, message: str, **fields: Any) -> None:
        self.lines.append(("warning", message, fields.get("error", "")))

    error = warning


class Expiring(Pages):
    """The same, whose watch has expired once."""

    def __init__(self) -> None:
        super().__init__()
        self.expired = False
        self.listed_again = threading.Event()

    def watch(self, _request: Request) -> Answer:
        if self.expired:
            self.listed_again.set()
            raise Away("no watch")
        self.expired = True
        return Answer(410, {"message": "too old resource version: 5 (7)"})


def test_a_watch_that_has_expired_is_ordinary_and_no_warning() -> None:
    server, notes = Expiring(), Notes()
    source = Fixed(kinds.RESOURCES[kinds.POD])
    informer = Informer(cast(Link, server), source, Where(), Sink(), notes, chance=lambda: 0.0)

    informer.start()
    assert server.listed_again.wait(60)
    informer.stop()
    informer.join(60)

    assert notes.lines[0] == ("info", "watch expired; listing again", "")


class Reasons:
    """Discovery of an optional kind that is not served, for one reason after the other, and then it is."""

    optional = True
    resource = VERSIONS[0]

    def __init__(self, *reasons: Unserved) -> None:
        self.reasons = list(reasons)

    def find(self) -> Resource:
        if self.reasons:
            raise self.reasons.pop(0)
        return self.resource


def test_each_reason_to_do_without_a_kind_is_logged_once() -> None:
    sink, notes = Sink(), Notes()
    reasons = Reasons(Unserved("no MPIJob"), Unserved("no MPIJob"), OtherVersion("v1alpha1 only"))
    # Each look at this clock is an hour later: no pause takes any time.
    clock = itertools.count(step=3600.0).__next__
    informer = Informer(cast(Link, Pages()), reasons, Where(), sink, notes, chance=lambda: 0.0, clock=clock)

    informer.start()
    assert sink.listed.wait(60)
    informer.stop()
    informer.join(60)

    assert notes.lines[:2] == [
        ("info", "doing without a kind", "no MPIJob"),
        ("warning", "doing without a kind", "v1alpha1 only"),
    ]
    assert not informer.is_missing


class TestTheTimeUntilAMissingKindIsLookedFor:
    def test_is_a_minute_in_the_end_for_a_crd_that_may_be_applied(self) -> None:
        assert [look_again(looks, 1.0, Unserved("")) for looks in range(5)] == [1, 4, 16, 60, 60]

    def test_is_five_minutes_in_the_end_for_a_permission_that_may_be_granted(self) -> None:
        assert [look_again(looks, 1.0, Forbidden("")) for looks in (0, 1, 2, 99)] == [1, 10, 300, 300]

    def test_is_half_as_long_for_some(self) -> None:
        assert look_again(2, 0.0, Unserved("")) == 8


class Revoked(Pages):
    """An API server that takes the permission away after the first list."""

    def watch(self, _request: Request) -> Answer:
        return Answer(403, {"message": "nodes is forbidden"})


class Unread(Sink):
    """Waits for the word that a kind can't be read."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = threading.Event()

    def unreadable(self, kind: str) -> None:
        assert kind == kinds.NODE
        self.lost.set()


def test_a_permission_that_is_taken_away_later_is_reported() -> None:
    sink = Unread()
    source = Fixed(kinds.RESOURCES[kinds.NODE], optional=True)
    informer = Informer(cast(Link, Revoked()), source, Where(), sink, Silent(), chance=lambda: 0.5)

    informer.start()
    assert sink.listed.wait(60)
    assert sink.lost.wait(60)
    informer.stop()
    informer.join(60)

    assert not informer.is_alive()


class ChangedCrd:
    """An API server whose CRD loses v2beta1 between a list and the watch that follows it."""

    def __init__(self) -> None:
        self.listed: list[str] = []

    def ask(self, request: Request) -> Answer:
        self.listed.append(request.path)
        return Answer(200, {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "train"}}]})

    def watch(self, _request: Request) -> Answer:
        return Answer(404, {"message": "the server could not find the requested resource"})


class Versions:
    """What discovery finds, each time that it is asked: v2beta1, nothing for a moment, and then v1."""

    optional = False

    def __init__(self) -> None:
        self.resource = VERSIONS[0]
        self.asked = 0
        self.has_changed = threading.Event()

    def find(self) -> Resource:
        self.asked += 1
        if self.asked == 2:
            raise Unserved("the API server serves no MPIJob")
        if self.asked == 4:
            self.has_changed.set()
        self.resource = VERSIONS[min(1, self.asked - 1)]
        return self.resource


def test_a_version_that_is_no_longer_served_is_looked_up_anew() -> None:
    server, versions, sink = ChangedCrd(), Versions(), Sink()
    informer = Informer(cast(Link, server), versions, Where(), sink, Silent(), chance=lambda: 0.0)

    informer.start()
    assert versions.has_changed.wait(60)
    informer.stop()
    informer.join(60)

    assert server.listed[:2] == ["/apis/kubeflow.org/v2beta1/mpijobs", "/apis/kubeflow.org/v1/mpijobs"]
