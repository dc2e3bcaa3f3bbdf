"""An MPIJob that runs is scaled down: its highest workers leave with proof."""

from __future__ import annotations

import pytest

from mpirt.controller.model.actions import Answer
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at, mpi_job
from tests.unit.controller.world import World, writes


def running(replicas: int = 3) -> World:
    """A job that runs, with so many workers."""
    world = World(mpi_job(replicas=replicas))
    world.settle()
    world.seconds += 5
    world.workers_are(*(worker(world, number) for number in range(replicas)))
    world.settle()
    world.seconds += 5
    world.launcher_is(pods.launcher(containers=[pods.running("mpi", since=12)]), active=1)
    world.seconds += 5
    world.settle()
    return world


def worker(world: World, number: int) -> Body:
    body = pods.worker(number)
    template = world.get("StatefulSet")["metadata"]["annotations"]["mpirt.dev/template"]
    body["metadata"]["annotations"] = {"mpirt.dev/template": template}
    return body


def scale(world: World, replicas: int) -> None:
    world.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = replicas
    world.seconds += 1


def held(world: World, number: int) -> str:
    annotations = world.objects["Pod", f"train-worker-{number}"]["metadata"]["annotations"]
    return str(annotations.get("mpirt.dev/draining", ""))


def replicas(world: World) -> int:
    return int(world.get("StatefulSet")["spec"]["replicas"])


def idle(world: World, number: int) -> None:
    uid = world.objects["Pod", f"train-worker-{number}"]["metadata"]["uid"]
    world.answers[uid] = Answer(world.now, 0, idle_since=at(world.seconds - 5))


@pytest.fixture
def world() -> World:
    """A job that runs, and has been scaled from three workers to two."""
    world = running()
    scale(world, 2)
    world.settle()
    return world


def test_the_highest_workers_stop_being_hosts_and_stay() -> None:
    world = running()

    scale(world, 2)
    done = world.settle()

    # The status: the launcher does without them from now on.
    assert writes(done) == ["patch ConfigMap", "patch Pod", "status"]
    assert (held(world, 2), held(world, 1)) == ("Replicas", "")
    assert replicas(world) == 3
    assert world.get("Role")["rules"][0]["resourceNames"] == [f"train-worker-{number}" for number in range(3)]


def test_the_stateful_set_shrinks_when_nothing_runs_in_them(world: World) -> None:
    idle(world, 2)
    done = world.settle()

    assert replicas(world) == 2
    assert "patch StatefulSet" in writes(done)


def test_they_are_asked_whether_they_are_in_use(world: World) -> None:
    assert [(one.pod, one.container) for one in world.plan().questions] == [("train-worker-2", "worker")]


def test_it_shrinks_after_five_minutes_even_if_they_are_in_use(world: World) -> None:
    world.later(290)
    assert replicas(world) == 3

    world.later(20)

    assert replicas(world) == 2


def test_an_edit_back_makes_hosts_of_them_again(world: World) -> None:
    scale(world, 3)
    done = world.settle()

    assert writes(done) == ["patch ConfigMap", "patch Pod"]
    assert held(world, 2) == ""


def test_without_a_launcher_that_runs_it_shrinks_at_once() -> None:
    world = running()
    world.launcher_is(pods.launcher(phase="Pending", containers=[]), active=1)

    scale(world, 2)
    world.settle()

    assert replicas(world) == 2


def test_workers_of_an_early_version_have_no_place_for_a_mark_and_go_at_once() -> None:
    world = running()
    del world.objects["Pod", "train-worker-2"]["metadata"]["annotations"]

    scale(world, 2)
    world.settle()

    assert replicas(world) == 2
