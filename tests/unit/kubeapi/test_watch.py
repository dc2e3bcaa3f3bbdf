"""A pod's watch without a wire: literal bytes in, news out, a clock that is a number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.answers import ConnectionLost, Forbidden, NotFound, TimedOut
from mpirt.kubeapi.watch.listwatch import PodWatch
from mpirt.kubeapi.watch.news import News, NewsKind, RawEvent, WatchLines
from tests.unit.kubeapi.watches import WATCHING, answer, chunk, event, no
from tests.unit.kubeapi.watches import asked as target

POD: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "w-0", "resourceVersion": "8"}}
LIST = {"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [POD]}


def watch(*, jitter: float = 0.0) -> PodWatch:
    return PodWatch("ml", name="w-0", now=100.0, jitter=lambda: jitter, origin="the test")


def asking(*, jitter: float = 0.0) -> PodWatch:
    """A watch that has asked for its list at 100.0."""
    made = watch(jitter=jitter)
    made.ask(100.0)
    return made


def listed(*, jitter: float = 0.0) -> PodWatch:
    """A watch that has listed its pod at 100.0, as of version 7."""
    made = asking(jitter=jitter)
    made.receive(answer(LIST), 100.0)
    return made


def watching(*, jitter: float = 0.0) -> PodWatch:
    """A watch that the server has begun to answer at 100.0."""
    made = listed(jitter=jitter)
    made.ask(100.0)
    assert made.receive(WATCHING, 100.0) == [News(NewsKind.OPEN)]
    return made


def polling() -> PodWatch:
    """A watch that is allowed to get its pod only, and asks for it."""
    made = asking()
    made.receive(no(403), 100.0)
    made.ask(100.0)
    return made


def seen(kind: NewsKind = NewsKind.SEEN, version: str = "8", asked: float | None = None) -> News:
    return News(kind, POD, name="w-0", version=version, asked=asked)


class TestQuestions:
    def test_the_first_is_a_list_at_once(self) -> None:
        made = watch()

        assert (made.due, made.asking, made.expires, made.interrupt) == (100.0, False, None, None)
        assert target(made, 100.0) == "?fieldSelector=metadata.name%3Dw-0"
        assert (made.asking, made.expires) == (True, 110.0)

    def test_then_a_watch_from_the_lists_version(self) -> None:
        made = asking(jitter=0.5)

        news = made.receive(answer(LIST), 101.0)

        assert news == [seen(version="7", asked=100.0)]
        assert (made.due, made.reusable) == (101.0, True)
        assert target(made, 101.0) == (
            "?watch=true&fieldSelector=metadata.name%3Dw-0&resourceVersion=7&timeoutSeconds=360"
            "&allowWatchBookmarks=true"
        )

    def test_an_empty_list_means_that_the_pod_is_gone(self) -> None:
        made = asking()

        assert made.receive(answer({**LIST, "items": []}), 101.0) == [
            News(NewsKind.GONE, name="w-0", version="7", asked=100.0)
        ]

    def test_nothing_may_be_received_that_was_not_asked_for(self) -> None:
        with pytest.raises(ValueError, match="nothing was asked"):
            watch().receive(b"x", 100.0)


class TestEvents:
    def test_are_news_wherever_the_bytes_are_cut(self) -> None:
        made = watching()
        data = event("ADDED", POD) + event("MODIFIED", POD) + event("DELETED", POD)

        news = [piece for byte in data for piece in made.receive(bytes([byte]), 101.0)]

        assert news == [seen(), seen(), seen(NewsKind.GONE)]

    @pytest.mark.parametrize("kind", ["BOOKMARK", "SOMETHING_NEW"])
    def test_that_say_nothing_of_the_pod_still_say_the_version(self, kind: str) -> None:
        made = watching()

        news = made.receive(event(kind, {"metadata": {"resourceVersion": "9"}}) + chunk(b""), 101.0)

        assert news == []
        assert "resourceVersion=9&" in target(made, 102.0)

    def test_without_a_version_leave_it_as_it_was(self) -> None:
        made = watching()
        made.receive(event("MODIFIED", {"metadata": None}) + chunk(b""), 101.0)

        assert "resourceVersion=7&" in target(made, 102.0)

    def test_prolong_nothing_but_the_answer_itself_does(self) -> None:
        made = listed()
        made.ask(100.0)
        made.receive(WATCHING, 105.0)

        assert made.expires == 105.0 + 240 + 10


class TestTheEnd:
    def test_after_a_while_is_normal_and_spread_out(self) -> None:
        made = watching(jitter=0.5)

        assert made.receive(chunk(b""), 340.0) == []
        assert (made.due, made.reusable, made.asking) == (340.5, True, False)

    def test_at_once_is_met_with_growing_patience(self) -> None:
        made, delays = listed(jitter=1.0), []
        for _ in range(8):
            made.ask(100.0)
            made.receive(WATCHING + chunk(b""), 100.0)
            delays.append(made.due - 100.0)

        assert delays == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]

    def test_of_an_answer_without_a_length_is_the_connections(self) -> None:
        made = listed()
        made.ask(100.0)
        made.receive(b"HTTP/1.1 200 OK\r\n\r\n", 100.0)

        assert made.eof(200.0) == []
        assert (made.due, made.reusable) == (200.0, False)

    def test_in_the_middle_is_a_lost_connection(self) -> None:
        made = watching()

        (news,) = made.eof(101.0)

        assert news.kind is NewsKind.SILENT
        assert isinstance(news.error, ConnectionLost)
        assert str(news.error) == (
            'could not watch pod "w-0" in namespace "ml": the API server closed the connection'
        )

    def test_of_a_connection_without_a_question_is_no_news(self) -> None:
        assert watch().eof(100.0) == []

    def test_that_is_half_an_object_is_an_error(self) -> None:
        made = asking()
        made.receive(b'HTTP/1.1 200 OK\r\n\r\n{"kind": "Pod', 100.0)

        (news,) = made.eof(101.0)

        assert (news.kind, type(news.error)) == (NewsKind.SILENT, PeerError)


class TestTroubles:
    def test_after_one_that_passed_are_met_with_patience_anew(self) -> None:
        made = listed(jitter=1.0)
        for _ in range(5):
            made.ask(100.0)
            made.failed(ConnectionLost("lost"), 100.0)
        made.ask(100.0)
        made.receive(WATCHING + event("MODIFIED", POD), 100.0)

        made.failed(ConnectionLost("lost"), 100.0)

        assert made.due == 100.25

    @pytest.mark.parametrize(("jitter", "due"), [(0.0, 107.0625), (1.0, 107.125)])
    def test_with_a_retry_after_never_come_sooner(self, jitter: float, due: float) -> None:
        made = asking(jitter=jitter)

        (news,) = made.receive(no(429, b"Retry-After: 7\r\n"), 100.0)

        assert (news.kind, made.due, made.reusable) == (NewsKind.SILENT, due, True)

    def test_while_connecting_count_too(self) -> None:
        made = watch()

        error = ConnectionLost("refused")

        assert made.failed(error, 100.0) == [News(NewsKind.SILENT, error=error)]
        assert made.due == 100.125

    def test_of_time_are_named_by_what_was_asked(self) -> None:
        made = asking()
        early = made.tick(109.9)

        (news,) = made.tick(110.0)

        assert early == []
        assert isinstance(news.error, TimedOut)
        assert str(news.error) == 'could not list pods in namespace "ml": no answer within 10 s'
        assert made.tick(200.0) == []

    def test_of_version_mean_a_new_list_and_are_no_news(self) -> None:
        made = watching()

        news = made.receive(event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}), 101.0)

        assert (news, made.reusable) == ([], False)
        assert target(made, 102.0) == "?fieldSelector=metadata.name%3Dw-0"

    def test_of_version_before_the_watch_leave_the_connection_alone(self) -> None:
        made = listed()
        made.ask(100.0)

        assert made.receive(no(410), 101.0) == []
        assert made.reusable

    def test_of_the_servers_own_are_news(self) -> None:
        (news,) = watching().receive(event("ERROR", {"kind": "Status", "code": 500, "message": "etcd"}), 101.0)

        assert str(news.error) == 'could not watch pod "w-0" in namespace "ml": the API server failed (500): etcd'


class TestALesserRole:
    def test_polls_the_pod(self) -> None:
        made = asking(jitter=1.0)
        (refused,) = made.receive(no(403), 100.0)

        assert (refused.kind, type(refused.error), made.due) == (NewsKind.REFUSED, Forbidden, 100.0)
        assert target(made, 100.0) == "/w-0"
        assert made.receive(answer(POD), 101.0) == [seen(version="", asked=100.0)]
        assert made.due == 104.75

    def test_learns_from_404_that_the_pod_is_gone(self) -> None:
        made = polling()

        assert made.receive(no(404), 101.0) == [News(NewsKind.GONE, name="w-0", asked=100.0)]
        assert made.due == 103.25

    def test_learns_nothing_from_a_404_that_is_not_the_api_servers(self) -> None:
        made = polling()

        (news,) = made.receive(b"HTTP/1.1 404 x\r\nContent-Length: 15\r\n\r\ndefault backend", 101.0)

        assert news.kind is NewsKind.SILENT

    def test_is_asked_for_watch_again_after_a_minute(self) -> None:
        made = watching()
        made.tick(1000.0)
        made.ask(1000.0)
        made.receive(no(403), 1000.0)

        targets = []
        for moment in (1000.0, 1059.9, 1060.0):
            targets.append(target(made, moment))
            made.receive(answer(POD), moment)

        assert targets == ["/w-0", "/w-0", "?fieldSelector=metadata.name%3Dw-0"]

    def test_that_holds_nothing_is_tried_again_from_the_start(self) -> None:
        made = watch()
        for _ in range(2):
            made.ask(100.0)
            made.receive(no(403), 100.0)

        assert made.due == 130.0
        assert target(made, 130.0) == "?fieldSelector=metadata.name%3Dw-0"

    def test_has_no_meaning_for_a_404_to_a_list(self) -> None:
        made = asking()

        (news,) = made.receive(no(404), 101.0)

        assert (news.kind, type(news.error)) == (NewsKind.SILENT, NotFound)


class TestALook:
    def test_reads_the_pod_anew_on_another_connection(self) -> None:
        made = watching()

        made.look(101.0)

        assert (made.asking, made.reusable, made.due) == (False, False, 101.0)
        assert target(made, 101.0) == "?fieldSelector=metadata.name%3Dw-0"

    def test_waits_for_the_answer_that_is_on_its_way(self) -> None:
        made = asking()

        made.look(101.0)

        assert (made.asking, made.expires) == (True, 110.0)

    def test_does_not_wait_for_a_pause(self) -> None:
        made = asking()
        made.failed(ConnectionLost("lost"), 100.0)

        made.look(100.0)

        assert made.due == 100.0


class TestAHurry:
    def test_asks_again_and_again_where_polling_is_all(self) -> None:
        made = polling()
        made.receive(answer(POD), 100.0)

        made.hurry(101.0)

        assert made.due == 101.0
        made.ask(101.0)
        made.receive(answer(POD), 101.0)
        assert made.due == pytest.approx(101.15)

    def test_leaves_a_watch_alone(self) -> None:
        made = watching()

        made.hurry(101.0)

        assert (made.asking, made.reusable) == (True, True)

    def test_lets_the_answer_come_that_is_on_its_way_and_asks_again_after_it(self) -> None:
        made = polling()

        made.hurry(100.5)
        made.receive(answer(POD), 101.0)

        assert made.due == pytest.approx(101.15)


class TestLines:
    def test_are_events(self) -> None:
        lines = WatchLines()

        first = lines.feed(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"5"}}}\n\r\n{"type":')
        second = lines.feed(b'"ERROR","object":{}}\n')

        assert first == [RawEvent("ADDED", {"metadata": {"resourceVersion": "5"}})]
        assert [raw.resource_version for raw in first + second] == ["5", ""]

    @pytest.mark.parametrize(
        "line",
        [b"{", b"[]", b'{"type":1,"object":{}}', b'{"type":"ADDED","object":[]}', b'"x"', b"\xff", b"[" * 9999],
    )
    def test_that_are_none_are_the_peers_error(self, line: bytes) -> None:
        with pytest.raises(PeerError, match="an event of the watch"):
            WatchLines().feed(line + b"\n")

    def test_are_bounded(self) -> None:
        lines = WatchLines(limit=10)
        lines.feed(b"x" * 10)

        with pytest.raises(PeerError, match="longer than 10 bytes"):
            lines.feed(b"x")

    def test_of_the_largest_object_are_not_searched_again_and_again(self) -> None:
        lines = WatchLines()
        body = json.dumps({"type": "ADDED", "object": {"x": "y" * 3_000_000}}).encode() + b"\n"

        events = [found for start in range(0, len(body), 1000) for found in lines.feed(body[start : start + 1000])]

        assert len(events) == 1


class TestASharedPace:
    def test_makes_polls_rarer(self) -> None:
        made = PodWatch("ml", name="w-0", now=100.0, jitter=lambda: 0.5, origin="the test", slowest=lambda: 20.0)
        made.ask(100.0)
        made.receive(no(403), 100.0)
        made.ask(100.0)

        made.receive(answer(POD), 100.0)

        assert made.due == 120.0

    def test_makes_attempts_to_watch_rarer(self) -> None:
        made = PodWatch("ml", name="w-0", now=100.0, jitter=lambda: 0.5, origin="the test", slowest=lambda: 20.0)
        made.ask(100.0)
        made.receive(no(403), 100.0)

        assert target(made, 299.0) == "/w-0"
        made.receive(answer(POD), 299.0)
        assert target(made, 300.0) == "?fieldSelector=metadata.name%3Dw-0"
