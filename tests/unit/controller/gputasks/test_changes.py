"""A task that is changed while it runs, and one whose node is about to go."""

from __future__ import annotations

import pytest

from mpirt.controller.model.actions import Delete, WriteStatus
from mpirt.controller.model.roster import Source
from mpirt.controller.observed.nodes import Signal
from tests.unit.controller.gputasks.taskworld import CHECKPOINTABLE, TaskWorld, named_task
from tests.unit.controller.world import writes


@pytest.fixture
def world() -> TaskWorld:
    """A task that runs."""
    world = TaskWorld()
    world.start()
    return world


class TestAChange:
    def test_a_pod_that_waits_is_created_again(self) -> None:
        world = TaskWorld()
        world.settle()
        world.unscheduled()
        world.settle()
        world.change(gpu="a100")

        assert writes(world.settle()) == ["status", "delete Pod", "create Pod"]
        assert world.pod["spec"]["nodeSelector"] == {"falldio.com/gpu": "a100"}
        assert world.status["observedGeneration"] == 2

    def test_its_deletion_is_no_loss(self) -> None:
        world = TaskWorld()
        world.settle()
        world.pod_is("Pending", node="node-1")
        world.change(gpu="a100")
        actions = world.plan().actions
        for action in actions:
            if isinstance(action, WriteStatus):
                world.carry_out(action)
        world.is_to_go()

        assert world.settle() == []
        world.goes()
        assert writes(world.settle()) == ["create Pod"]
        assert "GPUTaskPodDeleted" not in world.told()

    def test_a_pod_that_begins_in_this_moment_is_not_deleted(self) -> None:
        world = TaskWorld()
        world.settle()
        world.pod["metadata"]["resourceVersion"] = "7"
        world.change(gpu="a100")

        deletion = world.plan().actions[-1]

        assert isinstance(deletion, Delete)
        assert deletion.version == "7"

    def test_a_change_of_a_task_that_runs_is_reported_and_its_pod_left_alone(self, world: TaskWorld) -> None:
        world.change(memory="32Gi")

        assert writes(world.settle()) == ["tell GPUTaskOutdated", "status"]
        assert world.condition("Outdated") == (
            True,
            "GPUTaskOutdated",
            "the task was changed while it runs; its pod is left alone. Delete pod train to apply it",
        )
        assert world.why() == ("Running", "GPUTaskRunning")

    def test_the_condition_is_gone_when_the_change_is_undone(self, world: TaskWorld) -> None:
        world.change(memory="32Gi")
        world.settle()
        world.change(memory="16Gi")
        world.settle()

        assert [row["type"] for row in world.status["conditions"]] == ["Running"]

    def test_an_invalid_change_of_a_task_that_runs_is_told(self, world: TaskWorld) -> None:
        world.change(memory="16gi")
        world.settle()

        assert world.condition("Outdated")[2].startswith("spec.memory: must be a quantity")

    def test_an_invalid_change_keeps_the_pod_that_waits(self) -> None:
        world = TaskWorld()
        world.settle()
        world.pod_is("Pending")
        world.change(memory="16gi")

        assert writes(world.settle()) == ["tell GPUTaskFailedValidation", "status"]
        assert world.has_pod()

    def test_a_pod_that_has_lost_its_digest_counts_as_current(self) -> None:
        world = TaskWorld()
        world.settle()
        world.pod["metadata"]["annotations"] = {}
        world.change(gpu="a100")
        world.settle()

        assert world.pod["spec"]["nodeSelector"] == {"falldio.com/gpu": "rtx4090"}


class TestANodeThatIsAboutToGo:
    GOING = Signal(Source.NODE_TAINT, "has the taint mpirt.dev/node-going", 120)

    def test_a_task_that_has_agreed_leaves_it(self) -> None:
        world = TaskWorld(named_task("train", annotations=CHECKPOINTABLE))
        world.start()
        world.nodes["node-1"] = self.GOING

        assert writes(world.settle()) == ["tell GPUTaskMoved", "status", "delete Pod", "create Pod"]
        assert world.condition("Running")[2] == (
            "node node-1 has the taint mpirt.dev/node-going; pod train is ended, and the task continues elsewhere"
        )

    def test_it_leaves_the_same_node_only_once(self) -> None:
        world = TaskWorld(named_task("train", annotations=CHECKPOINTABLE))
        world.start()
        world.nodes["node-1"] = self.GOING
        world.settle()
        world.runs("node-1")

        assert writes(world.settle()) == ["tell GPUTaskRunning", "status"]
        assert world.status["leftNodeName"] == "node-1"

    def test_it_may_leave_the_next_one(self) -> None:
        world = TaskWorld(named_task("train", annotations=CHECKPOINTABLE))
        world.start()
        world.nodes["node-1"] = world.nodes["node-2"] = self.GOING
        world.settle()
        world.runs("node-2")

        assert "tell GPUTaskMoved" in writes(world.settle())

    @pytest.mark.parametrize(
        ("annotations", "source"),
        [
            pytest.param({}, Source.NODE_TAINT, id="without its consent"),
            pytest.param({"mpirt.dev/checkpointable": "yes"}, Source.NODE_TAINT, id="without the word true"),
            pytest.param(CHECKPOINTABLE, Source.NODE_CORDONED, id="that is only cordoned"),
        ],
    )
    def test_a_task_stays(self, annotations: dict[str, str], source: Source) -> None:
        world = TaskWorld(named_task("train", annotations=annotations))
        world.start()
        world.nodes["node-1"] = Signal(source, "goes", 120)

        assert world.settle() == []

    def test_a_task_that_does_not_run_yet_stays(self) -> None:
        world = TaskWorld(named_task("train", annotations=CHECKPOINTABLE))
        world.settle()
        world.pod_is("Pending", node="node-1")
        world.nodes["node-1"] = self.GOING

        assert world.settle() == []
