"""Nodes that evict pods: what their events say counts where the pods themselves say nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import Body
from tests.unit.controller.started import RUNS, started

WHY = "Pod ephemeral local storage usage exceeds the total limit of containers 64Mi. "
# As kubelets of 1.37 leave a worker whose main process obeys TERM.
OBEYED: dict[str, Any] = {
    "phase": "Succeeded",
    "conditions": pods.not_ready(reason="PodCompleted"),
    "containers": [pods.ended("main", 0, "Completed")],
}


def eviction(pod: str, *, uid: str = "") -> Body:
    return {
        "kind": "Eviction",
        "metadata": {"name": f"{pod}.1", "namespace": "ml", "uid": f"event-of-{pod}", "resourceVersion": "7"},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "ml", "uid": uid or f"uid-of-{pod}"},
        "reason": "Evicted",
        "message": WHY,
    }


@pytest.mark.parametrize("is_replaced", [False, True], ids=["it is there", "another pod has its name"])
def test_a_worker_that_obeyed_its_node_was_evicted(*, is_replaced: bool) -> None:
    world = started()
    world.put(eviction("train-worker-1"))
    if is_replaced:
        world.worker_went(pods.worker(1, deleted=30, **OBEYED))
        world.workers_are(pods.worker(0), pods.worker(1, created=30) | {"metadata": another("train-worker-1")})
    else:
        world.workers_are(pods.worker(0), pods.worker(1, **OBEYED))

    world.later(5)

    assert world.condition("Running")[2] == f"{RUNS}train-worker-1 was evicted: {WHY.rstrip('. ')}"


def test_an_event_of_an_earlier_pod_of_the_name_says_nothing_of_this_one() -> None:
    world = started()
    world.put(eviction("train-worker-1", uid="uid-of-another"))

    world.later(5)

    assert "evicted" not in world.condition("Running")[2]


def another(name: str) -> Body:
    """The metadata of the next pod of that name."""
    metadata: Body = pods.pod(name, created=30)["metadata"]
    return metadata | {"uid": f"uid-of-the-next-{name}"}
