"""A task whose pod is lost, and what becomes of it elsewhere."""

from __future__ import annotations

import pytest

from mpirt.controller.model.actions import Delete
from tests.unit.controller.gputasks.taskworld import TaskWorld
from tests.unit.controller.jobs import time
from tests.unit.controller.pods import lost, running
from tests.unit.controller.world import writes


@pytest.fixture
def world() -> TaskWorld:
    """A task that runs."""
    world = TaskWorld()
    world.start()
    return world


class TestALostPod:
    @pytest.mark.parametrize(
        ("disruption", "reason"),
        [
            ("PreemptionByScheduler", "GPUTaskPreempted"),
            ("EvictionByEvictionAPI", "GPUTaskEvicted"),
            ("DeletionByTaintManager", "GPUTaskNodeLost"),
            ("", "GPUTaskPodDeleted"),
        ],
    )
    def test_a_task_whose_pod_is_deleted_runs_again(self, world: TaskWorld, disruption: str, reason: str) -> None:
        world.is_to_go(disruption)

        assert writes(world.settle()) == [f"tell {reason}", "status"]
        assert world.why() == ("Pending", reason)
        world.ends(143)
        assert world.settle() == []
        world.goes()
        assert writes(world.settle()) == ["create Pod"]

    def test_a_process_that_ends_well_on_request_has_not_succeeded(self, world: TaskWorld) -> None:
        world.is_to_go("PreemptionByScheduler")
        world.ends(0)
        world.settle()

        assert world.why() == ("Pending", "GPUTaskPreempted")
        assert world.condition("Running")[2] == (
            "pod train ended with code 0 (Completed) while it was being deleted (PreemptionByScheduler); "
            "the task runs again"
        )

    def test_an_end_before_the_deletion_counts(self, world: TaskWorld) -> None:
        world.ends(0)
        world.seconds += 1
        world.is_to_go()
        world.settle()

        assert world.why() == ("Succeeded", "GPUTaskSucceeded")

    @pytest.mark.parametrize(
        ("reason", "said"),
        [
            ("Evicted", "GPUTaskEvicted"),
            ("UnexpectedAdmissionError", "GPUTaskPodFailed"),
            ("NodeShutdown", "GPUTaskPodFailed"),
        ],
    )
    def test_a_pod_that_its_node_has_ended_makes_way_for_another(
        self, world: TaskWorld, reason: str, said: str
    ) -> None:
        world.pod_is("Failed", node="node-1", reason=reason, message="The node was low on memory.")

        assert writes(world.settle()) == [f"tell {said}", "status", "delete Pod", "create Pod"]

    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            pytest.param(255, "Unknown", id="of containerd"),
            pytest.param(137, "ContainerStatusUnknown", id="of the kubelet"),
        ],
    )
    def test_a_pod_whose_node_has_restarted_makes_way_for_another(
        self, world: TaskWorld, code: int, reason: str
    ) -> None:
        world.ends(code, reason)

        assert writes(world.settle()) == ["tell GPUTaskNodeLost", "status", "delete Pod", "create Pod"]
        assert world.condition("Running")[2] == (
            f"pod train was lost with its node node-1 ({reason}); the task runs again"
        )

    def test_a_pod_that_its_node_ends_makes_way_for_another(self, world: TaskWorld) -> None:
        world.pod["status"]["conditions"].append(
            {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        )
        world.ends(143)

        assert writes(world.settle()) == ["tell GPUTaskEvicted", "status", "delete Pod", "create Pod"]

    def test_a_loss_is_reported_once_before_the_pod_is_deleted(self, world: TaskWorld) -> None:
        world.pod_is("Failed", node="node-1", reason="Evicted", message="disk")
        for action in world.plan().actions:
            if not isinstance(action, Delete):
                world.carry_out(action)

        assert writes(world.plan().actions) == ["delete Pod"]

    def test_a_pod_that_vanished_between_two_looks_is_created_again(self, world: TaskWorld) -> None:
        world.goes()
        world.forget()

        assert writes(world.settle()) == ["create Pod", "tell GPUTaskPodDeleted", "status"]
        assert world.condition("Running")[2] == (
            "pod train is gone, and nothing shows how it ended; the task runs again"
        )

    def test_a_pod_that_is_only_out_of_sight_runs_on(self, world: TaskWorld) -> None:
        """Its labels were removed. The refusal to create another one shows that it is there."""
        world.change(cpu="7")
        world.settle()
        pod = world.objects.pop(("Pod", "train"))
        world.departed.append((pod, world.now))

        assert writes(world.plan().actions) == ["create Pod"]
        world.objects["Pod", "train"] = pod
        assert world.settle() == []

    def test_its_losses_are_counted_and_its_next_pod_is_another(self, world: TaskWorld) -> None:
        world.is_to_go()
        world.settle()
        world.goes()
        world.settle()
        world.seconds += 5
        world.runs("node-2")
        world.settle()

        assert (world.status["restarts"], world.status["podUID"]) == (1, "uid-of-Pod-2")
        assert world.status["startTime"] == time(70)
        assert world.told() == ["GPUTaskPodCreated", "GPUTaskRunning", "GPUTaskPodDeleted", "GPUTaskRunning"]

    def test_a_node_that_is_unreachable_may_come_back(self, world: TaskWorld) -> None:
        conditions = [
            {"type": kind, **(row if isinstance(row, dict) else {"status": row})} for kind, row in lost(70).items()
        ]
        world.pod_is(
            "Running", node="node-1", conditions=conditions, containerStatuses=[running("gpu-task", since=5)]
        )

        assert world.settle() == []

    def test_a_pod_on_a_lost_node_is_forced_out_of_the_way(self, world: TaskWorld) -> None:
        world.heard = -3600
        world.runs()
        world.pod["status"]["conditions"] = [
            {"type": "Ready", "status": "False", "lastTransitionTime": time(65)},
            {"type": "ContainersReady", "status": "True"},
        ]
        world.is_to_go("DeletionByTaintManager")

        assert writes(world.settle()) == ["tell GPUTaskNodeLost", "status"]
        assert world.plan().again is not None
        assert writes(world.later(60)) == ["delete Pod", "create Pod", "status"]

    def test_a_pod_that_is_lost_again_and_again_is_replaced_ever_later(self) -> None:
        world = TaskWorld()
        world.settle()
        waits = []
        for _ in range(8):
            world.pod_is("Failed", node="node-1", reason="UnexpectedAdmissionError", message="no GPU")
            world.settle()
            begun = world.seconds
            while not world.has_pod():
                world.later(1)
            waits.append(world.seconds - begun)

        assert waits == [0, 10, 20, 40, 80, 160, 300, 300]
        assert world.told().count("GPUTaskPodFailed") == 8

    def test_a_pod_that_has_run_for_long_is_replaced_at_once(self, world: TaskWorld) -> None:
        for _ in range(12):
            world.seconds += 400
            world.is_to_go()
            world.goes()
            assert "create Pod" in writes(world.settle())
            world.runs()
            world.settle()

    def test_a_task_that_is_over_forces_nothing(self, world: TaskWorld) -> None:
        world.ends(0)
        world.seconds += 1
        world.is_to_go("DeletionByTaintManager")

        assert writes(world.settle()) == ["tell GPUTaskSucceeded", "status"]
