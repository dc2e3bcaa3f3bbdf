"""Nodes that are about to go: workers leave them with proof, and others take their places."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.roster import Source
from mpirt.controller.observed.nodes import Signal
from tests.unit.controller.trainings import TrainingWorld, pods_of, training_job
from tests.unit.controller.world import writes

SPOT = Signal(Source.NODE_TAINT, "has the taint spot", 120)
CORDONED = Signal(Source.NODE_CORDONED, "is cordoned", 120)


def running(replicas: int = 2, *, leaves_cordoned: bool = False, **job: Any) -> TrainingWorld:
    """A job that runs, each worker on a node of its own."""
    annotations = {"mpirt.dev/leave-cordoned-nodes": "true"} if leaves_cordoned else None
    world = TrainingWorld(training_job(replicas=replicas, annotations=annotations, **job))
    world.settle()
    world.ready()
    spread(world)
    world.settle()
    world.launcher_starts()
    return world


def spread(world: TrainingWorld) -> None:
    for name in world.workers():
        world.pod(name)["spec"]["nodeName"] = f"node-of-{name.rpartition('-')[2]}"


@pytest.fixture
def world() -> TrainingWorld:
    """A job that runs, and one of its two workers is on a node that is about to go."""
    world = running()
    world.nodes["node-of-1"] = SPOT
    world.settle()
    return world


class TestAWorkerOnSuchANode:
    def test_is_no_host_any_more_and_another_one_is_created(self) -> None:
        world = running()

        world.nodes["node-of-1"] = SPOT
        done = world.settle()

        assert pods_of(done) == ["create elastic-worker-2", "patch elastic-worker-1"]
        assert world.held() == {"elastic-worker-1": "NodeTaint"}
        assert world.hosts() == ["elastic-worker-0:1", "elastic-worker-2:1"]
        assert (world.wanted(), world.replicas) == (["0", "2"], 2)

    def test_goes_when_nothing_runs_in_it(self, world: TrainingWorld) -> None:
        world.busy("elastic-worker-1")
        assert pods_of(world.later(60)) == []

        world.idle("elastic-worker-1")

        assert pods_of(world.settle()) == ["delete elastic-worker-1"]
        assert world.status["scaling"].get("drains") is None

    def test_goes_so_long_before_its_node_that_its_grace_period_fits_in(self, world: TrainingWorld) -> None:
        world.busy("elastic-worker-1")
        assert pods_of(world.later(89)) == []

        assert pods_of(world.later(2)) == ["delete elastic-worker-1"]

    def test_with_a_notice_shorter_than_its_grace_it_has_half_of_it(self) -> None:
        world = running()
        world.nodes["node-of-1"] = Signal(Source.NODE_TAINT, "has the taint x", 25)
        world.settle()
        world.busy("elastic-worker-1")
        assert pods_of(world.later(11)) == []

        assert pods_of(world.later(2)) == ["delete elastic-worker-1"]

    def test_stays_a_host_until_another_one_is_ready_where_too_few_would_be_left(self) -> None:
        world = running(2, least=2)
        world.nodes["node-of-1"] = SPOT
        world.settle()
        assert world.held() == {}
        assert world.hosts() == ["elastic-worker-0:1", "elastic-worker-2:1", "elastic-worker-1:1"]

        world.ready("elastic-worker-2")
        world.settle()

        assert world.held() == {"elastic-worker-1": "NodeTaint"}
        assert world.hosts() == ["elastic-worker-0:1", "elastic-worker-2:1"]

    def test_goes_in_time_even_if_no_other_one_became_ready(self) -> None:
        world = running(2, least=2)
        world.nodes["node-of-1"] = SPOT
        world.settle()

        assert "delete elastic-worker-1" in pods_of(world.later(91))

    def test_is_reported_in_the_status_with_the_node_and_the_taint(self) -> None:
        world = running()

        world.nodes["node-of-1"] = SPOT
        world.settle()

        [drain] = world.status["scaling"]["drains"]
        assert (drain["worker"], drain["why"]) == ("elastic-worker-1", "node node-of-1 has the taint spot")
        assert world.events[-1] == (
            "Normal",
            "NodeTaint",
            "elastic-worker-1 leaves: node node-of-1 has the taint spot; another worker takes its place",
        )

    def test_that_dies_meanwhile_is_not_counted_as_a_failure(self, world: TrainingWorld) -> None:
        world.vanishes("elastic-worker-1")
        world.settle()

        assert "deaths" not in world.status["attempts"][-1]
        assert world.wanted() == ["0", "2"]


class TestACordonedNode:
    def test_is_left_if_the_job_is_annotated(self) -> None:
        world = running(leaves_cordoned=True)

        world.nodes["node-of-1"] = CORDONED
        world.settle()

        assert world.held() == {"elastic-worker-1": "NodeCordoned"}

    def test_is_not_left_otherwise(self) -> None:
        world = running()

        world.nodes["node-of-1"] = CORDONED

        assert world.settle() == []

    @pytest.mark.parametrize(("leaves", "budgets"), [(True, 1), (False, 0)])
    def test_evictions_are_refused_for_jobs_whose_workers_leave_by_themselves(
        self, *, leaves: bool, budgets: int
    ) -> None:
        world = running(leaves_cordoned=leaves)

        assert world.kinds().count("PodDisruptionBudget") == budgets


class TestAllNodesAtOnce:
    def test_every_worker_leaves_when_its_successor_is_ready(self) -> None:
        world = running(3, least=1)
        world.nodes |= {f"node-of-{number}": SPOT for number in range(3)}
        world.settle()
        assert world.hosts() == [
            *(f"elastic-worker-{number}:1" for number in (3, 4, 5)),
            "elastic-worker-2:1",
        ]

        world.ready("elastic-worker-5")
        world.settle()

        assert world.held() == dict.fromkeys([f"elastic-worker-{number}" for number in range(3)], "NodeTaint")

    def test_a_suspended_job_forgets_its_drains(self, world: TrainingWorld) -> None:
        world.job["metadata"]["annotations"] = {"job-supervisor.kube-ai.io/job-suspended": "true"}

        done = writes(world.settle())

        assert "delete Pod" in done
        assert "drains" not in world.status["scaling"]
