"""A task's life: what is created, deleted and reported as its pod comes and goes."""

from __future__ import annotations

import pytest

from mpirt.controller.model.actions import Rejection
from tests.unit.controller.gputasks.taskworld import NO_NODE, TaskWorld, gpu_task
from tests.unit.controller.jobs import Body, time
from tests.unit.controller.pods import waiting
from tests.unit.controller.world import writes


def foreign(**metadata: object) -> Body:
    """A pod of the task's name of another owner."""
    return {"kind": "Pod", "metadata": {"name": "train", "namespace": "ml", **metadata}, "spec": {}, "status": {}}


@pytest.fixture
def world() -> TaskWorld:
    """A task that runs."""
    world = TaskWorld()
    world.start()
    return world


class TestAnUndisturbedTask:
    def test_its_pod_is_created_then_this_is_reported(self) -> None:
        world = TaskWorld()

        assert writes(world.settle()) == ["create Pod", "tell GPUTaskPodCreated", "status"]
        assert world.why() == ("Pending", "GPUTaskPending")

    def test_it_costs_seven_writes(self, world: TaskWorld) -> None:
        world.ends(0)
        world.settle()

        assert world.writes == 7
        assert world.told() == ["GPUTaskPodCreated", "GPUTaskRunning", "GPUTaskSucceeded"]

    def test_nothing_is_written_while_nothing_happens(self, world: TaskWorld) -> None:
        assert world.later(3600) == []

    def test_the_status_of_a_task_has_the_node_and_the_time_of_its_start(self, world: TaskWorld) -> None:
        assert {name: world.status[name] for name in ("phase", "podName", "podUID", "nodeName", "startTime")} == {
            "phase": "Running",
            "podName": "train",
            "podUID": "uid-of-Pod",
            "nodeName": "node-1",
            "startTime": time(5),
        }
        assert world.condition("Running") == (True, "GPUTaskRunning", "pod train runs on node node-1")

    def test_its_success_is_reported_with_the_time_of_its_end(self, world: TaskWorld) -> None:
        world.ends(0)
        world.settle()

        assert world.why() == ("Succeeded", "GPUTaskSucceeded")
        assert world.condition("Succeeded") == (
            True,
            "GPUTaskSucceeded",
            "pod train ended with code 0 (Completed)",
        )
        assert world.status["completionTime"] == time(65)

    def test_a_task_that_is_being_deleted_is_left_to_the_garbage_collector(self) -> None:
        world = TaskWorld()
        world.job["metadata"]["deletionTimestamp"] = time(1)

        assert world.settle() == []

    def test_the_node_of_a_pod_is_reported_later_together_with_what_follows(self) -> None:
        world = TaskWorld()
        world.settle()
        world.seconds += 1
        world.pod_is("Pending", node="node-2")

        assert world.settle() == []
        assert world.plan().again is not None
        assert writes(world.later(10)) == ["status"]
        assert world.status["nodeName"] == "node-2"


class TestFailures:
    @pytest.mark.parametrize(
        ("code", "reason", "said", "message"),
        [
            pytest.param(3, "", "GPUTaskExitCode", "ended with code 3: no data", id="exit code"),
            pytest.param(
                137, "OOMKilled", "GPUTaskOOMKilled", "ended with code 137 (OOMKilled): no data", id="memory"
            ),
        ],
    )
    def test_a_task_that_ends_by_itself_has_failed(
        self, world: TaskWorld, code: int, reason: str, said: str, message: str
    ) -> None:
        world.ends(code, reason, message="no data")
        world.settle()

        assert world.why() == ("Failed", said)
        assert world.condition("Failed") == (True, said, f"pod train: container gpu-task {message}")

    def test_its_templates_deadline_is_its_end(self, world: TaskWorld) -> None:
        world.pod_is("Failed", reason="DeadlineExceeded", message="Pod was active too long")
        world.settle()

        assert world.why() == ("Failed", "GPUTaskDeadlineExceeded")

    def test_a_pod_that_has_failed_without_a_word_is_the_end(self, world: TaskWorld) -> None:
        world.pod_is("Failed")
        world.settle()

        assert world.why() == ("Failed", "GPUTaskFailed")

    @pytest.mark.parametrize("code", [0, 1])
    def test_an_end_is_final_whatever_becomes_of_the_pod(self, world: TaskWorld, code: int) -> None:
        world.ends(code)
        world.settle()
        world.goes()

        assert world.settle() == []
        world.forget()
        assert world.settle() == []
        world.change(cpu="2")
        assert world.settle() == []

    def test_a_pod_that_has_ended_and_is_gone_between_two_looks_is_the_end(self, world: TaskWorld) -> None:
        world.ends(0)
        world.goes()

        assert writes(world.settle()) == ["tell GPUTaskSucceeded", "status"]


class TestWaiting:
    def test_a_task_that_finds_no_node_reports_why(self) -> None:
        world = TaskWorld()
        world.settle()
        world.unscheduled()

        assert writes(world.settle()) == ["tell GPUTaskUnschedulable", "status"]
        assert world.condition("Running")[2] == f"pod train is not scheduled: Unschedulable: {NO_NODE}"

    def test_what_a_scheduler_rewords_is_written_every_ten_seconds_at_most(self) -> None:
        world = TaskWorld()
        world.settle()
        world.unscheduled()
        world.settle()
        world.seconds += 1
        world.unscheduled("0/5 nodes are available")

        assert world.settle() == []
        assert writes(world.later(9)) == ["status"]

    def test_an_image_that_cannot_be_pulled_is_reported(self) -> None:
        world = TaskWorld()
        world.settle()
        world.pod_is("Pending", node="node-1", containerStatuses=[waiting("gpu-task", "ErrImagePull")])
        world.settle()

        assert world.why() == ("Pending", "GPUTaskNotStarting")
        assert "ImagePullBackOff: image mpi:4 can't be pulled" in world.condition("Running")[2]

    def test_a_pod_that_the_api_server_refuses_is_reported_with_its_message(self) -> None:
        world = TaskWorld()
        world.refuse["Pod"] = Rejection(
            "Pod", "", "no PriorityClass with name gpu-low-priority was found", final=False
        )
        world.settle()

        assert world.why() == ("Pending", "GPUTaskRefused")
        assert world.condition("Running")[2].endswith("no PriorityClass with name gpu-low-priority was found")

    def test_it_goes_on_when_the_api_server_takes_its_pod(self) -> None:
        world = TaskWorld()
        world.refuse["Pod"] = Rejection("Pod", "", "no PriorityClass", final=False)
        world.settle()
        world.refuse.clear()
        world.rejections.clear()

        assert writes(world.settle())[0] == "create Pod"

    def test_an_invalid_field_of_a_task_is_reported(self) -> None:
        world = TaskWorld(gpu_task(memory="16gi"))
        world.settle()

        assert world.why() == ("Pending", "GPUTaskFailedValidation")
        assert world.condition("Running")[2].startswith("spec.memory: must be a quantity such as 16Gi")
        assert not world.has_pod()


class TestAPodOfSomebodyElse:
    def test_it_is_left_alone_and_told(self) -> None:
        world = TaskWorld()
        owner = {"kind": "ReplicaSet", "name": "web", "uid": "other", "controller": True}
        world.put(foreign(ownerReferences=[owner]))

        assert writes(world.settle()) == ["tell ErrResourceExists", "status"]
        assert world.condition("Running")[2] == (
            "pod train exists and belongs to ReplicaSet web; the task waits until the name is free"
        )

    def test_it_may_belong_to_nobody(self) -> None:
        world = TaskWorld()
        world.put(foreign())
        world.settle()

        assert "has no owner" in world.condition("Running")[2]

    def test_the_task_continues_when_the_name_is_free(self) -> None:
        world = TaskWorld()
        world.put(foreign())
        world.settle()
        world.objects.clear()

        assert writes(world.settle()) == ["create Pod"]

    @pytest.mark.parametrize(
        "metadata",
        [
            pytest.param({"deletionTimestamp": time(9)}, id="that is being deleted"),
            pytest.param(
                {"ownerReferences": [{"kind": "GPUTask", "name": "train", "uid": "old", "controller": True}]},
                id="of an earlier task of the name",
            ),
        ],
    )
    def test_a_pod_that_will_go_is_waited_for(self, metadata: Body) -> None:
        world = TaskWorld()
        world.put(foreign(**metadata))
        world.settle()

        assert world.why() == ("Pending", "GPUTaskPending")
        assert world.condition("Running")[2] == "waiting for the previous pod train to terminate"
