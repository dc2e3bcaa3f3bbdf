"""Workers carry their ranks as a label where Kueue places them by it, and nowhere else: each costs a write."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.actions import Patch, Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, container, mpi_job, template
from tests.unit.controller.started import started
from tests.unit.controller.world import World, writes

INDEX = "training.kubeflow.org/replica-index"


def placed_by_kueue(**spec: Any) -> Body:
    """As Kueue leaves a job that it admits with a topology."""
    gates = [{"name": "kueue.x-k8s.io/topology"}]
    worker = template(container("worker"), metadata={"labels": {"kueue.x-k8s.io/podset": "worker"}})
    return mpi_job(worker={**worker, "spec": {**worker["spec"], "schedulingGates": gates}}, **spec)


def indices(world: World) -> list[str]:
    return [
        body["metadata"]["labels"].get(INDEX, "")
        for (kind, name), body in sorted(world.objects.items())
        if kind == "Pod" and "-worker-" in name
    ]


@pytest.mark.parametrize(
    ("spec", "ranks"),
    [
        pytest.param({}, ["0", "1"], id="from 0"),
        pytest.param({"runLauncherAsWorker": True}, ["1", "2"], id="after a launcher that works too"),
    ],
)
def test_workers_that_kueue_places_by_topology_carry_their_ranks(spec: dict[str, Any], ranks: list[str]) -> None:
    world = World(placed_by_kueue(**spec))
    world.settle()
    world.workers_are(pods.worker(0, phase="Pending"), pods.worker(1, phase="Pending"))

    done = world.settle()

    assert indices(world) == ranks
    assert writes(done).count("patch Pod") == 2
    assert world.settle() == []


def test_a_worker_that_comes_back_gets_its_label_again() -> None:
    world = World(placed_by_kueue())
    world.settle()
    world.workers_are(pods.worker(0), pods.worker(1))
    world.settle()

    world.workers_are(pods.worker(0), pods.worker(1, phase="Pending"))
    world.settle()

    assert indices(world) == ["0", "1"]


def test_a_worker_that_is_on_its_way_out_gets_none() -> None:
    world = World(placed_by_kueue())
    world.settle()
    world.workers_are(pods.worker(0, deleted=60), pods.worker(1))
    world.settle()

    assert indices(world) == ["", "1"]


def test_other_workers_cost_no_write() -> None:
    world = started()

    assert indices(world) == ["", ""]
    assert "patch Pod" not in writes(world.done)


def test_a_refused_label_is_not_asked_for_again_at_once_and_holds_nothing_up() -> None:
    world = World(placed_by_kueue())
    world.settle()
    world.workers_are(pods.worker(0), pods.worker(1))
    asked = {
        action.digest for action in world.plan().actions if isinstance(action, Patch) and action.kind == "Pod"
    }
    world.rejections += [Rejection("Pod", digest, "pods is forbidden", final=False) for digest in asked]

    done = writes(world.settle())

    assert len(asked) == 1
    assert "patch Pod" not in done
    assert "create Job" in done
