"""Workers whose template was changed: all at once, unless the job is elastic."""

from __future__ import annotations

from mpirt.controller.model.actions import Delete
from tests.unit.controller import pods
from tests.unit.controller.jobs import REVISION, Body, container, mpi_job, template
from tests.unit.controller.started import started
from tests.unit.controller.world import World, writes

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


def test_all_workers_of_the_earlier_template_are_deleted_at_once() -> None:
    world = changed()

    world.workers_are(pods.worker(0), pods.worker(1), revision=NEW)

    assert deleted_pods(world) == ["train-worker-0", "train-worker-1"]


def test_those_that_are_new_or_going_already_are_left_alone() -> None:
    world = changed()

    new, going = pods.worker(1, revision=NEW), pods.worker(2, deleted=60)
    world.workers_are(pods.worker(0), new, going, revision=NEW)

    assert deleted_pods(world) == ["train-worker-0"]


def test_those_of_an_elastic_job_are_left_to_the_stateful_set_which_replaces_one_after_the_other() -> None:
    world = changed(mpi_job(elastic={"minReplicas": 1}))

    world.workers_are(pods.worker(0), pods.worker(1), revision=NEW)

    assert deleted_pods(world) == []


def test_none_is_deleted_before_the_stateful_set_has_looked_at_its_template() -> None:
    world = changed()

    world.workers_are(pods.worker(0), pods.worker(1), revision=NEW)
    world.get("StatefulSet")["status"]["observedGeneration"] = 0
    assert deleted_pods(world) == []

    world.get("StatefulSet")["status"] = {"observedGeneration": 99}
    assert deleted_pods(world) == []


def test_a_template_that_somebody_edits_by_hand_costs_no_worker() -> None:
    world = started()

    world.edit("StatefulSet", template={"metadata": {}, "spec": {"containers": []}})
    world.workers_are(pods.worker(0), pods.worker(1), revision=NEW)
    done = world.settle()

    assert writes(done) == ["patch StatefulSet"]
    world.workers_are(pods.worker(0), pods.worker(1), revision=REVISION)
    assert deleted_pods(world) == []
