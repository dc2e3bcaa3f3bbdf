"""Which selector covers the pods of a job, and which pods a watch gives to those who ask, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest

from mpirt.kubeapi.watch.news import News, NewsKind
from mpirt.rsh.watches.jobpods import NotKnown, PodQuestions, covers, given_scope, scope_of

if TYPE_CHECKING:
    from mpirt.kubeapi.watch.link import WatchLink

JOB = "mpirt.dev/job=a"
FIRST = "the pods are being listed for the first time"


@dataclass
class Link:
    """A watch that is open, and what may still be read of it."""

    has_more: bool = False
    opened_at: float = 100.0
    heard_at: float = 110.0
    is_made_anew: bool = False

    def look(self, *, anew: bool) -> None:
        self.is_made_anew = anew


class Watched:
    """Questions about the pods of a watch, and what is kept of these: their names."""

    def __init__(self, *news: News, is_asked: bool = True) -> None:
        """The first question has been asked before all news, or not."""
        self.questions = PodQuestions()
        if is_asked:
            assert self.ask() == FIRST
        self.take(*news)

    def take(self, *news: News) -> None:
        for each in news:
            self.questions.take(each)

    def ask(self, *selectors: str, watched: str = JOB) -> list[str] | str:
        """The names, or why they are not known."""
        answers: list[Sequence[Any] | NotKnown] = []
        self.questions.ask(
            selectors or (watched,), lambda pod: pod.get("metadata", {}).get("name"), answers.append
        )
        self.questions.answer(cast("WatchLink", Link()), watched, 111.0)
        [found] = answers
        return str(found) if isinstance(found, NotKnown) else list(found)


def name_of(pod: Any) -> Any:
    return pod.get("metadata", {}).get("name")


def seen(name: str, **labels: str) -> News:
    return News(NewsKind.SEEN, {"metadata": {"name": name, "labels": labels}}, name=name)


def listed(*names: str) -> News:
    return News(NewsKind.LISTED, names=frozenset(names))


def gone(name: str) -> News:
    return News(NewsKind.GONE, name=name)


class TestPods:
    @pytest.mark.parametrize(
        ("news", "found"),
        [
            pytest.param([seen("w-0"), seen("w-1")], FIRST, id="not complete without their list"),
            pytest.param([seen("w-0"), seen("w-1"), listed("w-0", "w-1")], ["w-0", "w-1"], id="complete with it"),
            pytest.param([seen("w-1"), listed("w-0", "w-1")], FIRST, id="of a list that began before"),
            pytest.param(
                [seen("w-1"), listed("w-0", "w-1"), seen("w-0"), listed("w-0", "w-1")],
                ["w-1", "w-0"],
                id="of the next list",
            ),
            pytest.param([listed()], [], id="of an empty list"),
            pytest.param(
                [seen("w-0"), seen("w-1"), listed("w-0", "w-1"), gone("w-0"), gone("x")], ["w-1"], id="one is gone"
            ),
            pytest.param(
                [seen("w-0"), seen("w-1"), listed("w-0", "w-1"), listed("w-1")], ["w-1"], id="one is not listed"
            ),
            pytest.param([seen("w-0"), listed("w-0"), News(NewsKind.REFUSED)], FIRST, id="no list allowed"),
            pytest.param(
                [seen("w-0"), listed("w-0"), News(NewsKind.SILENT), News(NewsKind.OPEN)],
                ["w-0"],
                id="silence",
            ),
            pytest.param([News(NewsKind.SEEN, name="w-0"), listed("w-0")], [None], id="without a body"),
        ],
    )
    def test_are_given_if_all_are_known(self, news: list[News], found: object) -> None:
        assert Watched(*news).ask() == found

    def test_are_not_kept_until_the_first_question(self) -> None:
        watched = Watched(seen("w-0"), listed("w-0"), is_asked=False)

        assert watched.ask() == FIRST
        watched.take(listed("w-0"))
        assert watched.ask() == FIRST

    def test_have_their_latest_labels(self) -> None:
        watched = Watched(seen("w-0"), listed("w-0"))
        assert watched.ask("app=x", watched="") == []
        watched.take(seen("w-0", app="x"))

        assert watched.ask("app=x", watched="") == ["w-0"]

    def test_are_given_once_all_that_has_come_is_read(self) -> None:
        watched, answers = Watched(seen("w-0"), seen("w-1"), listed("w-0", "w-1")), list[object]()
        questions = watched.questions
        questions.ask((JOB,), dict, answers.append)
        questions.answer(cast("WatchLink", Link(has_more=True)), JOB, 111.0)
        assert (questions.are_waiting, answers) == (True, [])
        watched.take(gone("w-0"))
        questions.answer(cast("WatchLink", Link()), JOB, 111.0)

        assert answers == [["w-1"]]

    @pytest.mark.parametrize(
        ("link", "why"),
        [
            pytest.param(None, "the watch on the pods is not open at the moment", id="none"),
            pytest.param(Link(heard_at=20.0), "the API server has not sent anything for 91 s", id="silent"),
            pytest.param(Link(opened_at=110.9), "the watch on the pods has just begun", id="new"),
        ],
    )
    def test_are_not_given_from_a_doubtful_watch(self, link: Link | None, why: str) -> None:
        watched, answers = Watched(listed()), list[object]()
        watched.questions.ask((JOB,), dict, answers.append)
        watched.questions.answer(cast("WatchLink | None", link), JOB, 111.0)

        assert list(map(str, answers)) == [why]
        assert link is None or link.is_made_anew == (link.heard_at == 20.0)

    def test_are_not_known_once_none_is_followed(self) -> None:
        watched, answers = Watched(listed()), list[object]()
        watched.questions.ask((JOB,), dict, answers.append)
        watched.questions.end()

        assert list(map(str, answers)) == ["no command runs in these pods any more"]
        assert watched.ask() == FIRST


class TestASelector:
    @pytest.mark.parametrize(
        ("watched", "selector"),
        [
            (JOB, JOB),
            ("a in (b, c)", "a in (b, c)"),
            (JOB, f"app=x,{JOB}"),
            ("app", "app,role=w"),
            ("", "app=x"),
            ("", "statefulset.kubernetes.io/pod-name"),
            ("", "a.b-c.d/E_f.g=H_i.j-k,l=m"),
        ],
    )
    def test_is_covered_by_some_of_its_terms(self, watched: str, selector: str) -> None:
        assert covers(watched, (selector,))

    @pytest.mark.parametrize(
        ("watched", "selector"),
        [
            (JOB, "mpirt.dev/job=b"),
            (JOB, "app=x"),
            (f"app=x,{JOB}", JOB),
            ("app=x", "app"),
            ("app", "app=x"),
            ("a in (b)", "a in (b),c=d"),
            ("a=b", "a=b,c!=d"),
            ("a=b", "a=b,c in (d)"),
            ("a=b", "a=b,a=c"),
            ("a=b", "a=b,"),
            ("a=b", "a=b, c=d"),
            ("a=b", "a=b,c="),
            ("a=b", "a=b,c==d"),
            ("a=b", "a=b,c=d/e"),
            ("a=b", "a=b,-c=d"),
            ("a=b", "a=b,in=d"),
            ("", "notin"),
        ],
    )
    def test_of_any_other_kind_is_not(self, watched: str, selector: str) -> None:
        assert not covers(watched, (selector,))

    def test_is_covered_with_all_others_or_not_at_all(self) -> None:
        assert covers(JOB, (JOB, f"app=x,{JOB}"))
        assert not covers(JOB, (JOB, "mpi-job-name=a"))
        assert not covers(JOB, ())

    @pytest.mark.parametrize(
        ("watched", "selectors", "found"),
        [
            ("", ["job=a"], ["w-0", "w-1"]),
            ("", ["job=a,role"], ["w-0"]),
            ("", ["role", "job=a"], ["w-0", "w-1", "w-2"]),
            ("job=a", ["job=a,role=w"], ["w-0"]),
        ],
    )
    def test_finds_by_labels(self, watched: str, selectors: list[str], found: list[str]) -> None:
        pods = seen("w-0", job="a", role="w"), seen("w-1", job="a"), seen("w-2", job="b", role="w"), seen("w-3")

        assert Watched(*pods, listed(*(pod.name for pod in pods))).ask(*selectors, watched=watched) == found


@pytest.mark.parametrize(
    ("labels", "selector"),
    [
        ({"mpirt.dev/job": "a", "job-name": "b"}, "mpirt.dev/job=a"),
        ({"training.kubeflow.org/job-name": "a", "app": "x"}, "training.kubeflow.org/job-name=a"),
        ({"mpi-job-name": "a"}, "mpi-job-name=a"),
        (
            {"batch.kubernetes.io/job-name": "a-workers-0", "jobset.sigs.k8s.io/jobset-name": "a"},
            "jobset.sigs.k8s.io/jobset-name=a",
        ),
        ({"batch.kubernetes.io/job-name": "a", "job-name": "a"}, "batch.kubernetes.io/job-name=a"),
        ({"job-name": "a"}, "job-name=a"),
        ({"app": "x"}, ""),
        ({}, ""),
    ],
)
def test_a_pod_names_its_job(labels: dict[str, str], selector: str) -> None:
    assert scope_of({"metadata": {"labels": labels}}) == selector


@pytest.mark.parametrize(
    ("environ", "selector"),
    [({"MPIRT_SELECTOR": " app=x "}, "app=x"), ({"MPIRT_SELECTOR": " "}, None), ({"MPIRT_JOB": "a"}, None)],
)
def test_the_environment_may_name_the_selector(environ: dict[str, str], selector: str | None) -> None:
    assert given_scope(environ) == selector
