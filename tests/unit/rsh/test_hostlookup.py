"""Which pod a host name means where no pod has that name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from mpirt.errors import NoPod, Refused
from mpirt.kubeapi.access.steps import Deadline, run
from mpirt.kubeapi.request.answers import Failure, Forbidden, JsonObject, NotFound, TimedOut
from mpirt.rsh.pod.lookup import (
    Ambiguous,
    Candidate,
    HostName,
    Question,
    choose,
    find_pod,
    questions,
    read_candidate,
)

if TYPE_CHECKING:
    from mpirt.kubeapi.access.steps import Steps

LIVING = "status.phase!=Failed,status.phase!=Succeeded"


def body(name: str, **more: Any) -> JsonObject:
    """A pod that runs, as Jobs make them; `job`, `index` and what else a test is about."""
    labels = {f"batch.kubernetes.io/{key}": more[word] for key, word in LABELS.items() if word in more}
    annotations = {"batch.kubernetes.io/job-completion-index": more["noted"]} if "noted" in more else {}
    metadata: dict[str, object] = {"name": name, "labels": labels, "annotations": annotations}
    if more.get("deleting"):
        metadata["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    spec = {key: more[key] for key in ("hostname", "subdomain") if key in more}
    addresses = more.get("addresses", ("10.0.0.7",))
    status = {
        "phase": more.get("phase", "Running"),
        "podIP": addresses[0] if addresses else "",
        "podIPs": [{"ip": address} for address in addresses],
    }
    return {"metadata": metadata, "spec": spec, "status": status}


LABELS = {"job-name": "job", "job-completion-index": "index"}


def candidate(name: str, **more: Any) -> Candidate:
    return read_candidate(body(name, **more))


class Lists:
    """An API server's lists, one for each question, in the order in which they are asked."""

    def __init__(self, *answers: Sequence[JsonObject] | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, str]] = []

    def __call__(
        self, namespace: str, keep: Any, _deadline: Deadline, *, labels: str, fields: str
    ) -> Steps[list[Any]]:
        yield from ()
        assert namespace == "ml"
        self.asked.append((labels, fields))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [keep(item) for item in answer]


def find(host: str, *answers: Sequence[JsonObject] | Exception, service: str = "") -> tuple[str, Lists]:
    lists = Lists(*answers)
    return run(find_pod(lists, "ml", host, Deadline(1.0), service=service)), lists


class TestWhatIsAsked:
    def test_a_pod_of_an_indexed_job_by_its_labels_and_then_all_that_live(self) -> None:
        assert questions("train-node-0-12") == (
            Question(
                labels="batch.kubernetes.io/job-name=train-node-0,batch.kubernetes.io/job-completion-index=12"
            ),
            Question(fields=LIVING),
        )

    @pytest.mark.parametrize("host", ["master", "a-b", "-1", "a-01", "a-1x"])
    def test_a_name_that_no_job_gives_is_looked_for_among_all_that_live(self, host: str) -> None:
        assert questions(host) == (Question(fields=LIVING),)

    @pytest.mark.parametrize(("host", "address"), [("10.0.0.7", "10.0.0.7"), ("FD00:0:0::07", "fd00::7")])
    def test_an_address_by_the_field_that_has_it_and_then_all_that_live(self, host: str, address: str) -> None:
        assert questions(host) == (Question(fields=f"status.podIP={address}"), Question(fields=LIVING))


def old_style() -> JsonObject:
    """A pod of a Job as Kubernetes up to 1.26 labels it."""
    old = body("train-1-x", noted="1")
    old["metadata"]["labels"] = {"job-name": "train"}  # type: ignore[index]  # as body() makes it
    return old


ONE, TWO = (body(name, hostname="master", subdomain=name) for name in ("one", "two"))
FOUR = body("four", addresses=("10.0.0.8",))
DUAL = body("dual", addresses=("10.0.0.7", ":", "fd00::7"))
# fmt: off
MATCHES: dict[str, tuple[str, str, list[JsonObject], str]] = {
    "the pod with the job's index":
        ("train-1", "", [body("a", job="train", index="0"), body("b", job="train", index="1")], "b"),
    "an older Kubernetes notes the index":
        ("train-1", "", [body("a", job="train", noted="0"), body("b", job="train", noted="1")], "b"),
    "a still older one has a label without a prefix": ("train-1", "", [old_style()], "train-1-x"),
    "only the name or the index is right":
        ("train-1", "", [body("a", job="train", index="2"), body("b", job="other", index="1")], ""),
    "else the pod with that host name":
        ("master", "", [ONE, body("b", hostname="worker")], "one"),
    "a service tells host names apart": ("master", "two", [ONE, TWO], "two"),
    "a service that none has": ("master", "three", [ONE, TWO], ""),
    "the job's index goes before a host name":
        ("train-1", "", [body("a", hostname="train-1"), body("b", job="train", index="1")], "b"),
    "any of its addresses": ("fd00::7", "", [FOUR, DUAL], "dual"),
    "an address in another form": ("FD00:0:0::7", "", [FOUR, DUAL], "dual"),
    "its first address": ("10.0.0.7", "", [FOUR, DUAL], "dual"),
    "the only address that it tells":
        ("10.0.0.7", "", [{**body("a"), "status": {"phase": "Running", "podIP": "10.0.0.7"}}], "a"),
    "an address that is empty is none": ("10.0.0.7", "", [body("a", addresses=())], ""),
    **{f"not one that is {dead}":
       ("train-0", "", [body("old", job="train", index="0", **dead), body("new", job="train", index="0")], "new")
       for dead in ({"phase": "Failed"}, {"phase": "Succeeded"}, {"deleting": True})},
    "one that begins": ("train-0", "", [body("a", job="train", index="0", phase="Pending")], "a"),
}
# fmt: on


class TestTheChoice:
    @pytest.mark.parametrize(("host", "service", "found", "name"), MATCHES.values(), ids=MATCHES)
    def test_the_pod_is_chosen_that_is_meant(
        self, host: str, service: str, found: list[JsonObject], name: str
    ) -> None:
        assert choose(host, [read_candidate(pod) for pod in found], service=service) == name

    def test_of_several_none_is_chosen(self) -> None:
        pods = [candidate(name, hostname="master") for name in ("b", "a")]

        with pytest.raises(Ambiguous) as caught:
            choose("master", pods)

        assert str(caught.value) == "host master may be any of the pods a, b; name the pod that is meant"

    def test_of_many_not_all_are_named(self) -> None:
        pods = [candidate(f"p-{number}", addresses=("10.0.0.7",)) for number in range(9)]

        with pytest.raises(Ambiguous, match="any of the pods p-0, p-1, p-2, p-3, p-4 and 4 others;"):
            choose("10.0.0.7", pods)


DEAD = (
    'no pod in namespace "ml" that lives has the host name train-0: '
    "train-0-a is being deleted, train-0-b is Failed"
)


class TestALookUp:
    def test_a_look_up_ends_with_the_first_answer_that_names_a_pod(self) -> None:
        found, lists = find("train-0", [body("train-0-x", job="train", index="0")])

        assert found == "train-0-x"
        assert lists.asked == [
            ("batch.kubernetes.io/job-name=train,batch.kubernetes.io/job-completion-index=0", "")
        ]

    def test_a_look_up_goes_on_with_all_that_live(self) -> None:
        found, lists = find("train-0", [], [body("a"), body("b", hostname="train-0", subdomain="s")], service="s")

        assert found == "b"
        assert lists.asked[1:] == [("", LIVING)]

    @pytest.mark.parametrize(
        ("host", "first", "line"),
        [
            ("train-0", [], 'no pod in namespace "ml" has the host name train-0'),
            ("10.0.0.9", [], 'no pod in namespace "ml" has the address 10.0.0.9'),
            (
                "train-0",
                [
                    body("train-0-b", job="train", index="0", phase="Failed"),
                    body("train-0-a", job="train", index="0", deleting=True),
                ],
                DEAD,
            ),
        ],
        ids=["a host name", "an address", "only dead pods have it"],
    )
    def test_a_look_up_that_finds_no_pod_says_so(self, host: str, first: list[JsonObject], line: str) -> None:
        with pytest.raises(NoPod) as caught:
            find(host, first, [body("a")])

        assert str(caught.value) == line

    def test_a_look_up_that_is_not_allowed_says_what_is_missing(self) -> None:
        said = 'may not list pods in namespace "ml": the Role in namespace "ml" must hold list on pods'
        refusal = Forbidden(said, Failure(403, "", "", None, is_status=True))

        with pytest.raises(NoPod) as caught:
            find("train-0", refusal)

        assert str(caught.value) == f"the host name train-0 can't be looked up: {said}"
        assert not isinstance(caught.value, Refused)


UNKNOWN = NotFound('could not exec (404): pods "train-0" not found', Failure(404, "", "", None, is_status=True))


class TestAHostName:
    """What becomes of an exec's 404."""

    def test_a_host_name_is_looked_up_for_the_first_that_comes(self) -> None:
        lists = Lists([body("train-0-x", job="train", index="0")])

        assert run(HostName(lists, "ml", "train-0").pod(UNKNOWN)) == "train-0-x"

    def test_a_host_name_is_looked_up_with_its_service(self) -> None:
        lists = Lists([body(service, hostname="master", subdomain=service) for service in ("one", "two")])

        assert run(HostName(lists, "ml", "master", service="two").pod(UNKNOWN)) == "two"

    def test_a_host_name_is_looked_up_once_and_what_came_of_it_is_said_each_time(self) -> None:
        lists = Lists([], [])
        name = HostName(lists, "ml", "train-0")

        for _ in range(2):
            with pytest.raises(NotFound) as caught:
                run(name.pod(UNKNOWN))
            assert str(caught.value) == f'{UNKNOWN}; no pod in namespace "ml" has the host name train-0'
            assert caught.value.failure is UNKNOWN.failure
        assert len(lists.asked) == 2

    def test_a_host_name_of_a_pod_that_was_found_and_is_gone_is_not_looked_up_again(self) -> None:
        name = HostName(Lists([body("train-0-x", job="train", index="0")]), "ml", "train-0")
        run(name.pod(UNKNOWN))

        with pytest.raises(NotFound) as caught:
            run(name.pod(UNKNOWN))

        assert caught.value is UNKNOWN

    def test_a_host_name_of_several_pods_is_no_404(self) -> None:
        lists = Lists([body(name, hostname="master") for name in ("a", "b")])

        with pytest.raises(Ambiguous):
            run(HostName(lists, "ml", "master").pod(UNKNOWN))

    def test_a_host_name_is_looked_up_again_where_there_was_no_answer(self) -> None:
        name = HostName(Lists(TimedOut("no answer"), [body("x", job="train", index="0")]), "ml", "train-0")
        with pytest.raises(NotFound) as caught:
            run(name.pod(UNKNOWN))
        assert caught.value is UNKNOWN

        assert run(name.pod(UNKNOWN)) == "x"
