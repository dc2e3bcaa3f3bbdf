"""For how long a kind could be neither listed nor watched, as /readyz and a metric report it."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from mpirt.controller.cluster.discovery import Fixed, Unserved
from mpirt.controller.cluster.informer import Informer, Where
from mpirt.controller.cluster.link import Answer, Away, Link, Request
from mpirt.controller.daemon import lasting_failures
from mpirt.controller.model import kinds
from mpirt.controller.model.kinds import Resource
from tests.unit.controller.cluster.listeners import Silent, Sink

HOUR = 3600.0

GOOD_LIST = Answer(200, {"metadata": {"resourceVersion": "7"}, "items": []})
UNDECODABLE = Answer(500, {"message": "unable to decode an object in etcd: exceeded max depth"})
BOOKMARK = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}}).encode()
ERROR = json.dumps({"type": "ERROR", "object": {"code": 500, "message": "the decoder gave up"}}).encode()
EXPIRED = json.dumps({"type": "ERROR", "object": {"code": 410}}).encode()


class Lines:
    """A watch that delivers these lines, and is then ended by the server."""

    def __init__(self, *lines: bytes) -> None:
        self._lines = lines

    def lines(self) -> Iterator[bytes]:
        yield from self._lines

    def close(self) -> None: ...


class Scripted:
    """An API server that answers lists and watches with what a test has written down, and then not at all."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)
        self.informer: Informer | None = None
        self.failing: list[bool] = []
        """Whether the informer was failing, at each request."""
        self.is_over = threading.Event()

    def ask(self, _request: Request) -> Answer:
        answer = self._next()
        assert isinstance(answer, Answer)
        return answer

    def watch(self, _request: Request) -> Any:
        return self._next()

    def _next(self) -> object:
        assert self.informer is not None
        self.failing.append(self.informer.failing_for() > 0)
        if not self._answers:
            self.is_over.set()
            raise Away("no answer")
        return self._answers.pop(0)


class Sinkhole(Sink):
    """Takes everything."""

    def changed(self, kind: str, body: Any) -> None: ...

    removed = changed


def at_each_request(*answers: object, source: Any = None) -> list[bool]:
    """Whether the informer was failing at each request, of which the last one is not answered."""
    server = Scripted(*answers)
    source = source or Fixed(kinds.RESOURCES[kinds.POD])
    # Each look at this clock is an hour later: no pause takes any time.
    clock = itertools.count(step=HOUR).__next__
    informer = Informer(cast(Link, server), source, Where(), Sinkhole(), Silent(), chance=lambda: 0.0, clock=clock)
    server.informer = informer
    informer.start()
    assert server.is_over.wait(60)
    informer.stop()
    informer.join(60)
    # After that it may have asked again.
    return server.failing[: len(answers) + 1]


@pytest.mark.parametrize(
    "watch",
    [
        pytest.param(Answer(500, {"message": "no"}), id="the watch is refused"),
        pytest.param(Lines(ERROR), id="the watch delivers an error"),
        pytest.param(Lines(b"no JSON"), id="the watch delivers nonsense"),
    ],
)
def test_a_kind_whose_watch_fails_is_failing_until_one_delivers_something(watch: object) -> None:
    failing = at_each_request(GOOD_LIST, watch, watch, watch, Lines(BOOKMARK))

    assert failing == [False, False, True, True, True, False]


def test_a_kind_that_cannot_be_listed_is_failing_until_it_can() -> None:
    failing = at_each_request(UNDECODABLE, UNDECODABLE, GOOD_LIST)

    assert failing == [False, True, True, False]


def test_a_kind_that_can_be_listed_no_longer_is_failing() -> None:
    failing = at_each_request(GOOD_LIST, Lines(EXPIRED), UNDECODABLE, UNDECODABLE)

    assert failing == [False, False, False, True, True]


def test_a_watch_that_the_server_ends_is_no_failure_and_ends_one() -> None:
    failing = at_each_request(GOOD_LIST, Lines(), Answer(500, {}), Lines())

    assert failing == [False, False, False, True, False]


class Optional:
    """An optional kind whose CRD is there, broken, and then gone."""

    optional = True

    def __init__(self) -> None:
        self.resource = Resource("kubeflow.org/v1", "MPIJob", "mpijobs")
        self.looks = 0

    def find(self) -> Resource:
        self.looks += 1
        if self.looks == 2:
            raise Unserved("the API server serves no MPIJob")
        return self.resource


def test_a_kind_that_is_not_served_is_missing_and_not_failing() -> None:
    failing = at_each_request(UNDECODABLE, GOOD_LIST, source=Optional())

    assert failing == [False, False, False]


def test_a_kind_that_must_be_read_and_may_not_is_failing() -> None:
    failing = at_each_request(Answer(403, {"message": "pods is forbidden"}), Answer(403, {}))

    assert failing == [False, True, True]


class Failing:
    """An informer that has been failing for some time."""

    def __init__(self, seconds: float, *, synced: bool = True) -> None:
        self.resource = kinds.RESOURCES[kinds.POD]
        self.problem = "unable to decode an object in etcd"
        self.synced = threading.Event()
        self._seconds = seconds
        if synced:
            self.synced.set()

    def failing_for(self) -> float:
        return self._seconds


@pytest.mark.parametrize(
    ("informer", "said"),
    [
        pytest.param(Failing(0.0), [], id="well"),
        pytest.param(Failing(59.0), [], id="for less than a minute"),
        pytest.param(
            Failing(75.4),
            ["pods could not be listed or watched for 75 s: unable to decode an object in etcd"],
            id="for longer",
        ),
        pytest.param(Failing(75.4, synced=False), [], id="never listed, which is reported as such"),
    ],
)
def test_a_failure_that_lasts_is_reported(informer: Failing, said: list[str]) -> None:
    assert lasting_failures([cast(Informer, informer)]) == said
