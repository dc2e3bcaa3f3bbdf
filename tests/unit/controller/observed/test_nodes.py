"""Which nodes are about to go, and which jobs that concerns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mpirt.controller.model.roster import Source
from mpirt.controller.model.spec import JobKey
from mpirt.controller.observed.nodes import Nodes, Signal, read_signal, why_no_image_volumes
from mpirt.controller.observed.slim import slim
from mpirt.controller.observed.store import Store
from tests.unit.controller.jobs import NOON, SETTINGS

SPOT = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
GOING = Signal(Source.NODE_TAINT, "has the taint aws-node-termination-handler/spot-itn", 120)


NEW = {
    "kubeletVersion": "v1.37.2",
    "containerRuntimeVersion": "containerd://2.4.2",
    "operatingSystem": "linux",
    "architecture": "amd64",
}


def of(kubelet: str, runtime: str) -> dict[str, str]:
    """What a node says of itself."""
    return {**NEW, "kubeletVersion": kubelet, "containerRuntimeVersion": runtime}


OLD = of("v1.34.4", "containerd://2.1.0")
WINDOWS = {**OLD, "operatingSystem": "windows"}


def node(
    name: str = "node-1",
    *,
    taints: tuple[dict[str, str], ...] = (),
    info: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {"a": "b"}},
        "spec": {"podCIDR": "10.0.0.0/24", "taints": list(taints), **spec},
        "status": {"images": [], "nodeInfo": {"machineID": "1", **(info or NEW)}},
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


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (node(), ""),
        (node(info=of("v1.35.0-eks-1", "containerd://2.1.0")), ""),
        (node(info=of("v1.36.0", "containerd://v2.2.1")), ""),
        (node(info=of("v1.35.1", "cri-o://1.35.0")), ""),
        (node(info=of("v2.0.0", "containerd://3.0.0")), ""),
        (node(info=OLD), "node node-1 has kubelet v1.34.4"),
        (node(info=of("v1.35.0", "containerd://2.0.9")), "node node-1 has containerd://2.0.9"),
        (node(info=of("v1.35.0", "cri-o://1.30.9")), "node node-1 has cri-o://1.30.9"),
        (node(info=of("v1.35.0", "docker://27.0.1")), "node node-1 has docker://27.0.1"),
        (node(info=of("v1.35.0", "")), "node node-1 has "),
        (node(info=of("kwok-v0.8.0", "kwok")), "node node-1 has kubelet kwok-v0.8.0"),
        (node(info=OLD, unschedulable=True), None),
        (node(info=WINDOWS), None),
    ],
)
def test_a_node_shows_whether_it_can_mount_an_image(body: dict[str, Any], why: str | None) -> None:
    assert why_no_image_volumes(body) == why


class TestImageVolumes:
    def test_all_nodes_must_be_able_to_mount_them(self) -> None:
        nodes = Nodes()
        assert nodes.why_no_image_volumes() == "the controller may not list nodes"

        nodes.replace([])
        assert nodes.why_no_image_volumes() == "there is no node yet"

        nodes.put(node())
        assert nodes.why_no_image_volumes() == ""

        nodes.put(node("old", info=OLD))
        assert nodes.why_no_image_volumes() == "node old has kubelet v1.34.4"

    @pytest.mark.parametrize("ends", [Nodes.put, Nodes.remove], ids=["cordoned", "gone"])
    def test_one_that_can_not_counts_until_it_is_cordoned_or_gone(
        self, ends: Callable[[Nodes, dict[str, Any]], object]
    ) -> None:
        nodes = Nodes()
        nodes.replace([node(), node("old", info=OLD)])

        ends(nodes, node("old", info=OLD, unschedulable=True))

        assert nodes.why_no_image_volumes() == ""

    def test_the_last_node_may_go(self) -> None:
        nodes = Nodes()
        nodes.replace([node()])

        nodes.remove(node())

        assert nodes.why_no_image_volumes() == ""

    def test_nodes_that_cant_be_read_any_more_are_forgotten(self, store: Store) -> None:
        store.put("Node", node())
        assert store.settings(SETTINGS).why_copied == ""

        store.lose("Node")
        assert store.settings(SETTINGS).why_copied == "the controller may not list nodes"


ARM = {**NEW, "architecture": "arm64"}


class TestArchitectures:
    def test_are_those_of_all_nodes_that_there_are_and_were(self, store: Store) -> None:
        store.put("Node", node("other", info=ARM))
        store.remove("Node", node("other", info=ARM))
        store.replace("Node", [node()], "2")

        assert store.settings(SETTINGS).architectures == {"amd64", "arm64"}

    def test_are_unknown_if_nodes_cant_be_read_any_more(self, store: Store) -> None:
        assert store.settings(SETTINGS).architectures == {"amd64"}

        store.lose("Node")

        assert store.settings(SETTINGS).architectures == set()

    def test_concern_all_jobs_when_there_is_another(self, store: Store) -> None:
        assert store.put("Node", node()) == set()
        assert store.put("Node", node("other", info=ARM)) == {KEY, OTHER}
        assert store.put("Node", node("third", info=ARM)) == set()

    @pytest.mark.parametrize("reported", ["", "loong64"])
    def test_are_unknown_while_no_node_has_reported_one_with_a_keeper(self, reported: str) -> None:
        nodes = Nodes()

        nodes.replace([node(info={"architecture": reported})])

        assert nodes.architectures == set()


def test_nothing_else_of_a_node_is_kept() -> None:
    assert slim("Node", node(taints=(SPOT,))) == {
        "metadata": {"name": "node-1", "uid": "node-1", "resourceVersion": "1"},
        "spec": {"taints": [SPOT]},
        "status": {"nodeInfo": NEW},
    }


KEY, OTHER = (JobKey("TrainingJob", "ml", name) for name in ("elastic", "other"))


@pytest.fixture
def store() -> Store:
    """A job with a pod on node-1, which is not known yet, and one with a pod elsewhere."""
    made = Store(["TrainingJob"], clock=lambda: NOON)
    made.replace("Node", [node("node-0")], "1")
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
