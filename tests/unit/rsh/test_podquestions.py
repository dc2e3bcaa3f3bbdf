"""When those who ask for the pods of a watch get their answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mpirt.kubeapi.watch.news import News, NewsKind
from mpirt.rsh.watches.podquestions import PodQuestions

if TYPE_CHECKING:
    from mpirt.kubeapi.watch.link import WatchLink

SELECTOR = "app=x"


@dataclass
class Link:
    """A watch that is open, and what may still be read of it."""

    has_more: bool
    opened_at: float = 100.0
    heard_at: float = 110.0

    def look(self, *, anew: bool) -> None: ...


def step(questions: PodQuestions, link: Link, *news: News) -> None:
    """What a hub does in a turn."""
    for each in news:
        questions.take(each)
    questions.answer(cast("WatchLink", link), SELECTOR, 111.0)


def test_an_answer_waits_until_all_that_has_come_is_read() -> None:
    questions, answers = PodQuestions(lambda pod: pod["metadata"]["name"]), list[object]()
    questions.ask((SELECTOR,), answers.append)
    step(questions, Link(has_more=False))
    seen = [News(NewsKind.SEEN, {"metadata": {"name": name}}, name=name) for name in ("w-0", "w-1")]
    step(questions, Link(has_more=False), *seen, News(NewsKind.LISTED, names=frozenset({"w-0", "w-1"})))

    questions.ask((SELECTOR,), answers.append)
    step(questions, Link(has_more=True))
    assert (questions.are_waiting, len(answers)) == (True, 1)
    step(questions, Link(has_more=False), News(NewsKind.GONE, name="w-0"))

    assert answers[1] == ["w-1"]
