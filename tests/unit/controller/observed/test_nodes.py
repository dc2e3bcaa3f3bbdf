"""Which nodes are about to go, and which jobs that concerns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mpirt.controller.model.roster import Source
from mpirt.controller.model.spec import JobKey
from mpirt.controller.observed.nodes import Signal, read_signal
from mpirt.controller.observed.slim import slim
from mpirt.controller.observed.store import Store
from tests.unit.controller.jobs import NOON

SPOT = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
GOING = Signal(Source.NODE_TAINT, "has the taint aws-node-termination-handler/spot-itn", 120)


def node(name: str = "node-1", *, taints: tuple[dict[str, str], ...] = (), **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {"a": "b"}},
        "spec": {"podCIDR": "10.0.0.0/24", "taints": list(taints), **spec},
        "status": {"images": []},
    }


@pytest.mark.parametrize(
    ("body", "signal"),
    [
        (node(), None),
        (node(taints=({"key": "node-role.kubernetes.io/control-plane"},)), None),
        (node(taints=(SPOT,)), GOING),
        (
            node(taints=(SPOT, {"key": "cloud.google.com/impending-node-termination"})),
            Signal(Source.NODE_TAINT, "has the taint cloud.google.com/impending-node-termination", 25),
        ),
        (node(unschedulable=True), Signal(Source.NODE_CORDONED, "is cordoned", 120)),
        (node(taints=(SPOT,), unschedulable=True), GOING),
    ],
    ids=["none", "another taint", "spot", "the shortest notice", "cordoned", "a taint counts more"],
)
def test_a_node_shows_that_it_is_about_to_go(body: dict[str, Any], signal: Signal | None) -> None:
    assert read_signal(body) == signal


def test_nothing_else_of_a_node_is_kept() -> None:
    assert slim("Node", node(taints=(SPOT,))) == {
        "metadata": {"name": "node-1", "uid": "node-1", "resourceVersion": "1"},
        "spec": {"taints": [SPOT]},
    }


KEY, OTHER = (JobKey("TrainingJob", "ml", name) for name in ("elastic", "other"))


@pytest.fixture
def store() -> Store:
    """A job with a pod on node-1, and one with a pod elsewhere."""
    made = Store(["TrainingJob"], clock=lambda: NOON)
    made.replace("Node", [], "1")
    for job, where in (("elastic", "node-1"), ("other", "node-2")):
        owner = {"kind": "TrainingJob", "name": job, "uid": job, "controller": True}
        metadata = {"namespace": "ml", "name": f"{job}-worker-0", "uid": f"pod-of-{job}", "resourceVersion": "3"}
        made.put("Pod", {"metadata": {**metadata, "ownerReferences": [owner]}, "spec": {"nodeName": where}})
    return made


Ends = Callable[[Store, str, Any], set[JobKey]]


@pytest.mark.parametrize(("selector", "jobs"), [({"selector": {"name": "elastic"}}, {KEY}), ({}, set[JobKey]())])
def test_a_scaler_concerns_the_job_that_it_names(
    store: Store, selector: dict[str, Any], jobs: set[JobKey]
) -> None:
    metadata = {"namespace": "ml", "name": "out", "uid": "out", "resourceVersion": "4"}

    assert store.put("ScaleOut", {"metadata": metadata, "spec": selector}) == jobs


class TestTheStore:
    def test_a_signal_concerns_the_jobs_with_pods_on_that_node(self, store: Store) -> None:
        assert store.put("Node", node(taints=(SPOT,))) == {KEY}
        assert store.going_nodes() == {"node-1": GOING}
        assert store.put("Node", node(taints=(SPOT,))) == set()

    @pytest.mark.parametrize("ends", [Store.put, Store.remove], ids=["it is withdrawn", "its node is gone"])
    def test_a_signal_that_ends_concerns_them_once_more(self, store: Store, ends: Ends) -> None:
        store.put("Node", node(taints=(SPOT,)))

        assert ends(store, "Node", node()) == {KEY}
        assert store.going_nodes() == {}
        assert ends(store, "Node", node()) == set()

    def test_a_list_of_all_nodes_replaces_what_is_known(self, store: Store) -> None:
        store.put("Node", node(taints=(SPOT,)))
        store.put("Node", node("node-2", unschedulable=True))

        changed = store.replace("Node", [node(), node("node-2", unschedulable=True)], "9")

        assert changed == {KEY}
        assert set(store.going_nodes() or ()) == {"node-2"}

    def test_that_nodes_cant_be_read_or_can_again_concerns_all_jobs_once(self, store: Store) -> None:
        assert store.lose("ScaleOut") == set()
        assert store.going_nodes() == {}

        assert store.lose("Node") == {KEY, OTHER}
        assert store.going_nodes() is None
        assert store.lose("Node") == set()

        assert store.replace("Node", [node(taints=(SPOT,))], "9") == {KEY, OTHER}
        assert store.going_nodes() == {"node-1": GOING}
