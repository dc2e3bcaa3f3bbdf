"""A watch on one pod, on the wire: what is asked next, and what is made of every way to be told nothing."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request.answers import (
    ConnectionLost,
    Forbidden,
    Overloaded,
    Unauthorized,
    Untrusted,
)
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.stream import Address
from mpirt.kubeapi.watch.link import WatchLink
from mpirt.kubeapi.watch.listwatch import PodWatch
from mpirt.kubeapi.watch.news import News, NewsKind
from tests.apiserver.certificates import HOST
from tests.apiserver.connection import Exchange
from tests.apiserver.door import Deaf, PlainText, Slam
from tests.apiserver.faults import (
    CHUNKED,
    Chunked,
    Fault,
    Hangup,
    Raw,
    Redirect,
    Silence,
    Status,
    Then,
    in_chunk,
    status_object,
)
from tests.apiserver.pods import pod
from tests.apiserver.routes import event
from tests.apiserver.server import ApiServer
from tests.protocol.clients import Certificates, Rotating, endpoint_of

if TYPE_CHECKING:
    from mpirt.kubeapi.access.credentials import CredentialSource


class Watcher:
    """A poll loop around one WatchLink, for which time stands still but for pauses, which are skipped."""

    def __init__(
        self,
        server: ApiServer,
        *,
        tokens: tuple[str, ...] = (),
        source: CredentialSource | None = None,
        addresses: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self.news: list[News] = []
        self.now = 100.0
        self.pauses: list[float] = []
        source = source or Rotating(*(tokens or (server.token,)))
        self.watch = PodWatch("ml", name="w-0", now=self.clock(), jitter=lambda: 0.0, origin="the test")
        endpoint = endpoint_of(server, source, host="localhost" if addresses else HOST)
        found = [Address(socket.AF_INET, address) for address in addresses]
        self.link = WatchLink(Dialer(endpoint, look_up=lambda *_: found), self.watch, clock=self.clock)

    def clock(self) -> float:
        return self.now

    def turn(self) -> None:
        """One turn of the loop."""
        descriptor, wants, seconds = self.link.waits()
        if not self.watch.asking and seconds > 0:
            self.pauses.append(seconds)
            self.now += seconds
        elif descriptor >= 0:
            poll = select.poll()
            poll.register(descriptor, wants)
            # In slices, for what a test waits for may happen in the server.
            poll.poll(min(seconds, 0.05) * 1000)
        self.news += self.link.step()

    def until(self, wanted: Callable[[], object]) -> None:
        """Turn until something holds."""
        end = time.monotonic() + 20.0
        while not wanted():
            assert time.monotonic() < end, f"only this was learned: {[piece.kind for piece in self.news[:20]]}"
            self.turn()

    def next(self, *kinds: NewsKind) -> list[News]:
        """Turn until so many news have come, and see what they are."""
        self.until(lambda: len(self.news) >= len(kinds))
        found, self.news = self.news[: len(kinds)], self.news[len(kinds) :]
        assert [piece.kind for piece in found] == list(kinds)
        return found


class BrokenTls:
    """Bytes that are no TLS, in the middle of it: they fail a read on all Pythons, a reset on some only."""

    def play(self, exchange: Exchange) -> None:
        os.write(exchange.connection.socket.fileno(), bytes(64))
        exchange.connection.hang()


@pytest.fixture
def begin(apiserver: ApiServer) -> Iterator[Callable[..., Watcher]]:
    """Makes watchers, and closes them at the end."""
    apiserver.world.put(pod("w-0"), pod("w-1"))
    with contextlib.ExitStack() as stack:

        def make(**settings: Any) -> Watcher:
            made = Watcher(apiserver, **settings)
            stack.callback(made.link.drop)
            return made

        yield make


@pytest.fixture
def watcher(begin: Callable[..., Watcher]) -> Watcher:
    """A watcher of w-0, which runs."""
    return begin()


def phases(news: list[News]) -> list[str]:
    found: list[Any] = [piece.pod["status"] for piece in news if piece.pod is not None]
    return [status["phase"] for status in found]


class TestWhatIsTold:
    def test_the_pod_as_it_is_then_every_change_then_its_end(self, apiserver: ApiServer, watcher: Watcher) -> None:
        assert phases(watcher.next(NewsKind.SEEN, NewsKind.OPEN)) == ["Running"]

        apiserver.world.put(pod("w-1", phase="Failed"), pod("w-0", phase="Succeeded"))
        apiserver.world.delete("w-0")

        assert phases(watcher.next(NewsKind.SEEN, NewsKind.GONE)) == ["Succeeded", "Succeeded"]

    def test_a_pod_that_is_not_there_is_gone_until_it_comes(self, apiserver: ApiServer, watcher: Watcher) -> None:
        apiserver.world.delete("w-0")
        watcher.next(NewsKind.GONE, NewsKind.OPEN)

        apiserver.world.put(pod("w-0", phase="Pending"))

        assert phases(watcher.next(NewsKind.SEEN)) == ["Pending"]

    def test_list_and_watch_share_a_connection(self, apiserver: ApiServer, watcher: Watcher) -> None:
        watcher.next(NewsKind.SEEN, NewsKind.OPEN)

        assert apiserver.connections == 1
        assert [name for name, _ in apiserver.requests] == ["list", "watch"]

    def test_only_one_pod_is_asked_for(self, apiserver: ApiServer, watcher: Watcher) -> None:
        watcher.next(NewsKind.SEEN, NewsKind.OPEN)

        (listed,), (watched,) = apiserver.asked("list"), apiserver.asked("watch")
        assert listed.query == {"fieldSelector": "metadata.name=w-0"}
        assert watched.query == {
            "watch": "true",
            "fieldSelector": "metadata.name=w-0",
            "resourceVersion": str(apiserver.world.version),
            "timeoutSeconds": "240",
            "allowWatchBookmarks": "true",
        }


class TestTheEndOfAWatch:
    def test_in_time_is_no_news_and_nothing_is_missed(self, apiserver: ApiServer, watcher: Watcher) -> None:
        line = event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "150"}})
        apiserver.on("watch", Chunked((line,)))
        apiserver.world.version = 149

        watcher.next(NewsKind.SEEN, NewsKind.OPEN, NewsKind.OPEN)

        assert [request.query["resourceVersion"] for request in apiserver.asked("watch")] == ["149", "150"]
        assert apiserver.connections == 1

    def test_by_a_lost_connection_is_news_and_nothing_is_missed(
        self, apiserver: ApiServer, watcher: Watcher
    ) -> None:
        line = event("MODIFIED", pod("w-0", phase="Pending") | {"kind": "Pod"})
        apiserver.on("watch", Chunked((line,), Then.CLOSE))

        news = watcher.next(NewsKind.SEEN, NewsKind.OPEN, NewsKind.SEEN, NewsKind.SILENT, NewsKind.OPEN)

        assert isinstance(news[3].error, ConnectionLost)
        assert phases(news) == ["Running", "Pending"]

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(Status(410, "Expired", "too old resource version: 1 (99)"), id="as an answer"),
            pytest.param(
                Chunked((event("ERROR", status_object(410, "Expired", "too old")),), Then.HANG), id="as an event"
            ),
        ],
    )
    def test_by_410_means_a_new_list_and_is_no_news(
        self, apiserver: ApiServer, watcher: Watcher, fault: Fault
    ) -> None:
        apiserver.on("watch", fault)
        watcher.until(
            lambda: watcher.news and watcher.news[-1].kind is NewsKind.OPEN and len(apiserver.asked("watch")) == 2
        )

        assert [name for name, _ in apiserver.requests] == ["list", "watch", "list", "watch"]
        assert NewsKind.SILENT not in [piece.kind for piece in watcher.news]


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            pytest.param(Status(503), Overloaded, id="503"),
            pytest.param(Redirect("https://elsewhere.example/"), MpirtError, id="a redirect"),
            pytest.param(Hangup(), ConnectionLost, id="hangs up"),
            pytest.param(Hangup(Then.RESET), ConnectionLost, id="resets"),
            pytest.param(Raw(b"\x15\x03\x01", Then.HANG), PeerError, id="noise"),
            pytest.param(Chunked((b"not json\n",), Then.HANG), PeerError, id="no JSON"),
            pytest.param(Raw(CHUNKED + b"nonsense\r\n", Then.HANG), PeerError, id="no chunk"),
            pytest.param(Raw(CHUNKED + in_chunk(b'{"type":"MODIF')), ConnectionLost, id="half an event"),
        ],
    )
    def test_is_news_and_then_the_watch_goes_on(
        self, apiserver: ApiServer, watcher: Watcher, fault: Fault, error: type[MpirtError]
    ) -> None:
        apiserver.on("watch", fault)
        watcher.until(lambda: [piece for piece in watcher.news if piece.kind is NewsKind.SILENT])
        apiserver.world.put(pod("w-0", phase="Failed"))
        watcher.until(lambda: phases(watcher.news)[-1:] == ["Failed"])

        (silent,) = [piece for piece in watcher.news if piece.kind is NewsKind.SILENT]
        assert isinstance(silent.error, error)
        assert "\n" not in str(silent.error)

    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            pytest.param(Slam(), ConnectionLost, id="closed"),
            pytest.param(PlainText(), PeerError, id="no TLS"),
        ],
    )
    def test_at_the_door_is_news_and_then_the_watch_begins(
        self, apiserver: ApiServer, watcher: Watcher, fault: Slam | PlainText, error: type[MpirtError]
    ) -> None:
        apiserver.at_the_door(fault)

        news = watcher.next(NewsKind.SILENT, NewsKind.SEEN, NewsKind.OPEN)

        assert isinstance(news[0].error, error)

    @pytest.mark.parametrize(
        "fault", [pytest.param(BrokenTls(), id="broken TLS"), pytest.param(Hangup(Then.RESET), id="a reset")]
    )
    def test_that_break_a_read_off_leave_the_loop_in_peace(
        self, apiserver: ApiServer, watcher: Watcher, fault: Fault
    ) -> None:
        apiserver.on("watch", fault)

        watcher.next(NewsKind.SEEN, NewsKind.SILENT)

        assert watcher.link.waits()[2] > 0

    def test_of_a_certificate_is_news_and_may_pass(self, apiserver: ApiServer, watcher: Watcher) -> None:
        apiserver.identity = apiserver.authority.expired
        (news,) = watcher.next(NewsKind.SILENT)
        apiserver.identity = apiserver.authority.good
        watcher.next(NewsKind.SEEN, NewsKind.OPEN)

        assert isinstance(news.error, Untrusted)

    def test_of_a_token_is_cured_by_the_next_token(
        self, apiserver: ApiServer, begin: Callable[..., Watcher]
    ) -> None:
        stale = begin(tokens=("stale", apiserver.token))

        news = stale.next(NewsKind.SILENT, NewsKind.SEEN, NewsKind.OPEN)

        assert isinstance(news[0].error, Unauthorized)

    def test_of_a_client_certificate_is_cured_by_the_next_one(
        self, apiserver: ApiServer, begin: Callable[..., Watcher]
    ) -> None:
        apiserver.rules -= {("watch", "pods")}
        source = Certificates(apiserver.authority.client("first"), apiserver.authority.client("second"))
        renewed = begin(source=source)
        renewed.next(NewsKind.SEEN, NewsKind.REFUSED, NewsKind.SEEN)

        source.renew()
        renewed.next(NewsKind.SEEN)

        assert apiserver.client_names == ["first", "second"]


class TestTheServersName:
    def test_may_have_an_address_without_a_listener(
        self, apiserver: ApiServer, begin: Callable[..., Watcher]
    ) -> None:
        with socket.create_server((HOST, 0)) as closed:
            nobody = closed.getsockname()

        named = begin(addresses=(nobody, (HOST, apiserver.port)))

        named.next(NewsKind.SEEN, NewsKind.OPEN)


class TestSilence:
    def test_of_a_watch_ends_ten_seconds_after_the_server_should_have(
        self, apiserver: ApiServer, watcher: Watcher
    ) -> None:
        watcher.next(NewsKind.SEEN, NewsKind.OPEN)
        watcher.now += 249.0
        quiet = watcher.link.step()
        watcher.now += 1.0

        watcher.next(NewsKind.SILENT, NewsKind.OPEN)

        assert quiet == []
        assert apiserver.connections == 2

    def test_never_makes_a_step_wait(self, apiserver: ApiServer, watcher: Watcher) -> None:
        apiserver.at_the_door(Deaf())

        steps = [watcher.link.step() for _ in range(100)]

        assert steps == [[]] * 100
        assert watcher.watch.asking

    def test_is_broken_by_a_look_on_a_new_connection(self, apiserver: ApiServer, watcher: Watcher) -> None:
        apiserver.on("watch", Chunked((), Then.HANG))
        watcher.next(NewsKind.SEEN, NewsKind.OPEN)
        apiserver.world.put(pod("w-0", phase="Failed"))

        watcher.link.look(anew=True)

        assert phases(watcher.next(NewsKind.SEEN, NewsKind.OPEN)) == ["Failed"]
        assert apiserver.connections == 2

    def test_of_a_list_is_not_asked_into_twice(self, apiserver: ApiServer, watcher: Watcher) -> None:
        apiserver.on("list", Silence())
        watcher.until(lambda: apiserver.asked("list"))

        watcher.link.look(anew=True)
        watcher.link.step()

        assert (apiserver.connections, len(apiserver.asked("list"))) == (1, 1)


class TestALesserRole:
    def test_without_watch_polls(self, apiserver: ApiServer, watcher: Watcher) -> None:
        apiserver.rules -= {("watch", "pods")}
        news = watcher.next(NewsKind.SEEN, NewsKind.REFUSED, NewsKind.SEEN, NewsKind.SEEN)
        apiserver.world.delete("w-0")

        watcher.next(NewsKind.GONE)

        assert isinstance(news[1].error, Forbidden)
        assert "must hold watch on pods" in str(news[1].error)
        assert watcher.pauses == [2.25, 2.25]
        assert apiserver.connections == 1
