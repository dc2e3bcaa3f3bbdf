"""A task's life: what is created, deleted and told when its pod has come so far."""

from __future__ import annotations

import pytest

from mpirt.controller.model.actions import Delete, Rejection, WriteStatus
from mpirt.controller.model.roster import Source
from mpirt.controller.observed.nodes import Signal
from tests.unit.controller.gputasks.taskworld import NO_NODE, TaskWorld, gpu_task, named_task
from tests.unit.controller.jobs import Body, time
from tests.unit.controller.pods import lost, running, waiting
from tests.unit.controller.world import writes

CHECKPOINTABLE = {"mpirt.dev/checkpointable": "true"}


def foreign(**metadata: object) -> Body:
    """A pod of the task's name that somebody else has created."""
    return {"kind": "Pod", "metadata": {"name": "train", "namespace": "ml", **metadata}, "spec": {}, "status": {}}


class TestAnUndisturbedTask:
    def test_its_pod_is_created_then_this_is_told(self) -> None:
        world = TaskWorld()

        assert writes(world.settle()) == ["create Pod", "tell GPUTaskPodCreated", "status"]
        assert world.why() == ("Pending", "GPUTaskPending")

    def test_it_costs_seven_writes(self) -> None:
        world = TaskWorld()
        world.start()
        world.ends(0)
        world.settle()

        assert world.writes == 7
        assert world.told() == ["GPUTaskPodCreated", "GPUTaskRunning", "GPUTaskSucceeded"]

    def test_nothing_is_written_while_nothing_happens(self) -> None:
        world = TaskWorld()
        world.start()

        assert world.later(3600) == []

    def test_its_status_says_where_and_since_when_it_runs(self) -> None:
        world = TaskWorld()
        world.start()

        assert {name: world.status[name] for name in ("phase", "podName", "podUID", "nodeName", "startTime")} == {
            "phase": "Running",
            "podName": "train",
            "podUID": "uid-of-Pod",
            "nodeName": "node-1",
            "startTime": time(5),
        }
        assert world.condition("Running") == (True, "GPUTaskRunning", "pod train runs on node node-1")

    def test_its_success_is_told_with_the_time_of_its_end(self) -> None:
        world = TaskWorld()
        world.start()
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
        assert world.job is not None
        world.job["metadata"]["deletionTimestamp"] = time(1)

        assert world.settle() == []

    def test_a_pod_that_has_a_node_is_told_later_together_with_what_follows(self) -> None:
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
    def test_a_task_that_ends_by_itself_has_failed(self, code: int, reason: str, said: str, message: str) -> None:
        world = TaskWorld()
        world.start()
        world.ends(code, reason, message="no data")
        world.settle()

        assert world.why() == ("Failed", said)
        assert world.condition("Failed") == (True, said, f"pod train: container gpu-task {message}")

    def test_its_templates_deadline_is_its_end(self) -> None:
        world = TaskWorld()
        world.start()
        world.pod_is("Failed", reason="DeadlineExceeded", message="Pod was active too long")
        world.settle()

        assert world.why() == ("Failed", "GPUTaskDeadlineExceeded")

    def test_a_pod_that_has_failed_without_a_word_is_the_end(self) -> None:
        world = TaskWorld()
        world.start()
        world.pod_is("Failed")
        world.settle()

        assert world.why() == ("Failed", "GPUTaskFailed")

    @pytest.mark.parametrize("code", [0, 1])
    def test_an_end_is_final_whatever_becomes_of_the_pod(self, code: int) -> None:
        world = TaskWorld()
        world.start()
        world.ends(code)
        world.settle()
        world.goes()

        assert world.settle() == []
        world.forget()
        assert world.settle() == []
        world.change(cpu="2")
        assert world.settle() == []

    def test_a_pod_that_has_ended_and_is_gone_before_anybody_looked_is_the_end(self) -> None:
        world = TaskWorld()
        world.start()
        world.ends(0)
        world.goes()

        assert writes(world.settle()) == ["tell GPUTaskSucceeded", "status"]


class TestWaiting:
    def test_it_says_why_no_node_takes_it(self) -> None:
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

    def test_it_says_that_its_image_cannot_be_pulled(self) -> None:
        world = TaskWorld()
        world.settle()
        world.pod_is("Pending", node="node-1", containerStatuses=[waiting("gpu-task", "ErrImagePull")])
        world.settle()

        assert world.why() == ("Pending", "GPUTaskNotStarting")
        assert "ImagePullBackOff: image mpi:4 can't be pulled" in world.condition("Running")[2]

    def test_it_says_what_the_api_server_has_against_its_pod(self) -> None:
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

    def test_an_invalid_task_is_told_which_field_is_wrong(self) -> None:
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

        assert "belongs to nobody" in world.condition("Running")[2]

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
    def test_a_task_whose_pod_is_deleted_runs_again(self, disruption: str, reason: str) -> None:
        world = TaskWorld()
        world.start()
        world.is_to_go(disruption)

        assert writes(world.settle()) == [f"tell {reason}", "status"]
        assert world.why() == ("Pending", reason)
        world.ends(143)
        assert world.settle() == []
        world.goes()
        assert writes(world.settle()) == ["create Pod"]

    def test_a_process_that_ends_well_because_it_was_told_to_has_not_succeeded(self) -> None:
        world = TaskWorld()
        world.start()
        world.is_to_go("PreemptionByScheduler")
        world.ends(0)
        world.settle()

        assert world.why() == ("Pending", "GPUTaskPreempted")
        assert world.condition("Running")[2] == (
            "pod train ended with code 0 (Completed) while it was being deleted (PreemptionByScheduler); "
            "the task runs again"
        )

    def test_an_end_before_the_deletion_counts(self) -> None:
        world = TaskWorld()
        world.start()
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
    def test_a_pod_that_its_node_has_ended_makes_way_for_another(self, reason: str, said: str) -> None:
        world = TaskWorld()
        world.start()
        world.pod_is("Failed", node="node-1", reason=reason, message="The node was low on memory.")

        assert writes(world.settle()) == [f"tell {said}", "status", "delete Pod", "create Pod"]

    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            pytest.param(255, "Unknown", id="of containerd"),
            pytest.param(137, "ContainerStatusUnknown", id="of the kubelet"),
        ],
    )
    def test_a_pod_whose_node_has_restarted_makes_way_for_another(self, code: int, reason: str) -> None:
        world = TaskWorld()
        world.start()
        world.ends(code, reason)

        assert writes(world.settle()) == ["tell GPUTaskNodeLost", "status", "delete Pod", "create Pod"]
        assert world.condition("Running")[2] == (
            f"pod train was lost with its node node-1 ({reason}); the task runs again"
        )

    def test_a_pod_that_its_node_has_told_to_end_makes_way_for_another(self) -> None:
        world = TaskWorld()
        world.start()
        world.pod["status"]["conditions"].append(
            {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        )
        world.ends(143)

        assert writes(world.settle()) == ["tell GPUTaskEvicted", "status", "delete Pod", "create Pod"]

    def test_what_was_told_is_not_told_again_before_the_pod_is_deleted(self) -> None:
        world = TaskWorld()
        world.start()
        world.pod_is("Failed", node="node-1", reason="Evicted", message="disk")
        for action in world.plan().actions:
            if not isinstance(action, Delete):
                world.carry_out(action)

        assert writes(world.plan().actions) == ["delete Pod"]

    def test_a_pod_that_vanished_while_nobody_looked_is_created_again(self) -> None:
        world = TaskWorld()
        world.start()
        world.goes()
        world.forget()

        assert writes(world.settle()) == ["create Pod", "tell GPUTaskPodDeleted", "status"]
        assert world.condition("Running")[2] == (
            "pod train is gone, and nothing shows how it ended; the task runs again"
        )

    def test_a_pod_that_is_only_out_of_sight_runs_on(self) -> None:
        """Somebody has removed its labels. That it is there is told by the answer to the creation of another."""
        world = TaskWorld()
        world.start()
        world.change(cpu="7")
        world.settle()
        pod = world.objects.pop(("Pod", "train"))
        world.departed.append((pod, world.now))

        assert writes(world.plan().actions) == ["create Pod"]
        world.objects["Pod", "train"] = pod
        assert world.settle() == []

    def test_its_losses_are_counted_and_its_next_pod_is_another(self) -> None:
        world = TaskWorld()
        world.start()
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

    def test_a_node_that_is_unreachable_may_come_back(self) -> None:
        world = TaskWorld()
        world.start()
        conditions = [
            {"type": kind, **(row if isinstance(row, dict) else {"status": row})} for kind, row in lost(70).items()
        ]
        world.pod_is(
            "Running", node="node-1", conditions=conditions, containerStatuses=[running("gpu-task", since=5)]
        )

        assert world.settle() == []

    def test_a_pod_on_a_lost_node_is_forced_out_of_the_way(self) -> None:
        world = TaskWorld()
        world.start()
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

    def test_a_pod_that_has_run_for_long_is_replaced_at_once(self) -> None:
        world = TaskWorld()
        world.start()
        for _ in range(12):
            world.seconds += 400
            world.is_to_go()
            world.goes()
            assert "create Pod" in writes(world.settle())
            world.runs()
            world.settle()

    def test_a_task_that_is_over_forces_nothing(self) -> None:
        world = TaskWorld()
        world.start()
        world.ends(0)
        world.seconds += 1
        world.is_to_go("DeletionByTaintManager")

        assert writes(world.settle()) == ["tell GPUTaskSucceeded", "status"]


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

    def test_a_task_that_runs_is_told_and_left_alone(self) -> None:
        world = TaskWorld()
        world.start()
        world.change(memory="32Gi")

        assert writes(world.settle()) == ["tell GPUTaskOutdated", "status"]
        assert world.condition("Outdated") == (
            True,
            "GPUTaskOutdated",
            "the task was changed while it runs; its pod is left alone. Delete pod train to apply it",
        )
        assert world.why() == ("Running", "GPUTaskRunning")

    def test_nothing_is_said_any_more_when_the_change_is_undone(self) -> None:
        world = TaskWorld()
        world.start()
        world.change(memory="32Gi")
        world.settle()
        world.change(memory="16Gi")
        world.settle()

        assert [row["type"] for row in world.status["conditions"]] == ["Running"]

    def test_an_invalid_change_of_a_task_that_runs_is_told(self) -> None:
        world = TaskWorld()
        world.start()
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
