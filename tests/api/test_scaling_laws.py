"""The laws of scaling_laws.py find what breaks them. The events are made up; no control plane is needed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.recorder import Told
from tests.api.scaling_laws import broken_limits, numbers_used_twice, unasked_deletions, wrong_choices

LEAVING = {"source": "ScaleIn", "uid": "uid-in", "leaving": ["job-worker-2"]}


def job(version: int, *numbers: int, **change: Any) -> Told:
    scaling = {"change": change} if change else {}
    wanted = [f"job-worker-{number}" for number in numbers]
    body = {
        "kind": "TrainingJob",
        "metadata": {"name": "job", "uid": "uid-job"},
        "status": {"targetWorkers": wanted, "scaling": scaling},
    }
    return Told(version, deleted=False, body=body)


def pod(version: int, number: int, *, uid: str = "", deleted: bool = False) -> Told:
    metadata = {
        "name": f"job-worker-{number}",
        "uid": uid or f"uid-{number}",
        "labels": {"training-job-name": "job", "training-job-role": "worker"},
    }
    return Told(version, deleted, {"kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}})


def scale_in(version: int, **to_delete: Any) -> Told:
    spec = {"selector": {"name": "job"}, "toDelete": to_delete}
    return Told(
        version, deleted=False, body={"kind": "ScaleIn", "metadata": {"name": "in", "uid": "uid-in"}, "spec": spec}
    )


class TestLimits:
    def test_more_and_fewer_are_found_also_those_of_a_change(self) -> None:
        joins = job(3, 0, 1, 2, joining=["job-worker-3"])
        leaves = job(4, 0, 1, leaving=["job-worker-1"])

        found = broken_limits([job(1, 0), job(2, 0, 1), joins, leaves, job(5, 0, 1, 2, 3)], least=2, most=3)

        assert len(found) == 4

    def test_more_pods_are_found_unless_one_has_gone(self) -> None:
        assert broken_limits([pod(1, 0), pod(2, 1)], least=1, most=1) == ["job: 2 pods"]
        assert broken_limits([pod(1, 0), pod(2, 0, deleted=True), pod(3, 1)], least=1, most=1) == []


def test_a_name_that_two_pods_had_is_found() -> None:
    assert numbers_used_twice([pod(1, 0), pod(2, 1), pod(3, 0, uid="another")]) == ["job-worker-0"]


@pytest.mark.parametrize(
    ("asked", "is_right"),
    [
        pytest.param({"count": 1}, True, id="the highest"),
        pytest.param({"count": 2}, False, id="too few"),
        pytest.param({"podNames": ["job-worker-2", "job-worker-9"]}, True, id="the one that is named"),
        pytest.param({"podNames": ["job-worker-1"]}, False, id="another one"),
        pytest.param({"podNames": []}, False, id="nobody"),
    ],
)
def test_a_change_that_means_others_than_was_asked_for_is_found(asked: dict[str, Any], *, is_right: bool) -> None:
    found = wrong_choices([scale_in(1, **asked), job(2, 0, 1, 2, **LEAVING)])

    assert (found == []) is is_right


@pytest.mark.parametrize(
    ("told", "is_right"),
    [
        pytest.param([job(1, 0, 1, 2, **LEAVING, committed=True), pod(2, 2, deleted=True)], True, id="committed"),
        pytest.param([job(1, 0, 1, 2, **LEAVING), pod(2, 2, deleted=True)], False, id="not committed"),
        pytest.param([job(1, 0, 1, 2), pod(2, 1, deleted=True)], False, id="wanted"),
        pytest.param([job(1, 0), job(2, 0, joining=["job-worker-1"]), job(3, 0), pod(4, 1, deleted=True)], True,
                     id="joins no more"),
        pytest.param([job(1, 0, joining=["job-worker-1"]), pod(2, 1, deleted=True)], False, id="joins"),
    ],
)  # fmt: skip
def test_a_pod_that_is_deleted_without_need_is_found(told: list[Told], *, is_right: bool) -> None:
    assert (unasked_deletions(told, set()) == []) is is_right


def test_pods_that_tests_have_deleted_are_left_out() -> None:
    assert unasked_deletions([job(1, 0), pod(2, 0, deleted=True)], {"uid-0"}) == []
