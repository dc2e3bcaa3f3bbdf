"""The number of replicas in a job's spec, marks of workers that are no hosts, and outcomes that are recorded."""

from __future__ import annotations

import pytest

from mpirt.controller.model.actions import WriteStatus
from tests.unit.controller.trainings import TrainingWorld, pods_of, running_job


@pytest.fixture
def world() -> TrainingWorld:
    """A job that runs, with three workers."""
    return running_job(3)


class TestTheNumberOfReplicas:
    def test_more_join_one_by_one_as_they_become_ready(self) -> None:
        world = running_job(2)

        assert pods_of(world.scale(4)) == ["create elastic-worker-2", "create elastic-worker-3"]
        assert world.held() == {}

    def test_fewer_leave_with_proof_the_highest_numbers_first(self) -> None:
        world = running_job(4)
        world.scale(2)
        assert world.held() == {"elastic-worker-2": "Replicas", "elastic-worker-3": "Replicas"}
        world.idle("elastic-worker-2", "elastic-worker-3")

        done = world.settle()

        assert pods_of(done) == ["delete elastic-worker-2", "delete elastic-worker-3"]
        assert (world.wanted(), world.replicas) == (["0", "1"], 2)
        assert world.later(3600) == []

    def test_workers_that_stay_in_use_go_after_five_minutes(self, world: TrainingWorld) -> None:
        world.scale(2)
        world.busy("elastic-worker-2")
        assert pods_of(world.later(290)) == []

        assert pods_of(world.later(20)) == ["delete elastic-worker-2"]

    def test_an_edit_back_keeps_the_workers(self, world: TrainingWorld) -> None:
        world.scale(2)

        done = world.scale(3)

        assert pods_of(done) == ["patch elastic-worker-2"]
        assert (world.held(), world.wanted()) == ({}, ["0", "1", "2"])

    def test_an_edit_while_a_scaler_works_is_carried_out_after_it(self, world: TrainingWorld) -> None:
        world.scale_in(count=1)
        world.scale(5)
        world.idle("elastic-worker-2")

        world.settle()

        assert world.outcome("in") == ("ScaleSucceeded", "removed elastic-worker-2")
        assert (world.wanted(), world.replicas) == (["0", "1", "3", "4", "5"], 5)

    def test_below_the_least_nothing_changes_and_it_is_reported(self) -> None:
        world = running_job(3, least=2)

        done = world.scale(1)

        assert pods_of(done) == []
        assert "must be from 2 to 9, got 1" in world.condition("Running")[2]
        assert world.wanted() == ["0", "1", "2"]


class TestMarks:
    def test_a_mark_of_another_writer_is_left_alone(self, world: TrainingWorld) -> None:
        world.pod("elastic-worker-1")["metadata"]["annotations"]["mpirt.dev/draining"] = "true"

        assert world.later(60) == []
        assert world.held() == {"elastic-worker-1": "true"}

    def test_a_mark_that_was_removed_by_hand_is_set_again(self, world: TrainingWorld) -> None:
        world.scale_in(count=1)
        del world.pod("elastic-worker-2")["metadata"]["annotations"]["mpirt.dev/draining"]

        world.settle()

        assert world.held() == {"elastic-worker-2": "ScaleIn"}


def write_outcome(kind: str, world: TrainingWorld) -> None:
    """Write the status of the object of that kind, and nothing else of the plan."""
    writes = [one for one in world.plan().actions if isinstance(one, WriteStatus) and one.kind == kind]
    world.carry_out(writes[0])


def test_a_success_is_kept_although_a_new_worker_is_not_ready_any_more() -> None:
    world = running_job()
    world.scale_out(1)
    world.ready()
    [patch] = world.plan().actions
    world.carry_out(patch)
    write_outcome("ScaleOut", world)
    world.pod("elastic-worker-2")["status"]["conditions"] = []

    world.settle()

    assert world.wanted() == ["0", "1", "2"]
    assert world.outcome("out")[0] == "ScaleSucceeded"


def test_a_failure_is_kept_although_the_worker_is_idle_by_now() -> None:
    world = running_job(3)
    world.scale_in(count=1, timeout=30)
    world.busy("elastic-worker-2")
    world.seconds += 31
    write_outcome("ScaleIn", world)

    world.idle("elastic-worker-2")
    world.settle()

    assert world.wanted() == ["0", "1", "2"]
    assert world.held() == {}


def test_the_job_becomes_an_owner_beside_a_scalers_own_controller() -> None:
    world = running_job()
    world.scale_out(1)
    body = world.objects["ScaleOut", "out"]
    theirs = {"apiVersion": "v1", "kind": "Supervisor", "name": "s", "uid": "s", "controller": True}
    body["metadata"]["ownerReferences"] = [theirs]

    world.settle()

    owners = body["metadata"]["ownerReferences"]
    assert [(one["kind"], one["controller"]) for one in owners] == [("Supervisor", True), ("TrainingJob", False)]
