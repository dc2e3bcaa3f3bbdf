"""Which selector covers the pods of a job, which pods are kept of a watch, and which selectors they can answer."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.kubeapi.watch.news import News, NewsKind
from mpirt.rsh.pod.jobpods import KeptPods, covers, given_scope, scope_of
from mpirt.rsh.watches.podquestions import keep_all

JOB = "mpirt.dev/job=a"


def seen(name: str, **labels: str) -> News:
    body: dict[str, Any] = {"metadata": {"name": name, "labels": labels}}
    return News(NewsKind.SEEN, body, name=name)


def listed(*names: str) -> News:
    return News(NewsKind.LISTED, names=frozenset(names))


def kept(*news: News, is_wanted: bool = True) -> KeptPods:
    found = KeptPods(keep_all)
    if is_wanted:
        found.want()
    for each in news:
        found.take(each)
    return found


def names(found: KeptPods, watched: str = JOB, *selectors: str) -> list[str]:
    return [pod["metadata"].get("name", "") for pod in found.select(watched, selectors or (watched,))]


class TestPods:
    def test_are_not_kept_until_somebody_wants_them(self) -> None:
        found = kept(seen("w-0"), listed("w-0"), is_wanted=False)

        assert (names(found), found.is_complete) == ([], False)

    def test_are_complete_with_their_list(self) -> None:
        found = kept(seen("w-0"), seen("w-1"))
        assert not found.is_complete
        found.take(listed("w-0", "w-1"))

        assert (names(found), found.is_complete) == (["w-0", "w-1"], True)

    def test_are_not_complete_where_the_list_began_before(self) -> None:
        found = kept(seen("w-1"), listed("w-0", "w-1"))
        assert not found.is_complete

        for news in (seen("w-0"), seen("w-1"), listed("w-0", "w-1")):
            found.take(news)

        assert found.is_complete

    def test_of_an_empty_list_are_none(self) -> None:
        found = kept(listed())

        assert (names(found), found.is_complete) == ([], True)

    def test_that_are_gone_are_dropped(self) -> None:
        found = kept(seen("w-0"), seen("w-1"), seen("w-2"), listed("w-0", "w-1", "w-2"))
        found.take(News(NewsKind.GONE, name="w-0"))
        found.take(News(NewsKind.GONE, name="unknown"))
        assert names(found) == ["w-1", "w-2"]

        found.take(listed("w-2"))

        assert (names(found), found.is_complete) == (["w-2"], True)

    def test_are_as_they_were_told_last(self) -> None:
        found = kept(seen("w-0"), listed("w-0"))
        found.take(seen("w-0", app="x"))

        [pod] = found.select(JOB, (JOB,))
        assert pod["metadata"]["labels"] == {"app": "x"}

    def test_that_may_not_be_listed_any_more_are_dropped(self) -> None:
        found = kept(seen("w-0"), listed("w-0"), News(NewsKind.REFUSED))

        assert (names(found), found.is_complete) == ([], False)

    def test_stay_while_the_server_is_silent(self) -> None:
        found = kept(seen("w-0"), listed("w-0"), News(NewsKind.SILENT), News(NewsKind.OPEN))

        assert (names(found), found.is_complete) == (["w-0"], True)

    def test_without_a_body_are_pods(self) -> None:
        found = kept(News(NewsKind.SEEN, name="w-0"), listed("w-0"))

        assert found.is_complete


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

    def test_finds_by_labels(self) -> None:
        found = kept(
            seen("w-0", job="a", role="w"), seen("w-1", job="a"), seen("w-2", job="b", role="w"), seen("w-3")
        )

        assert names(found, "", "job=a") == ["w-0", "w-1"]
        assert names(found, "", "job=a,role") == ["w-0"]
        assert names(found, "", "role", "job=a") == ["w-0", "w-1", "w-2"]
        assert names(found, "job=a", "job=a,role=w") == ["w-0"]


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
