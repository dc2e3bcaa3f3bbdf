"""A PodDisruptionBudget refuses evictions only while the controller moves workers off cordoned nodes itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mpirt.controller.model.actions import Rejection
from mpirt.controller.model.roster import Source
from mpirt.controller.observed.nodes import Signal
from tests.unit.controller.jobs import container, template
from tests.unit.controller.trainings import TrainingWorld, training_job
from tests.unit.controller.world import writes

LEAVES = {"mpirt.dev/leave-cordoned-nodes": "true"}
BUDGET = "PodDisruptionBudget"
CORDONED = Signal(Source.NODE_CORDONED, "is cordoned", 120)
NOTICE = (
    "metadata.annotations[mpirt.dev/leave-cordoned-nodes]: has no effect: the controller may not list nodes, "
    "so evictions are not refused"
)


def running(*, sees_nodes: bool = True, policy: str = "None") -> TrainingWorld:
    world = TrainingWorld(training_job(annotations=LEAVES, cleanPodPolicy=policy))
    world.sees_nodes = sees_nodes
    world.settle()
    world.ready()
    world.settle()
    world.launcher_starts()
    return world


def invalid(world: TrainingWorld) -> None:
    world.change(slotsPerWorker="two")
    world.settle()


def with_a_refused_template(world: TrainingWorld) -> None:
    world.refuse["Job"] = Rejection("Job", "", "denied", final=False)
    world.job["spec"]["etReplicaSpecs"]["launcher"]["template"] = template(container("launcher", image="other"))
    world.settle()


def with_an_obstacle(world: TrainingWorld) -> None:
    world.refuse["Service"] = Rejection("Service", "", "denied", final=False)
    del world.objects["Service", "elastic"]
    world.settle()
    assert world.condition("Running")[1] == "TrainingJobRefused"


def with_unseen_nodes(world: TrainingWorld) -> None:
    world.sees_nodes = False
    world.settle()


def finished(world: TrainingWorld) -> None:
    world.finish(succeeded=1)
    assert len(world.workers()) == 2


@pytest.mark.parametrize(
    "happens", [finished, invalid, with_a_refused_template, with_an_obstacle, with_unseen_nodes]
)
def test_a_job_that_the_controller_does_not_move_has_none(happens: Callable[[TrainingWorld], None]) -> None:
    world = running()
    assert BUDGET in world.kinds()

    happens(world)

    assert BUDGET not in world.kinds()
    assert f"delete {BUDGET}" in writes(world.done)
    assert world.later(60) == []


def test_a_job_whose_spec_is_valid_again_has_one_again() -> None:
    world = running()
    world.change(slotsPerWorker="two")
    world.settle()

    world.change(slotsPerWorker=1)
    world.settle()

    assert BUDGET in world.kinds()


class TestAControllerThatMayNotListNodes:
    def test_creates_none_and_says_so_in_the_status(self) -> None:
        world = running(sees_nodes=False)

        assert BUDGET not in world.kinds()
        assert world.condition("Created")[2] == f"TrainingJob ml/elastic is created. {NOTICE}."
        assert ("Warning", "TrainingJobFieldNotHonoured", NOTICE) in world.events

    def test_creates_one_as_soon_as_it_may(self) -> None:
        world = running(sees_nodes=False)

        world.sees_nodes = True
        world.nodes["node-1"] = CORDONED
        world.settle()

        assert BUDGET in world.kinds()
        assert world.condition("Created")[2] == "TrainingJob ml/elastic is created."
