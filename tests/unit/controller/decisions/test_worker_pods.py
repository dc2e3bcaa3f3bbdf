"""Actions on single worker pods: those of an earlier template go, and labels show their ranks."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.actions import Delete, Patch, Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import REVISION, Body, container, mpi_job, template
from tests.unit.controller.world import World, started, with_workers, writes

NEW = "train-worker-new"


def changed(job: Body | None = None) -> World:
    """A job that runs, whose workers' template was changed, and that has done what there was to do at once."""
    world = World(job)
    world.start()
    world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))
    world.settle()
    return world


def deleted_pods(world: World) -> list[str]:
    """Those that the next plan deletes."""
    return [one.name for one in world.plan().actions if isinstance(one, Delete) and one.kind == "Pod"]


OLD_ONES = ["train-worker-0", "train-worker-1"]


@pytest.mark.parametrize(
    ("job", "workers", "status", "deleted"),
    [
        pytest.param({}, [], {}, OLD_ONES, id="all that have the earlier template"),
        pytest.param(
            {},
            [pods.worker(0), pods.worker(1, revision=NEW), pods.worker(2, deleted=60)],
            {},
            OLD_ONES[:1],
            id="none that are new, or going already",
        ),
        pytest.param({"elastic": {"minReplicas": 1}}, [], {}, [], id="none of an elastic job"),
        pytest.param(
            {}, [], {"observedGeneration": 0}, [], id="none before the StatefulSet has seen its template"
        ),
        pytest.param({}, [], {"updateRevision": ""}, [], id="none before it has a revision"),
    ],
)
def test_workers_of_an_earlier_template_are_deleted_at_once(
    job: Body, workers: list[Body], status: Body, deleted: list[str]
) -> None:
    world = changed(mpi_job(**job))

    world.workers_are(*(workers or (pods.worker(0), pods.worker(1))), revision=NEW)
    world.get("StatefulSet")["status"] |= status

    assert deleted_pods(world) == deleted


def test_a_template_that_somebody_edits_by_hand_costs_no_worker() -> None:
    world = started()

    world.edit("StatefulSet", template={"metadata": {}, "spec": {"containers": []}})
    world.workers_are(pods.worker(0), pods.worker(1), revision=NEW)
    done = world.settle()

    assert writes(done) == ["patch StatefulSet"]
    world.workers_are(pods.worker(0), pods.worker(1), revision=REVISION)
    assert deleted_pods(world) == []


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
    world = with_workers(
        pods.worker(0, phase="Pending"), pods.worker(1, phase="Pending"), job=placed_by_kueue(**spec)
    )

    done = world.settle()

    assert indices(world) == ranks
    assert writes(done).count("patch Pod") == 2
    assert world.settle() == []


def test_a_worker_that_comes_back_gets_its_label_again() -> None:
    world = with_workers(job=placed_by_kueue())
    world.settle()

    world.workers_are(pods.worker(0), pods.worker(1, phase="Pending"), pods.worker(2, deleted=60))
    world.settle()

    assert indices(world) == ["0", "1", ""]


def test_other_workers_cost_no_write() -> None:
    world = started()

    assert indices(world) == ["", ""]
    assert "patch Pod" not in writes(world.done)


def test_a_refused_label_is_not_asked_for_again_at_once_and_holds_nothing_up() -> None:
    world = with_workers(job=placed_by_kueue())
    asked = {
        action.digest for action in world.plan().actions if isinstance(action, Patch) and action.kind == "Pod"
    }
    world.rejections += [Rejection("Pod", digest, "pods is forbidden", final=False) for digest in asked]

    done = writes(world.settle())

    assert len(asked) == 1
    assert "patch Pod" not in done
    assert "create Job" in done
