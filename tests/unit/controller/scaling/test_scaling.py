"""ScaleIns, ScaleOuts and `kubectl scale`: which workers join and leave, when, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller.trainings import TrainingWorld, pods_of, running_job
from tests.unit.controller.world import writes


@pytest.fixture
def world() -> TrainingWorld:
    """A job that runs, with three workers."""
    return running_job(3)


class TestScaleOut:
    def test_new_workers_are_no_hosts_until_all_of_them_are_ready(self) -> None:
        world = running_job()
        world.scale_out(2)
        world.ready("elastic-worker-2")
        world.settle()
        assert world.held() == {"elastic-worker-2": "ScaleOut", "elastic-worker-3": "ScaleOut"}
        assert world.hosts() == ["elastic-worker-0:1", "elastic-worker-1:1"]
        assert (world.status["phase"], world.status["currentScaler"]) == ("Scaling", "ScaleOut:ml/out")

        world.ready()
        world.settle()

        assert world.held() == {}
        assert world.hosts() == [f"elastic-worker-{number}:1" for number in range(4)]
        assert world.outcome("out") == ("ScaleSucceeded", "added elastic-worker-2, elastic-worker-3")
        assert (world.status["phase"], world.status["currentScaler"]) == ("Running", "")

    def test_the_spec_has_the_new_number_afterwards(self) -> None:
        world = running_job()

        world.scale_out(2)
        world.ready()
        world.settle()

        assert world.replicas == 4
        assert writes(world.later(20)) == ["status"]
        assert world.later(3600) == []

    def test_new_pods_name_their_scale_out_and_their_number(self) -> None:
        world = running_job()

        world.scale_out(1)

        labels = world.pod("elastic-worker-2")["metadata"]["labels"]
        assert (labels["scaleout-name"], labels["replica-index"]) == ("out", "2")

    def test_too_late_it_fails_and_only_what_it_added_goes(self) -> None:
        world = running_job()
        world.scale_out(2, timeout=30)
        world.ready("elastic-worker-2")
        assert pods_of(world.later(29)) == []

        done = world.later(2)

        assert pods_of(done) == ["delete elastic-worker-2", "delete elastic-worker-3"]
        assert world.outcome("out") == ("ScaleFailed", "after 30 s not Ready: elastic-worker-3; removed again")
        assert (world.wanted(), world.replicas, world.status["phase"]) == (["0", "1"], 2, "Running")

    def test_a_new_worker_that_fails_is_replaced_before_the_time_is_over(self) -> None:
        world = running_job()
        world.scale_out(1)
        world.fails("elastic-worker-2")
        world.settle()
        assert world.workers()[-1] == "elastic-worker-3"

        world.ready()
        world.settle()

        assert world.outcome("out") == ("ScaleSucceeded", "added elastic-worker-3")

    def test_more_than_the_most_is_refused(self) -> None:
        world = running_job(most=3)

        done = world.scale_out(2)

        assert pods_of(done) == []
        assert world.outcome("out") == ("ScaleFailed", "2 workers and 2 more are above the limit of 3")

    def test_its_deletion_removes_what_it_has_added(self) -> None:
        world = running_job()
        world.scale_out(1)

        del world.objects["ScaleOut", "out"]

        assert pods_of(world.settle()) == ["delete elastic-worker-2"]
        assert world.status["phase"] == "Running"


class TestScaleIn:
    def test_a_worker_goes_only_when_nothing_runs_in_it(self, world: TrainingWorld) -> None:
        world.scale_in(count=1)
        assert world.held() == {"elastic-worker-2": "ScaleIn"}
        assert world.hosts() == ["elastic-worker-0:1", "elastic-worker-1:1"]
        world.busy("elastic-worker-2")
        assert pods_of(world.later(10)) == []

        world.idle("elastic-worker-2")

        assert pods_of(world.settle()) == ["delete elastic-worker-2"]
        assert world.outcome("in") == ("ScaleSucceeded", "removed elastic-worker-2")
        assert world.replicas == 2

    def test_that_nothing_runs_is_written_down_before_the_pod_is_deleted(self, world: TrainingWorld) -> None:
        world.scale_in(count=1)
        world.idle("elastic-worker-2")

        done = writes(world.settle())

        assert done[:2] == ["status", "delete Pod"]

    def test_the_pods_own_grace_period_is_kept(self, world: TrainingWorld) -> None:
        world.scale_in(count=1)
        world.idle("elastic-worker-2")

        [deletion] = [action for action in world.settle() if writes([action]) == ["delete Pod"]]

        assert deletion.grace is None  # type: ignore[union-attr]

    def test_by_name_exactly_these_go(self) -> None:
        world = running_job(4)
        world.scale_in(podNames=["elastic-worker-1", "elastic-worker-2"])

        world.idle("elastic-worker-1", "elastic-worker-2")

        assert pods_of(world.settle()) == ["delete elastic-worker-1", "delete elastic-worker-2"]
        assert world.wanted() == ["0", "3"]

    def test_by_count_the_highest_numbers_go_in_whatever_order_they_came(self) -> None:
        world = running_job(restart="Always")
        world.scale_out(1)
        world.vanishes("elastic-worker-0")
        world.settle()
        world.ready()
        world.settle()
        assert world.wanted() == ["1", "2", "3"]

        world.scale_in(count=1)

        assert world.held() == {"elastic-worker-3": "ScaleIn"}

    def test_workers_that_leave_go_together_or_not_at_all(self) -> None:
        world = running_job(4)
        world.scale_in(count=2, timeout=60)
        world.idle("elastic-worker-2")
        world.busy("elastic-worker-3", 2)
        assert pods_of(world.later(59)) == []

        done = world.later(2)

        assert pods_of(done) == ["patch elastic-worker-2", "patch elastic-worker-3"]
        assert world.held() == {}
        assert world.outcome("in") == (
            "ScaleFailed",
            "after 60 s still in use, and they stay: elastic-worker-3 is in use by 2 commands",
        )
        assert world.hosts() == [f"elastic-worker-{number}:1" for number in range(4)]
        assert (world.wanted(), world.replicas) == (["0", "1", "2", "3"], 4)

    def test_with_force_they_go_at_the_time_limit(self, world: TrainingWorld) -> None:
        world.scale_in(count=1, timeout=60, force=True)
        world.busy("elastic-worker-2")
        assert pods_of(world.later(59)) == []

        assert pods_of(world.later(2)) == ["delete elastic-worker-2"]
        assert world.outcome("in")[0] == "ScaleSucceeded"

    def test_its_deletion_gives_the_hosts_back(self, world: TrainingWorld) -> None:
        world.scale_in(count=1)

        del world.objects["ScaleIn", "in"]

        assert pods_of(world.settle()) == ["patch elastic-worker-2"]
        assert (world.held(), world.wanted(), world.replicas) == ({}, ["0", "1", "2"], 3)

    def test_its_deletion_changes_nothing_once_the_workers_go(self, world: TrainingWorld) -> None:
        world.scale_in(count=1)
        world.idle("elastic-worker-2")
        for action in world.plan().actions:
            world.carry_out(action)

        del world.objects["ScaleIn", "in"]
        world.settle()

        assert (world.workers(), world.replicas) == (["elastic-worker-0", "elastic-worker-1"], 2)

    def test_a_worker_that_has_not_started_is_not_asked(self, world: TrainingWorld) -> None:
        world.pod("elastic-worker-2")["status"] = {"phase": "Pending", "conditions": []}

        done = world.scale_in(count=1)

        assert "delete elastic-worker-2" in pods_of(done)

    def test_fields_without_effect_are_named_in_the_outcome(self, world: TrainingWorld) -> None:
        world.scale_in(count=1)
        world.objects["ScaleIn", "in"]["spec"]["script"] = "/job/shrink.sh"

        world.idle("elastic-worker-2")
        world.settle()

        assert world.outcome("in")[1] == "removed elastic-worker-2; spec.script: no effect"


class TestInvalidScaleIns:
    """Nothing is lost, and each reports why."""

    @pytest.mark.parametrize(
        ("asked", "outcome"),
        [
            (
                {"podNames": ["elastic-worker-7"]},
                ("ScaleFailed", "nothing was removed; no worker of the job is named elastic-worker-7"),
            ),
            (
                {"podNames": []},
                ("ScaleFailed", "spec.toDelete.podNames: is an empty list; name the workers to remove"),
            ),
            (
                {"podNames": ["elastic-worker-0", "elastic-worker-1", "elastic-worker-2"]},
                ("ScaleFailed", "of 3 workers 0 would be left, below minReplicas=2"),
            ),
            ({"count": 2}, ("ScaleFailed", "of 3 workers 1 would be left, below minReplicas=2")),
            ({"count": 9}, ("ScaleFailed", "of 3 workers 0 would be left, below minReplicas=2")),
            (
                {"count": 1, "podNames": ["elastic-worker-1"]},
                ("ScaleFailed", "spec.toDelete: must have either count or podNames"),
            ),
            ({}, ("ScaleFailed", "spec.toDelete: is missing")),
            ({"count": 0}, ("ScaleFailed", "spec.toDelete.count: must be at least 1, got 0")),
            ({"count": "all"}, ("ScaleFailed", "spec.toDelete.count: expected a whole number, got 'all'")),
        ],
        ids=[
            "a pod that does not exist",
            "empty",
            "all",
            "below min",
            "too many",
            "both",
            "neither",
            "0",
            "a word",
        ],
    )
    def test_it_ends_at_once_and_no_worker_is_touched(self, asked: dict[str, Any], outcome: object) -> None:
        world = running_job(3, least=2)

        done = world.scale_in(**asked)

        assert world.outcome("in") == outcome
        assert pods_of(done) == []
        assert (world.wanted(), world.replicas, world.held()) == (["0", "1", "2"], 3, {})
        assert world.status["phase"] == "Running"


class TestNamesThatAreNoWorkers:
    @pytest.mark.parametrize("name", ["elastic-worker-7", "other-worker-0", "elastic-worker-00", "typo"])
    def test_a_scale_in_of_a_name_that_no_worker_ever_had_fails_with_the_reason_unknown_worker(
        self, world: TrainingWorld, name: str
    ) -> None:
        world.scale_in(podNames=[name])

        condition = world.objects["ScaleIn", "in"]["status"]["conditions"][-1]
        assert (condition["type"], condition["reason"]) == ("ScaleFailed", "UnknownWorker")
        assert condition["message"] == f"nothing was removed; no worker of the job is named {name}"
        assert ("Warning", "UnknownWorker", condition["message"]) in world.events

    def test_a_scale_in_of_a_worker_that_has_left_before_succeeds(self, world: TrainingWorld) -> None:
        world.scale_in("first", podNames=["elastic-worker-2"])
        world.idle("elastic-worker-2")
        world.settle()

        world.scale_in("again", podNames=["elastic-worker-2"])

        assert world.outcome("again") == (
            "ScaleSucceeded",
            "nothing was removed; already gone or leaving: elastic-worker-2",
        )

    def test_known_workers_leave_and_the_outcome_names_those_that_are_not(self) -> None:
        world = running_job(4)
        world.scale_in("first", podNames=["elastic-worker-3"])
        world.idle("elastic-worker-3")
        world.settle()
        world.scale_in("second", podNames=["typo", "elastic-worker-1", "elastic-worker-3", "elastic-worker-9"])
        world.idle("elastic-worker-1")

        world.settle()

        assert world.outcome("second")[0] == "ScaleSucceeded"
        assert world.outcome("second")[1] == (
            "removed elastic-worker-1; no worker of the job is named typo, elastic-worker-9; "
            "already gone or leaving: elastic-worker-3"
        )
        assert world.wanted() == ["0", "2"]

    def test_an_unknown_name_beside_a_worker_that_has_left_before_fails_too(self, world: TrainingWorld) -> None:
        world.scale_in("first", podNames=["elastic-worker-2"])
        world.idle("elastic-worker-2")
        world.settle()

        world.scale_in("again", podNames=["elastic-worker-2", "typo"])

        assert world.outcome("again") == (
            "ScaleFailed",
            "nothing was removed; no worker of the job is named typo; already gone or leaving: elastic-worker-2",
        )

    def test_a_scale_in_may_name_a_worker_by_any_number_of_digits(self, world: TrainingWorld) -> None:
        world.scale_in(podNames=["elastic-worker-" + "1" * 5000])

        assert world.outcome("in")[0] == "ScaleFailed"


class TestTheirOrder:
    def test_the_oldest_comes_first_and_the_next_waits(self) -> None:
        world = running_job(2)
        world.scale_out(1, "first")
        world.scale_out(1, "second")
        assert world.status["currentScaler"] == "ScaleOut:ml/first"
        assert world.outcome("second") == (
            "Created",
            "waiting until the job runs and earlier changes of its workers are done",
        )

        world.ready()
        world.settle()
        assert world.outcome("first")[0] == "ScaleSucceeded"
        world.ready()
        world.settle()

        assert world.outcome("second") == ("ScaleSucceeded", "added elastic-worker-3")

    def test_one_that_was_there_before_its_job_runs_waits_for_it(self) -> None:
        world = TrainingWorld()
        world.scale_out(1)
        assert world.outcome("out")[0] == "Created"

        world.run()
        world.ready()
        world.settle()

        assert world.outcome("out") == ("ScaleSucceeded", "added elastic-worker-2")

    def test_those_left_when_the_job_ends_have_failed(self) -> None:
        world = running_job(2)
        world.scale_out(1, "first")
        world.scale_out(1, "second")
        world.objects["Pod", "elastic-launcher-1"]["status"]["phase"] = "Succeeded"

        world.finish(completionTime="2026-05-04T12:01:00Z")

        assert world.outcome("first") == ("ScaleFailed", "the job does not run any more")
        assert world.outcome("second") == ("ScaleFailed", "the job has ended")

    def test_they_belong_to_their_job(self) -> None:
        world = running_job()

        world.scale_out(1)

        [owner] = world.objects["ScaleOut", "out"]["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("TrainingJob", "elastic", True)
