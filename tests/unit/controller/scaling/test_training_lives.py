"""Lives of TrainingJobs: from the job object to its end, on a cluster of dictionaries."""

from __future__ import annotations

import pytest

from mpirt.controller.model.actions import Rejection
from tests.unit.controller.jobs import container, template
from tests.unit.controller.trainings import TrainingWorld, pods_of, training_job
from tests.unit.controller.world import writes


@pytest.fixture
def world() -> TrainingWorld:
    """A job that runs."""
    world = TrainingWorld()
    world.run()
    return world


class TestStart:
    def test_names_are_written_down_before_pods_are_created(self) -> None:
        world = TrainingWorld()

        first = world.plan()
        for action in first.actions:
            world.carry_out(action)
        second = world.plan()

        assert "create Pod" not in writes(first.actions)
        assert world.status["scaling"]["pending"] == ["elastic-worker-0", "elastic-worker-1"]
        assert writes(second.actions)[:2] == ["create Pod", "create Pod"]

    def test_the_life_until_it_runs_is_these_writes(self) -> None:
        world = TrainingWorld()

        world.run()

        assert writes(world.done) == [
            *("try Job", "try Pod", "create ConfigMap", "create ServiceAccount"),
            *("create Service", "tell TrainingJobCreated", "status"),
            *("create Pod", "create Pod", "tell TrainingJobWorkerCreated", "status"),
            *(
                "create Role",
                "create RoleBinding",
                "create Job",
                "status",
                "status",
                "tell TrainingJobRunning",
                "status",
            ),
        ]
        assert world.status["phase"] == "Running"
        assert world.status["currentWorkers"] == ["elastic-worker-0", "elastic-worker-1"]
        assert world.later(3600) == []

    def test_the_launcher_starts_when_all_workers_are_ready(self) -> None:
        world = TrainingWorld()
        world.settle()
        world.ready("elastic-worker-0")
        assert "create Job" not in writes(world.later(5))

        world.ready()

        assert "create Job" in writes(world.settle())

    def test_a_worker_that_may_not_be_created_is_reported_and_not_tried_at_once(self) -> None:
        world = TrainingWorld()
        for action in world.plan().actions:
            world.carry_out(action)
        world.refuse["elastic-worker-1"] = Rejection("Pod", "", "exceeded quota: gpus", final=False)

        done = world.settle()

        assert pods_of(done) == ["create elastic-worker-0", "create elastic-worker-1"]
        assert world.condition("Running")[1] == "TrainingJobRefused"
        assert world.condition("Running")[2] == (
            "0 of 2 workers are Ready: elastic-worker-1 can't be created: exceeded quota: gpus; "
            "elastic-worker-0 is waiting for a node"
        )

    def test_a_pod_of_a_previous_job_of_the_name_is_waited_for(self) -> None:
        world = TrainingWorld()
        old = TrainingWorld()
        old.settle()
        before = old.pod("elastic-worker-0")
        before["metadata"]["uid"] = "uid-of-an-earlier-pod"
        before["metadata"]["ownerReferences"][0]["uid"] = "uid-of-an-earlier-job"
        world.objects["Pod", "elastic-worker-0"] = before

        world.settle()

        assert world.pod("elastic-worker-0") is before
        assert "is waiting for the previous pod of this name to terminate" in world.condition("Running")[2]
        del world.objects["Pod", "elastic-worker-0"]
        assert pods_of(world.settle()) == ["create elastic-worker-0"]


class TestWorkersThatDie:
    @pytest.mark.parametrize(
        ("policy", "event", "wanted"),
        [
            ("", "fails", ["0", "1"]),
            ("Never", "vanishes", ["0", "1"]),
            ("Always", "fails", ["0", "2"]),
            ("Always", "vanishes", ["0", "2"]),
            ("OnFailure", "fails", ["0", "2"]),
            ("OnFailure", "vanishes", ["0", "1"]),
            ("ExitCode", "fails", ["0", "1"]),
            ("ExitCode", "killed", ["0", "2"]),
            ("ExitCode", "is lost", ["0", "2"]),
        ],
    )
    def test_the_policy_decides_while_the_launcher_runs(self, policy: str, event: str, wanted: list[str]) -> None:
        world = TrainingWorld(training_job(restart=policy))
        world.run()

        match event:
            case "vanishes":
                world.vanishes("elastic-worker-1")
            case "killed":
                world.fails("elastic-worker-1", 137)
            case "is lost":
                world.fails("elastic-worker-1", 255, "Unknown")
            case _:
                world.fails("elastic-worker-1")
        world.settle()

        assert world.wanted() == wanted
        assert world.status["phase"] == "Running"

    def test_before_the_launcher_runs_every_dead_worker_is_replaced(self) -> None:
        world = TrainingWorld(training_job(restart="Never"))
        world.settle()
        world.ready()
        world.fails("elastic-worker-0")

        world.settle()

        assert world.wanted() == ["1", "2"]

    def test_one_that_dies_again_and_again_is_replaced_ever_later(self) -> None:
        world = TrainingWorld(training_job(restart="Always"))
        world.run()
        delays = []
        for number in (1, 2, 3, 4):
            world.fails(f"elastic-worker-{number}")
            begun = world.seconds
            while f"elastic-worker-{number + 1}" not in world.workers():
                world.later(1)
                world.settle()
            world.ready()
            delays.append(world.seconds - begun)

        assert delays == [1, 10, 20, 40]

    def test_a_death_is_in_the_history_and_its_successor_has_another_name(self) -> None:
        world = TrainingWorld(training_job(restart="Always"))
        world.run()

        world.fails("elastic-worker-1", 137)
        world.settle()

        [death] = world.status["attempts"][-1]["deaths"]
        assert (death["pod"], death["code"]) == ("elastic-worker-1", 137)
        assert world.wanted() == ["0", "2"]

    def test_the_pods_of_the_last_failures_are_kept_for_their_logs(self) -> None:
        world = TrainingWorld(training_job(restart="Always"))
        world.run()
        for number in range(1, 6):
            world.fails(f"elastic-worker-{number}")
            world.later(700)
            world.ready(f"elastic-worker-{number + 1}")
            world.settle()

        assert world.workers() == [f"elastic-worker-{number}" for number in (0, 3, 4, 5, 6)]


class TestTheEnd:
    def test_workers_go_when_the_job_has_succeeded(self, world: TrainingWorld) -> None:
        world.objects["Pod", "elastic-launcher-1"]["status"]["phase"] = "Succeeded"

        world.finish(completionTime="2026-05-04T12:01:00Z")

        assert world.status["phase"] == "Succeeded"
        assert world.workers() == []
        assert writes(world.later(20)) == ["status"]
        assert world.status["currentWorkers"] == []
        assert world.later(3600) == []

    def test_with_the_policy_none_they_stay_and_none_is_replaced(self) -> None:
        world = TrainingWorld(training_job(cleanPodPolicy="None", restart="Always"))
        world.run()
        world.objects["Pod", "elastic-launcher-1"]["status"]["phase"] = "Succeeded"
        world.finish(completionTime="2026-05-04T12:01:00Z")
        world.fails("elastic-worker-1")

        world.later(600)

        assert world.workers() == ["elastic-worker-0", "elastic-worker-1"]

    def test_a_suspended_job_has_no_pods_and_a_resumed_one_has_new_ones(self, world: TrainingWorld) -> None:
        world.job["metadata"]["annotations"] = {"job-supervisor.kube-ai.io/job-suspended": "true"}
        world.settle()
        assert (world.status["phase"], world.workers()) == ("Suspended", [])

        world.job["metadata"]["annotations"] = {}
        world.settle()

        assert world.workers() == ["elastic-worker-2", "elastic-worker-3"]
        assert world.status["phase"] == "Created"


class TestANewTemplate:
    def test_while_the_job_runs_workers_are_replaced_one_by_one(self, world: TrainingWorld) -> None:
        world.job["spec"]["etReplicaSpecs"]["worker"]["template"] = template(container("worker", env=[]))

        world.later(3600)
        assert world.held() == {}
        assert world.hosts() == [f"elastic-worker-{number}:1" for number in (1, 2, 0)]
        world.ready("elastic-worker-2")
        world.settle()
        assert world.held() == {"elastic-worker-0": "Template"}
        assert world.hosts() == [f"elastic-worker-{number}:1" for number in (1, 2)]
        world.idle("elastic-worker-0")
        world.settle()
        world.ready("elastic-worker-3")
        world.idle("elastic-worker-1")
        world.settle()

        assert world.workers() == ["elastic-worker-2", "elastic-worker-3"]
        assert world.held() == {}
        assert world.status["phase"] == "Running"

    def test_a_worker_that_stays_in_use_goes_five_minutes_after_its_successor_is_ready(
        self, world: TrainingWorld
    ) -> None:
        world.job["spec"]["etReplicaSpecs"]["worker"]["template"] = template(container("worker", env=[]))
        world.settle()
        world.ready("elastic-worker-2")
        world.settle()
        world.busy("elastic-worker-0")
        assert pods_of(world.later(290)) == []

        assert "delete elastic-worker-0" in pods_of(world.later(20))

    def test_a_template_that_does_not_work_costs_no_worker(self, world: TrainingWorld) -> None:
        worker = world.job["spec"]["etReplicaSpecs"]["worker"]
        worker["template"] = template(container("worker", image="no/such:1"))
        world.settle()
        world.later(3600)
        assert world.workers() == [f"elastic-worker-{number}" for number in (0, 1, 2)]

        worker["template"] = template(container("worker", image="fine:1"))
        done = world.settle()

        assert pods_of(done) == ["delete elastic-worker-2", "create elastic-worker-3"]
        world.ready("elastic-worker-3")
        world.settle()
        assert world.held() == {"elastic-worker-0": "Template"}

    def test_before_it_runs_they_are_replaced_at_once(self) -> None:
        world = TrainingWorld()
        world.settle()
        world.job["spec"]["etReplicaSpecs"]["worker"]["template"] = template(container("worker", env=[]))

        world.settle()

        assert world.workers() == ["elastic-worker-2", "elastic-worker-3"]


class TestACrdOfAnotherOperator:
    def test_a_job_whose_roster_the_crd_drops_is_reported_and_gets_no_pods(self) -> None:
        world = TrainingWorld()
        for action in world.plan().actions:
            world.carry_out(action)
        del world.status["scaling"]

        done = world.settle()

        assert writes(done) == ["tell TrainingJobRefused", "status"]
        assert world.condition("Running")[2].startswith("the installed CRD drops status.scaling")
        assert world.workers() == []
        assert world.later(3600) == []
