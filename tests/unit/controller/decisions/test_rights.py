"""In which pods a job's launcher may start commands: those that the job owns, whoever else has their names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import mpi_job, time
from tests.unit.controller.trainings import TrainingWorld, training_job
from tests.unit.controller.world import World, settled, started, with_workers, writes

W0, W1, W2 = (f"train-worker-{number}" for number in range(3))


def named(world: World) -> list[str]:
    """The pods that the Role names."""
    [start, _] = rules if len(rules := world.get("Role")["rules"]) == 2 else [{"resourceNames": []}, rules[0]]
    names: list[str] = start["resourceNames"]
    return names


def cant_create(world: World, name: str) -> None:
    """The StatefulSet reports that somebody else's pod has the name."""
    workers = world.get("StatefulSet")["metadata"]
    world.objects["Event", name] = {
        "kind": "Event",
        "metadata": {"name": name, "namespace": "ml"},
        "involvedObject": {
            "kind": "StatefulSet",
            "namespace": "ml",
            "name": workers["name"],
            "uid": workers["uid"],
        },
        "message": f'create Pod {name} in StatefulSet train-worker failed error: pods "{name}" already exists',
        "lastTimestamp": time(world.seconds),
    }


class TestBeforeTheLauncher:
    def test_it_has_no_rights_while_workers_are_missing(self) -> None:
        world = with_workers(pods.worker(0))

        world.settle()

        assert not {"Role", "RoleBinding"} & set(world.kinds())

    def test_it_gets_them_with_itself(self) -> None:
        world = with_workers()

        assert writes(world.settle())[:3] == ["create Role", "create RoleBinding", "create Job"]

        assert named(world) == [W0, W1]

    def test_one_that_starts_before_its_workers_gets_them_when_all_pods_are_there(self) -> None:
        world = settled(mpi_job(launcherCreationPolicy="AtStartup"))
        world.workers_are(pods.worker(1))
        assert "create Role" not in writes(world.settle())

        world.workers_are(pods.worker(0), pods.worker(1))

        assert writes(world.settle())[:2] == ["create Role", "create RoleBinding"]
        assert named(world) == [W0, W1]

    def test_one_that_has_started_before_that_gets_them_as_its_workers_come(self) -> None:
        world = settled(mpi_job(launcherCreationPolicy="AtStartup"))
        world.launcher_is(pods.launcher(), active=1)
        world.settle()
        assert named(world) == []

        world.workers_are(pods.worker(1))
        world.settle()
        assert named(world) == [W1]

        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()
        assert named(world) == [W0, W1]

    def test_one_without_workers_has_no_right_in_any_pod(self) -> None:
        job = mpi_job()
        del job["spec"]["mpiReplicaSpecs"]["Worker"]
        world = settled(job)

        assert named(world) == []
        assert "RoleBinding" in world.kinds()


class TestANameOfAWorker:
    def test_that_a_pod_of_somebody_else_has_is_not_named(self) -> None:
        world = with_workers(pods.worker(0), job=mpi_job(launcherCreationPolicy="AtStartup"))
        world.launcher_is(pods.launcher(), active=1)
        anothers = pods.worker(1)
        anothers["metadata"] |= {"uid": "anothers", "ownerReferences": []}
        world.put(anothers)

        world.settle()

        assert named(world) == [W0]

    def test_stays_named_while_the_worker_is_created_again(self) -> None:
        world = started()
        world.workers_are(pods.worker(0))

        assert "patch Role" not in writes(world.settle())

        assert named(world) == [W0, W1]

    def test_is_not_named_any_more_when_the_worker_can_not_be_created(self) -> None:
        world = started()
        world.workers_are(pods.worker(0))
        cant_create(world, W1)

        world.settle()
        assert named(world) == [W0]

        del world.objects["Event", W1]
        world.settle()
        assert named(world) == [W0]

        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()
        assert named(world) == [W0, W1]

    def test_that_was_never_a_worker_is_not_kept(self) -> None:
        world = started()
        world.get("Role")["rules"][0]["resourceNames"] = [W0, W1, W2, "somebodys"]

        world.settle()

        assert named(world) == [W0, W1]


class TestWhenTheJobIsOver:
    @pytest.mark.parametrize("policy", ["Running", "All"])
    def test_no_pod_is_named(self, policy: str) -> None:
        world = started(runPolicy={"cleanPodPolicy": policy})

        world.finish(succeeded=1)

        assert named(world) == []

    def test_workers_that_are_kept_are_named_until_one_is_lost(self) -> None:
        world = started(runPolicy={"cleanPodPolicy": "None"})
        world.finish(succeeded=1)
        assert named(world) == [W0, W1]

        world.workers_are(pods.worker(1))
        world.settle()

        assert named(world) == []

    def test_no_pod_of_a_suspended_job_is_named_and_all_are_when_it_goes_on(self) -> None:
        world = started()
        world.change(runPolicy={"suspend": True})
        world.settle()
        assert named(world) == []

        world.change(runPolicy={"suspend": False})
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1))
        world.settle()

        assert named(world) == [W0, W1]

    def test_what_is_deleted_comes_first_lest_a_refusal_keeps_it(self) -> None:
        world = started(runPolicy={"cleanPodPolicy": "Running"})

        world.finish(succeeded=1)

        assert writes(world.done)[-4:] == ["tell MPIJobSucceeded", "status", "delete StatefulSet", "patch Role"]


class TestWorkersOfATrainingJob:
    def test_are_named_as_they_come_and_go(self) -> None:
        world = TrainingWorld(training_job(replicas=2))
        world.settle()
        world.ready()
        world.settle()
        assert named(world) == ["elastic-worker-0", "elastic-worker-1"]

        world.vanishes("elastic-worker-1")
        world.settle()

        assert named(world) == ["elastic-worker-0", "elastic-worker-2"]

    def test_a_pod_of_somebody_else_is_not_named(self) -> None:
        world = TrainingWorld(training_job(replicas=2, launcherCreationPolicy="AtStartup"))
        stranger: dict[str, Any] = {"name": "elastic-worker-1", "namespace": "ml", "uid": "anothers"}
        world.objects["Pod", "elastic-worker-1"] = {"kind": "Pod", "metadata": stranger, "spec": {}, "status": {}}

        world.settle()
        world.ready("elastic-worker-0")
        world.settle()

        assert "elastic-worker-1" not in str(world.objects.get(("Role", "elastic-launcher")))
