"""The watch of many pods without a wire: literal bytes in, news out, a clock that is a number."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.answers import ConnectionLost
from mpirt.kubeapi.watch.listwatch import PodWatch
from mpirt.kubeapi.watch.news import News, NewsKind
from tests.unit.kubeapi.watches import WATCHING, answer, asked, event, no

FIRST = "?labelSelector=job%3Da&limit=250"
WATCH = "?watch=true&labelSelector=job%3Da&resourceVersion={}&timeoutSeconds=240&allowWatchBookmarks=true"


def pods(*, labels: str = "job=a", jitter: float = 0.0) -> PodWatch:
    return PodWatch("ml", labels=labels, now=100.0, jitter=lambda: jitter, origin="the test")


def pod(name: str, version: int = 5) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def page(*names: str, version: int = 7, after: str = "") -> bytes:
    metadata = {"resourceVersion": str(version), "continue": after}
    return answer({"kind": "PodList", "metadata": metadata, "items": [pod(name) for name in names]})


def told(news: list[News]) -> list[tuple[NewsKind, str, str]]:
    return [(piece.kind, piece.name, piece.version) for piece in news]


def listed(*names: str, jitter: float = 0.0) -> PodWatch:
    """One that has listed these at 100.0."""
    made = pods(jitter=jitter)
    made.ask(100.0)
    made.receive(page(*names), 100.0)
    return made


def halfway(*, jitter: float = 0.0) -> PodWatch:
    """One that has a page with "a" and asks for the next one."""
    made = pods(jitter=jitter)
    made.ask(100.0)
    made.receive(page("a", after="t"), 100.0)
    made.ask(100.0)
    return made


def watching(*names: str) -> PodWatch:
    """One whose watch has begun at 100.0."""
    made = listed(*names)
    made.ask(100.0)
    assert made.receive(WATCHING, 100.0) == [News(NewsKind.OPEN)]
    return made


class TestTheList:
    def test_is_as_old_as_the_question_for_its_first_page(self) -> None:
        made = pods()
        made.ask(100.0)
        news = made.receive(page("w-0", after="t/1"), 101.0)
        made.ask(102.0)
        news += made.receive(page("w-1"), 103.0)

        assert [piece.asked for piece in news] == [100.0, 100.0, 100.0]

    def test_comes_in_pages(self) -> None:
        made = pods()

        first = asked(made, 100.0)
        news = made.receive(page("a", "b", after="t/1"), 101.0)
        assert (first, told(news), made.due) == (
            FIRST,
            [(NewsKind.SEEN, "a", "7"), (NewsKind.SEEN, "b", "7")],
            101.0,
        )

        second = asked(made, 101.0)
        news = made.receive(page("c", version=9), 102.0)
        assert second == f"{FIRST}&continue=t%2F1"
        assert told(news) == [(NewsKind.SEEN, "c", "7"), (NewsKind.LISTED, "", "7")]
        assert (news[0].pod, news[1].names) == (pod("c"), frozenset("abc"))

    def test_is_of_all_pods_without_labels(self) -> None:
        assert asked(pods(labels=""), 100.0) == "?limit=250"

    def test_is_watched_from_its_version(self) -> None:
        assert asked(listed("a"), 100.0) == WATCH.format(7)

    def test_that_is_empty_is_one(self) -> None:
        made = pods()
        made.ask(100.0)

        assert told(made.receive(page(), 100.0)) == [(NewsKind.LISTED, "", "7")]

    def test_begins_anew_when_its_token_expires(self) -> None:
        made = halfway(jitter=1.0)

        assert made.receive(no(410), 101.0) == []
        assert (made.due, asked(made, 102.0)) == (101.25, FIRST)
        assert made.receive(page("b"), 102.0)[-1].names == frozenset("b")

    def test_whose_tokens_expire_again_and_again_is_news(self) -> None:
        made, news = pods(), []
        for _ in range(6):
            made.ask(100.0)
            made.receive(page("a", after="t"), 100.0)
            made.ask(100.0)
            news.append([piece.kind for piece in made.receive(no(410), 100.0)])

        assert news == [[]] * 5 + [[NewsKind.SILENT]]

    def test_that_goes_round_in_a_circle_begins_anew(self) -> None:
        made = halfway()

        (news,) = made.receive(page("b", after="t"), 100.0)

        assert (news.kind, type(news.error)) == (NewsKind.SILENT, PeerError)
        assert asked(made, 101.0) == FIRST

    def test_goes_on_with_the_page_that_was_lost(self) -> None:
        made = halfway()

        (news,) = made.failed(ConnectionLost("lost"), 101.0)

        assert news.kind is NewsKind.SILENT
        assert asked(made, 102.0) == f"{FIRST}&continue=t"
        assert made.receive(page("b"), 102.0)[-1].names == frozenset("ab")


class TestEvents:
    def test_name_the_pod_and_say_as_of_when(self) -> None:
        made = watching("a")

        news = made.receive(event("MODIFIED", pod("a", 8)) + event("DELETED", pod("b", 9)), 101.0)

        assert told(news) == [(NewsKind.SEEN, "a", "8"), (NewsKind.GONE, "b", "9")]
        assert news[1].pod == pod("b", 9)

    def test_that_are_bookmarks_say_where_to_go_on(self) -> None:
        made = watching("a")

        assert made.receive(event("BOOKMARK", pod("", 12)), 101.0) == []
        (news,) = made.eof(200.0)
        assert (news.kind, asked(made, 201.0)) == (NewsKind.SILENT, WATCH.format(12))
        assert made.version == "12"


class TestARefusal:
    @pytest.mark.parametrize("status", [403, 400])
    def test_of_the_list_is_tried_again_after_a_minute(self, status: int) -> None:
        made = pods(jitter=1.0)
        made.ask(100.0)

        (news,) = made.receive(no(status), 100.0)

        assert (news.kind, made.due) == (NewsKind.REFUSED, 175.0)

    def test_of_the_watch_means_a_new_list_after_a_minute(self) -> None:
        made = listed("a")
        made.ask(100.0)

        (news,) = made.receive(no(403), 100.0)

        assert (news.kind, made.due, asked(made, 160.0)) == (NewsKind.REFUSED, 160.0, FIRST)

    def test_of_a_token_begins_the_list_anew(self) -> None:
        made = halfway()

        (news,) = made.receive(no(400), 100.0)

        assert (news.kind, asked(made, 101.0)) == (NewsKind.SILENT, FIRST)


class TestALook:
    def test_lists_anew_on_another_connection(self) -> None:
        made = watching("a")

        made.look(101.0)

        assert (made.asking, made.reusable, made.due, made.interrupt) == (False, False, 101.0, None)
        assert asked(made, 101.0) == FIRST

    def test_that_follows_another_within_a_second_is_put_off(self) -> None:
        made = watching("a")
        made.look(101.0)
        made.ask(101.0)
        made.receive(page("a"), 101.1)
        made.ask(101.1)
        made.receive(WATCHING, 101.1)

        made.look(101.3)
        made.look(101.6)

        assert (made.asking, made.interrupt) == (True, 102.0)
        assert (made.tick(101.9), made.asking) == ([], True)
        assert (made.tick(102.0), made.asking, made.reusable) == ([], False, False)
        assert (made.interrupt, asked(made, 102.0)) == (None, FIRST)

    def test_that_comes_before_the_list_has_begun_is_answered_by_it(self) -> None:
        made = watching("a")
        made.look(101.0)
        made.look(101.0)

        made.ask(101.0)
        made.receive(page("a"), 101.0)

        assert made.interrupt is None
        assert asked(made, 101.0) == WATCH.format(7)

    def test_during_a_list_is_answered_by_the_next(self) -> None:
        made = pods()
        made.ask(100.0)
        made.receive(page("a", after="t"), 100.0)
        made.look(100.5)
        made.ask(100.5)
        assert made.interrupt is None

        made.receive(page("b"), 101.0)

        assert made.interrupt == 100.5
        assert (made.tick(101.0), asked(made, 101.0)) == ([], FIRST)

    def test_during_a_list_that_fails_is_answered_by_one_from_the_start(self) -> None:
        made = halfway()
        made.look(100.5)

        made.failed(ConnectionLost("lost"), 100.6)

        assert (asked(made, 101.0), made.interrupt) == (FIRST, None)

    def test_that_was_put_off_makes_the_end_of_the_watch_no_news(self) -> None:
        made = watching("a")
        made.look(101.0)
        made.ask(101.0)
        made.receive(page("a"), 101.0)
        made.ask(101.0)
        made.receive(WATCHING, 101.0)
        made.look(101.5)

        assert made.eof(101.6) == []
        assert (made.due, asked(made, 102.0), made.interrupt) == (102.0, FIRST, None)
