"""What a ScaleIn or ScaleOut has recorded counts, whenever the controller was killed after that."""

from __future__ import annotations

from mpirt.controller.model.actions import WriteStatus
from tests.unit.controller.trainings import TrainingWorld, running_job


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
