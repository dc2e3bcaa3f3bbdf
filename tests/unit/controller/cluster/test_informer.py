"""How a kind is listed and watched, how soon it is asked for again, and when it counts as failing."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from mpirt.controller.cluster.discovery import Fixed, Forbidden, OtherVersion, Unserved
from mpirt.controller.cluster.informer import Informer, Where, look_again
from mpirt.controller.cluster.link import Answer, Away, Link, Request
from mpirt.controller.daemon import lasting_failures
from mpirt.controller.dialects.mpijob import VERSIONS
from mpirt.controller.model import kinds
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import JobKey
from mpirt.controller.observed.store import Store
from tests.unit.controller.jobs import NOON
from tests.unit.controller.logs import Lines

PODS = Fixed(kinds.RESOURCES[kinds.POD])


class Cache(Store):
    """The store, and what an informer has reported to it."""

    def __init__(self) -> None:
        super().__init__([kinds.MPI_JOB], clock=lambda: NOON)
        self.found: list[str] = []
        self.listed, self.lost = threading.Event(), threading.Event()

    def replace(self, kind: str, bodies: Iterable[Body], version: str) -> set[JobKey]:
        listed = list(bodies)
        self.found = [body["metadata"]["name"] for body in listed]
        self.listed.set()
        return super().replace(kind, listed, version)

    def lose(self, kind: str) -> set[JobKey]:
        self.lost.set()
        return super().lose(kind)


def later() -> Callable[[], float]:
    """A clock at which each look is an hour later: no pause takes any time."""
    return itertools.count(step=3600.0).__next__


def informer(
    server: object, source: Fixed = PODS, *, cache: Cache, log: Lines | None = None, **times: Any
) -> Informer:
    options = {"chance": lambda: 0.0, **times}
    return Informer(cast(Link, server), source, Where(), cache, log or Lines(), changed=lambda _: None, **options)


@contextmanager
def running(informer: Informer, until: threading.Event) -> Iterator[None]:
    """Run the informer until something has happened."""
    informer.start()
    assert until.wait(60)
    yield
    informer.stop()
    informer.join(60)


class Pages:
    """An API server that has so many pages of everything, and whose watches are answered in turn."""

    def __init__(self, *watches: Answer, pages: int = 2) -> None:
        self.asked: list[Request] = []
        self.watches = list(watches)
        self.pages = pages
        self.is_over = threading.Event()
        """The watches are all used up."""

    def ask(self, request: Request) -> Answer:
        self.asked.append(request)
        metadata = {"resourceVersion": "7", "continue": "more" if len(self.asked) < self.pages else ""}
        return Answer(
            200, {"metadata": metadata, "items": [{"metadata": {"name": f"n{len(self.asked)}"}, "spec": {}}]}
        )

    def watch(self, _request: Request) -> Answer:
        if self.watches:
            return self.watches.pop(0)
        self.is_over.set()
        raise Away("no watch")


class TestAList:
    @pytest.mark.parametrize(
        ("kind", "size"),
        [
            pytest.param(kinds.POD, "500", id="pods"),
            pytest.param(kinds.CONFIG_MAP, "8", id="ConfigMaps, for the files in them"),
            pytest.param(kinds.ROLE, "20", id="Roles, for the workers in them"),
        ],
    )
    def test_is_read_page_by_page_and_each_is_as_large_as_memory_allows(self, kind: str, size: str) -> None:
        server, cache = Pages(), Cache()

        with running(informer(server, Fixed(kinds.RESOURCES[kind]), cache=cache), cache.listed):
            pass

        assert cache.found == ["n1", "n2"]
        asked = [request.query for request in server.asked]
        assert asked[:2] == [{"limit": size}, {"limit": size, "continue": "more"}]

    def test_that_comes_page_by_page_is_progress(self) -> None:
        class SlowPages(Pages):
            def ask(self, request: Request) -> Answer:
                clock.append(100.0)
                alive.append(made.is_alive())
                return super().ask(request)

        clock, alive = list[float](), list[bool]()
        server, cache = SlowPages(pages=5), Cache()
        made = informer(server, cache=cache, clock=lambda: sum(clock))

        with running(made, cache.listed):
            pass

        assert alive[:5] == [True] * 5

    def test_that_is_no_longer_permitted_is_reported(self) -> None:
        cache = Cache()
        nodes = Fixed(kinds.RESOURCES[kinds.NODE], optional=True)
        made = informer(Pages(Answer(403, {"message": "nodes is forbidden"})), nodes, cache=cache)

        with running(made, cache.lost):
            assert cache.listed.is_set()

        assert not made.is_alive()


def test_a_watch_that_has_expired_is_ordinary_and_no_warning() -> None:
    server, log = Pages(Answer(410, {"message": "too old resource version: 5 (7)"})), Lines()

    with running(informer(server, cache=Cache(), log=log), server.is_over):
        pass

    assert log.lines[0] == ("info", "watch expired; listing again", {"kind": "Pod"})


class Found(Fixed):
    """What discovery finds, one after the other; then the last of it for ever."""

    def __init__(self, *found: Resource | Unserved, optional: bool = False) -> None:
        super().__init__(VERSIONS[0], optional=optional)
        self.found = list(found)
        self.is_over = threading.Event()

    def find(self) -> Resource:
        found = self.found.pop(0) if len(self.found) > 1 else self.found[0]
        if isinstance(found, Unserved):
            raise found
        if len(self.found) == 1:
            self.is_over.set()
        self.resource = found
        return found


class TestAKindThatIsNotServed:
    def test_is_logged_once_for_each_reason(self) -> None:
        cache, log = Cache(), Lines()
        reasons = Unserved("no MPIJob"), Unserved("no MPIJob"), OtherVersion("v1alpha1 only")
        made = informer(Pages(), Found(*reasons, VERSIONS[0], optional=True), cache=cache, log=log, clock=later())

        with running(made, cache.listed):
            pass

        assert log.lines[:2] == [
            ("info", "doing without a kind", {"kind": "MPIJob", "error": "no MPIJob"}),
            ("warning", "doing without a kind", {"kind": "MPIJob", "error": "v1alpha1 only"}),
        ]
        assert not made.is_missing

    def test_is_looked_up_anew_in_a_version_that_is_served(self) -> None:
        gone = Answer(404, {"message": "the server could not find the requested resource"})
        server = Pages(gone, gone, gone, pages=1)
        found = Found(VERSIONS[0], Unserved("the API server serves no MPIJob"), VERSIONS[1])

        with running(informer(server, found, cache=Cache()), found.is_over):
            pass

        assert [request.path for request in server.asked[:2]] == [
            "/apis/kubeflow.org/v2beta1/mpijobs",
            "/apis/kubeflow.org/v1/mpijobs",
        ]

    @pytest.mark.parametrize(
        ("error", "pauses"),
        [
            pytest.param(Unserved(""), {0: 1, 1: 4, 2: 16, 3: 60, 4: 60}, id="its CRD may be applied"),
            pytest.param(Forbidden(""), {0: 1, 1: 10, 2: 300, 99: 300}, id="a permission may be granted"),
        ],
    )
    def test_is_looked_for_less_and_less_often(
        self, error: Unserved | Forbidden, pauses: dict[int, float]
    ) -> None:
        assert {looks: look_again(looks, 1.0, error) for looks in pauses} == pauses
        assert {looks: look_again(looks, 0.0, error) * 2 for looks in pauses} == pauses


GOOD_LIST = Answer(200, {"metadata": {"resourceVersion": "7"}, "items": []})
UNDECODABLE = Answer(500, {"message": "unable to decode an object in etcd: exceeded max depth"})


class Watch:
    """A watch that delivers these lines, and is then ended by the server."""

    def __init__(self, *lines: bytes) -> None:
        self._lines = lines

    def lines(self) -> Iterator[bytes]:
        yield from self._lines

    def close(self) -> None: ...


def event(kind: str, **body: object) -> Watch:
    return Watch(json.dumps({"type": kind, "object": body}).encode())


BOOKMARK = event("BOOKMARK", metadata={"resourceVersion": "8"})
EXPIRED = event("ERROR", code=410)
FORBIDDEN = Answer(403, {"message": "pods is forbidden"})


class Scripted:
    """An API server that answers lists and watches with what a test has written down, and then not at all."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)
        self.informer: Informer | None = None
        self.failing: list[bool] = []
        """Whether the informer was failing, at each request."""
        self.is_over = threading.Event()

    def ask(self, _request: Request) -> Any:
        assert self.informer is not None
        self.failing.append(self.informer.failing_for() > 0)
        if not self._answers:
            self.is_over.set()
            raise Away("no answer")
        return self._answers.pop(0)

    watch = ask


REFUSED = Answer(500, {"message": "no"})
BROKEN = event("ERROR", code=500, message="the decoder gave up")
NONSENSE = Watch(b"no JSON")


class TestAKindIsFailing:
    @pytest.mark.parametrize(
        ("answers", "failing"),
        [
            pytest.param([GOOD_LIST, *[REFUSED] * 3, BOOKMARK], "..###.", id="while its watch is refused"),
            pytest.param([GOOD_LIST, *[BROKEN] * 3, BOOKMARK], "..###.", id="while its watch delivers an error"),
            pytest.param([GOOD_LIST, *[NONSENSE] * 3, BOOKMARK], "..###.", id="while it delivers nonsense"),
            pytest.param([UNDECODABLE, UNDECODABLE, GOOD_LIST], ".##.", id="until it can be listed"),
            pytest.param([GOOD_LIST, EXPIRED, UNDECODABLE, UNDECODABLE], "...##", id="listed no longer"),
            pytest.param([GOOD_LIST, Watch(), Answer(500, {}), Watch()], "...#.", id="not if the watch just ends"),
            pytest.param([FORBIDDEN, FORBIDDEN], ".##", id="if it may not be read and must be"),
        ],
    )
    def test_at_the_requests(self, answers: list[object], failing: str) -> None:
        assert self.at_each_request(*answers) == failing

    def test_but_not_while_it_is_missing(self) -> None:
        resource = VERSIONS[1]
        found = Found(resource, Unserved("the API server serves no MPIJob"), resource, optional=True)

        assert self.at_each_request(UNDECODABLE, GOOD_LIST, source=found) == "..."

    @staticmethod
    def at_each_request(*answers: object, source: Fixed = PODS) -> str:
        """# for each request at which the informer was failing. The last one is not answered."""
        server = Scripted(*answers)
        server.informer = informer(server, source, cache=Cache(), clock=later())
        with running(server.informer, server.is_over):
            pass
        # After that it may have asked again.
        return "".join(".#"[is_failing] for is_failing in server.failing[: len(answers) + 1])


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
