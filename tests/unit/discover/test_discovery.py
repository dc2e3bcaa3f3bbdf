"""Which pods are hosts, in which order, with how many slots, and why the others are not."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.discover.discovery import Criteria, Found, LeftOut, Pod, discover
from mpirt.errors import SpecError
from mpirt.hosts import Host
from tests.unit.discover.pods import WORKERS, condition, labelled, owned, pod

ANY = Criteria()


def found(*pods: Pod, criteria: Criteria = ANY) -> Found:
    return discover(pods, criteria, asked="--job train")


def names(result: Found) -> list[str]:
    return [host.name for host in result.hosts]


class TestTheOrder:
    def test_is_that_of_the_numbers(self) -> None:
        pods = [pod(f"w-{number}") for number in (10, 2, 1, 11, 0)]

        assert names(found(*pods)) == ["w-0", "w-1", "w-2", "w-10", "w-11"]

    def test_of_names_without_numbers_is_that_of_the_alphabet(self) -> None:
        assert names(found(pod("b"), pod("a-1"), pod("a"))) == ["a", "a-1", "b"]


class TestAHost:
    @pytest.mark.parametrize(
        ("different", "reason"),
        [
            pytest.param({"conditions": []}, "not Ready", id="not Ready"),
            pytest.param({"metadata": {"deletionTimestamp": "now"}}, "being deleted", id="being deleted"),
            ({"metadata": {"annotations": {"mpirt.dev/draining": "true"}}}, "draining (mpirt.dev/draining)"),
            pytest.param(
                {"conditions": [condition("Ready"), condition("DisruptionTarget", reason="TaintManager")]},
                "about to be disrupted (TaintManager)",
                id="its node is drained",
            ),
        ],
    )
    def test_is_none_of_these(self, different: dict[str, Any], reason: str) -> None:
        result = found(pod("w-0"), pod("w-1", **different))

        assert names(result) == ["w-0"]
        assert result.left_out == (LeftOut("w-1", reason),)
        assert str(result.left_out[0]) == f"w-1: {reason}"

    def test_has_the_revision_that_was_asked_for(self) -> None:
        old, new = (
            labelled("w-0", controller_revision_hash="w-1a"),
            labelled("w-1", controller_revision_hash="w-2b"),
        )

        result = found(old, new, pod("w-2"), criteria=Criteria(revision="w-2b"))

        assert names(result) == ["w-1"]
        assert result.left_out == (LeftOut("w-0", "of revision w-1a"), LeftOut("w-2", "of revision none"))

    @pytest.mark.parametrize("label", ["mpirt.dev__role", "training.kubeflow.org__job_role", "mpi_job_role"])
    def test_is_never_a_launcher(self, label: str) -> None:
        launcher = labelled("train-launcher", **{label: "launcher"})

        assert found(launcher, labelled("w-0", **{label: "worker"})) == Found((Host("w-0", 1),), ())

    def test_is_not_the_pod_that_asks(self) -> None:
        assert names(found(pod("w-0"), pod("launch"), criteria=Criteria(own_pod="launch"))) == ["w-0"]

    def test_is_the_pod_that_asks_when_that_is_called_a_worker(self) -> None:
        own = labelled("w-0", mpirt_dev="x", **{"mpirt.dev__role": "worker"})

        assert names(found(own, criteria=Criteria(own_pod="w-0"))) == ["w-0"]


def limited(**limits: str) -> dict[str, Any]:
    """A pod's spec, its container with these limits of GPUs."""
    named = {f"{maker}.com/gpu": limit for maker, limit in limits.items()}
    return {"containers": [{"name": "main", "resources": {"limits": named}}]}


GPUS = limited(nvidia="4", amd="2")


class TestSlots:
    @pytest.mark.parametrize(
        ("worker", "criteria", "slots"),
        [
            pytest.param(pod(), ANY, 1, id="nothing is said"),
            pytest.param(pod(spec=GPUS), ANY, 6, id="GPUs"),
            pytest.param(pod(spec=limited(nvidia="0")), ANY, 1, id="no GPUs"),
            pytest.param(
                pod(spec=GPUS, metadata={"annotations": {"mpirt.dev/slots": "8"}}), ANY, 8, id="the annotation"
            ),
            pytest.param(
                pod(spec=GPUS, metadata={"annotations": {"mpirt.dev/slots": "x"}}),
                Criteria(slots=3),
                3,
                id="the command line",
            ),
        ],
    )
    def test_come_from_the_first_that_says_something(self, worker: Pod, criteria: Criteria, slots: int) -> None:
        assert found(worker, criteria=criteria).hosts == (Host("w-0", slots),)

    def test_may_differ(self) -> None:
        other = pod("w-1", metadata={"annotations": {"mpirt.dev/slots": "2"}})

        assert found(pod("w-0", spec=GPUS), other).hosts == (Host("w-0", 6), Host("w-1", 2))

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("x", "must be a whole number of at most nine digits, got 'x'"),
            ("0", "must be at least 1, got 0"),
        ],
    )
    def test_that_can_not_be_are_named_with_pod_and_field(self, text: str, problem: str) -> None:
        worker = pod("w-1", metadata={"annotations": {"mpirt.dev/slots": text}})

        with pytest.raises(SpecError) as caught:
            found(pod("w-0"), worker)

        assert str(caught.value) == f"pod w-1: annotation mpirt.dev/slots: {problem}"

    def test_of_a_limit_that_is_no_number_are_named_too(self) -> None:
        worker = pod(spec=limited(nvidia="1k"))

        with pytest.raises(SpecError) as caught:
            found(worker)

        assert caught.value.field == "pod w-0: container main: limit of nvidia.com/gpu"

    def test_of_a_pod_that_is_no_host_do_not_matter(self) -> None:
        worker = pod("w-1", conditions=[], metadata={"annotations": {"mpirt.dev/slots": "x"}})

        assert names(found(pod("w-0"), worker)) == ["w-0"]


OTHER = {**WORKERS, "name": "v", "uid": "2"}


class TestTwoJobs:
    def test_are_never_mixed(self) -> None:
        with pytest.raises(SpecError) as caught:
            found(pod("w-0"), owned("v-0", OTHER))

        assert str(caught.value) == (
            "--job train: two jobs match: pod v-0 of StatefulSet v and pod w-0 of StatefulSet w; name one with"
            " --statefulset or a narrower --selector"
        )

    def test_are_also_one_with_an_owner_and_one_without(self) -> None:
        with pytest.raises(SpecError, match="pod x-0 of no owner"):
            found(pod("w-0"), owned("x-0", None))

    def test_pods_without_owners_are_one_job(self) -> None:
        assert names(found(owned("a-0", None), owned("b-0", None))) == ["a-0", "b-0"]

    def test_what_is_left_of_one_of_the_same_name_is_none(self) -> None:
        left = pod("w-1", metadata={"deletionTimestamp": "now", "ownerReferences": [OTHER]})

        assert names(found(left, pod("w-0"))) == ["w-0"]

    def test_the_launcher_has_another_owner_and_is_none(self) -> None:
        launcher = pod("l", metadata={"labels": {"mpirt.dev/role": "launcher"}, "ownerReferences": [OTHER]})

        assert names(found(launcher, pod("w-0"))) == ["w-0"]
