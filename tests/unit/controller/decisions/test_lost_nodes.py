"""Pods on nodes that are lost: when their deletion is forced, when never, and what is said meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.actions import Delete
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at, template
from tests.unit.controller.world import World, settled, started, with_workers, writes

# A node that was found unreachable at 30, a toleration of 60 s and a grace period of 30 s.
LOST, DELETED, OVER = 30, 90, 120


def worker_on_node_2(**fields: Any) -> Body:
    given: dict[str, Any] = {"node": "node-2", "conditions": pods.given_up(LOST), "deleted": OVER}
    return pods.worker(1, **{**given, **fields})


def forced(world: World, *, at_second: float) -> bool:
    """Whether a pod is deleted by that second."""
    return "delete Pod" in writes(world.later(at_second - world.seconds))


def running_beside(pod: Body, *, heard: float | None = None) -> World:
    """A job that runs, with a worker on node-1 and this pod."""
    world = started()
    world.heard = heard
    world.workers_are(pods.worker(0), pod)
    return world


def not_deleted() -> Body:
    body = worker_on_node_2(conditions=pods.lost(LOST))
    del body["metadata"]["deletionTimestamp"]
    return body


def kept_by_a_finalizer() -> Body:
    body = worker_on_node_2()
    body["metadata"]["deletionGracePeriodSeconds"] = 0
    return body


DRAINED = {"DisruptionTarget": {"status": "True", "reason": "EvictionByEvictionAPI"}}
NOT_READY = {**pods.not_ready(), **pods.by_taint_manager()}
LEFT_ALONE = [
    pytest.param(not_deleted(), id="Kubernetes has not deleted it"),
    pytest.param(worker_on_node_2(conditions=pods.lost(LOST)), id="a person has deleted it"),
    pytest.param(worker_on_node_2(conditions={**pods.lost(LOST), **DRAINED}), id="it was drained before"),
    pytest.param(kept_by_a_finalizer(), id="a finalizer keeps it, and it was forced before"),
    pytest.param(worker_on_node_2(phase="Failed"), id="it has ended"),
    pytest.param(
        worker_on_node_2(conditions=NOT_READY, deleted=40, node="node-1"), id="its node reports another as Ready"
    ),
]


@pytest.mark.parametrize("pod", LEFT_ALONE)
def test_a_pod_is_left_alone_for_ever(pod: Body) -> None:
    assert not forced(running_beside(pod), at_second=86400)


@pytest.mark.uncounted
class TestThePodOfALostNode:
    def test_is_force_deleted_when_its_toleration_and_its_grace_period_are_over(self) -> None:
        world = running_beside(worker_on_node_2())
        world.seconds = DELETED
        world.settle()
        assert world.plan().again == at(OVER)

        world.seconds = OVER
        plan = world.plan()

        why = "its grace period is over and node node-2 is unreachable"
        assert plan.actions[0] == Delete("Pod", "train-worker-1", "uid-of-train-worker-1", why, grace=0)

    def test_of_a_suspended_job_is_force_deleted_then_too(self) -> None:
        world = started()
        world.change(runPolicy={"suspend": True})
        world.settle()
        world.put(worker_on_node_2())

        assert not forced(world, at_second=OVER - 1)
        assert writes(world.later(1)) == ["delete Pod", "status"]

    def test_holds_the_next_launcher_back_until_it_is_force_deleted(self) -> None:
        world = World()
        world.start(node="node-2")
        lost = pods.launcher(node="node-2", conditions=pods.given_up(LOST), deleted=OVER)
        world.launcher_is(lost, active=1)
        world.lose_launcher_job()

        assert not forced(world, at_second=OVER - 1)
        assert "Job" not in world.kinds()

        assert forced(world, at_second=OVER)
        assert "Job" in world.kinds()


class TestAPodThatWasNotReadyWhenItsNodeWasLost:
    """Nothing in it shows whether its node is lost, or only slow to end it."""

    @pytest.mark.parametrize(
        ("phase", "patience"),
        [pytest.param("Pending", 30, id="not begun"), pytest.param("Running", 300, id="begun")],
    )
    def test_is_force_deleted_long_after_its_grace_period_if_the_taint_manager_deleted_it(
        self, phase: str, patience: int
    ) -> None:
        world = with_workers(pods.worker(0), worker_on_node_2(phase=phase, conditions=NOT_READY, deleted=40))
        world.seconds = 40
        world.settle()
        assert world.plan().again == at(40 + patience)

        world.seconds = 40 + patience
        plan = world.plan()

        why = "its grace period is over and node node-2 has not confirmed its termination"
        assert plan.actions[0] == Delete("Pod", "train-worker-1", "uid-of-train-worker-1", why, grace=0)

    @pytest.mark.parametrize("phase", ["Pending", "Running"])
    def test_is_left_alone_if_anybody_else_deleted_it_however_slow_its_end_is(self, phase: str) -> None:
        world = settled()
        slow = worker_on_node_2(phase=phase, conditions=pods.not_ready(), deleted=40)
        world.workers_are(pods.worker(0), slow)

        assert not forced(world, at_second=86400)


class TestWhenTheClusterIsAtFault:
    @pytest.mark.parametrize(
        ("deleted", "heard", "second"),
        [
            pytest.param(900, None, 900, id="after all of a long grace period"),
            pytest.param(LOST + 2, None, LOST + 30, id="after half a minute, however short its toleration is"),
            pytest.param(40, 100, 190, id="later after an outage of the API server"),
            pytest.param(OVER, -60, OVER, id="at once if the outage is long ago"),
        ],
    )
    def test_a_deletion_is_forced(self, deleted: float, heard: float | None, second: float) -> None:
        world = running_beside(worker_on_node_2(deleted=deleted), heard=heard)

        assert not forced(world, at_second=second - 1)
        assert world.plan().again == at(second)
        assert forced(world, at_second=second)

    def test_where_all_nodes_are_silent_and_kubernetes_deletes_nothing_nothing_is_forced(self) -> None:
        world = started()
        silent = pods.lost(LOST)
        world.workers_are(pods.worker(0, conditions=silent), pods.worker(1, node="node-2", conditions=silent))

        assert not forced(world, at_second=600)

    def test_where_all_nodes_are_silent_but_kubernetes_has_given_them_up_it_waits_for_five_minutes_more(
        self,
    ) -> None:
        world = started()
        lost: dict[str, Any] = {"conditions": pods.given_up(LOST), "deleted": OVER}
        world.workers_are(pods.worker(0, **lost), pods.worker(1, node="node-2", **lost))

        assert not forced(world, at_second=OVER + 299)
        assert world.plan().again == at(OVER + 300)
        assert writes(world.later(1)).count("delete Pod") == 2

    def test_where_no_node_confirms_the_end_of_pods_that_were_not_ready_nothing_is_forced(self) -> None:
        world = settled()
        silent: dict[str, Any] = {"phase": "Pending", "conditions": NOT_READY, "deleted": 40}
        world.workers_are(pods.worker(0, **silent), pods.worker(1, node="node-2", **silent))

        assert not forced(world, at_second=600)


class TestWhatIsSaid:
    def test_nothing_of_a_node_that_comes_back_within_half_a_minute(self) -> None:
        world = World()
        world.start(node="node-2")
        told = world.condition("Running"), list(world.events)
        world.workers_are(pods.worker(0), pods.worker(1, node="node-2", conditions=pods.lost(LOST)))
        world.launcher_is(pods.launcher(node="node-2", conditions=pods.lost(LOST)), active=1)
        world.later(25)

        world.workers_are(pods.worker(0), pods.worker(1, node="node-2"))
        world.launcher_is(pods.launcher(node="node-2"), active=1)

        assert not forced(world, at_second=600)
        assert (world.condition("Running"), world.events) == told

    def test_nothing_after_an_outage_of_the_api_server_until_nodes_had_time_to_come_back(self) -> None:
        world = running_beside(worker_on_node_2(conditions=pods.lost(LOST)), heard=40)
        del world.objects["Pod", "train-worker-1"]["metadata"]["deletionTimestamp"]
        told = list(world.events)

        world.later(129 - world.seconds)

        assert world.events == told
        world.later(11)
        assert world.condition("Running")[2].endswith("train-worker-1 was lost with its node node-2")

    def test_at_once_that_a_launcher_is_lost_which_kubernetes_has_deleted(self) -> None:
        world = World()
        world.start(node="node-2")

        world.launcher_is(pods.launcher(node="node-2", conditions=pods.given_up(20), deleted=60), active=1)
        world.later(5)

        assert world.condition("Restarting")[2] == "launcher pod train-launcher-1 was lost with its node node-2"


class TestTheDefault:
    """Tolerations in the pods that we make, for all to see."""

    OURS = [  # noqa: RUF012  a literal
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]

    def test_is_to_leave_a_lost_node_after_a_minute(self) -> None:
        world = started()

        for kind in ("StatefulSet", "Job"):
            assert world.get(kind)["spec"]["template"]["spec"]["tolerations"] == self.OURS

    def test_rolls_no_job_that_runs_when_the_controller_is_upgraded(self) -> None:
        world = started()

        for kind in ("StatefulSet", "Job"):
            del world.get(kind)["spec"]["template"]["spec"]["tolerations"]
        # Earlier versions put no digests there.
        del world.get("Job")["spec"]["template"]["metadata"]["annotations"]

        assert world.later(3600) == []

    def test_gives_way_to_a_toleration_of_the_users_for_the_same_taint(self) -> None:
        own = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 3600}
        pod = template({"name": "w", "image": "mpi:4"}, tolerations=[own])

        world = started(worker=pod, launcher=pod)

        for kind in ("StatefulSet", "Job"):
            assert world.get(kind)["spec"]["template"]["spec"]["tolerations"] == [own, self.OURS[0]]
