"""Which tolerations a pod gets beside those that the user wrote."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.manifests.pods import with_tolerations
from mpirt.errors import SpecError
from tests.unit.controller.jobs import parsed, template

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def ours(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}


@pytest.mark.parametrize(
    "given", [{}, {"tolerations": None}, {"tolerations": []}], ids=["missing", "null", "empty"]
)
def test_without_tolerations_both_are_added(given: dict[str, Any]) -> None:
    assert with_tolerations(given) == [ours(NOT_READY), ours(UNREACHABLE)]


def test_a_toleration_of_something_else_stays_and_comes_first() -> None:
    gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}

    assert with_tolerations({"tolerations": [gpu]}) == [gpu, ours(NOT_READY), ours(UNREACHABLE)]


@pytest.mark.parametrize(
    "own",
    [
        pytest.param({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, id="for 5 s"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, id="for ever"),
        pytest.param({"operator": "Exists"}, id="every effect"),
        pytest.param({"effect": "NoExecute"}, id="without an operator"),
        pytest.param({}, id="by the key alone"),
    ],
)
def test_the_users_own_toleration_of_a_taint_wins(own: dict[str, Any]) -> None:
    own = {"key": UNREACHABLE, **own}

    assert with_tolerations({"tolerations": [own]}) == [own, ours(NOT_READY)]


def test_who_tolerates_everything_gets_nothing_added() -> None:
    everything = {"operator": "Exists"}

    assert with_tolerations({"tolerations": [everything]}) == [everything]


def test_a_toleration_of_scheduling_there_is_none_of_staying_there() -> None:
    own = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoSchedule"}

    assert with_tolerations({"tolerations": [own]}) == [own, ours(NOT_READY), ours(UNREACHABLE)]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        pytest.param({"key": "a"}, "tolerations: expected a list", id="no list"),
        pytest.param(["a"], r"tolerations\[0\]: expected an object", id="no object"),
        pytest.param([{"key": 1}], r"tolerations\[0\].key: expected text", id="no key"),
    ],
)
def test_what_is_no_toleration_is_reported_with_its_path(written: Any, says: str) -> None:
    with pytest.raises(SpecError, match=f"spec.mpiReplicaSpecs.Worker.template.spec.{says}"):
        parsed(worker=template({"name": "w", "image": "mpi:4"}, tolerations=written))
