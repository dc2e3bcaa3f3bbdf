"""What went wrong with et-operator, and does not here; test_scaling.py shows more of it."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.cluster.questions import COMMAND
from mpirt.controller.dialects.training_job import TRAINING
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.model.actions import Answer
from mpirt.controller.model.spec import Settings
from tests.unit.controller.trainings import TrainingWorld, pods_of, training_job


def running(replicas: int = 3, **job: Any) -> TrainingWorld:
    world = TrainingWorld(training_job(replicas=replicas, **job))
    world.run()
    return world


@pytest.fixture
def world() -> TrainingWorld:
    """A job that runs, and is asked to give up one of its three workers."""
    world = running()
    world.scale_in(count=1)
    return world


def test_a_worker_of_another_job_of_the_same_name_is_not_chosen() -> None:
    world = running()
    other = TrainingWorld()
    other.settle()
    pod = other.pod("elastic-worker-1")
    pod["metadata"] |= {"name": "elastic-worker-9", "uid": "uid-of-another"}
    pod["metadata"]["ownerReferences"][0]["uid"] = "uid-of-another-job"
    world.objects["Pod", "elastic-worker-9"] = pod

    world.scale_in(count=1)

    assert world.held() == {"elastic-worker-2": "ScaleIn"}


def test_numbers_that_are_missing_have_defaults() -> None:
    job = training_job(replicas=None, least=None, most=None, restartPolicy="OnFailure")

    spec = TRAINING.parse(job)

    assert (spec.workers.replicas, spec.run.retries) == (1, 6)


@pytest.mark.parametrize(
    "answer", [None, Answer(TrainingWorld().now, None, "no keeper")], ids=["no answer", "no keeper"]
)
def test_without_proof_no_worker_is_deleted(world: TrainingWorld, answer: Answer | None) -> None:
    if answer is not None:
        world.answers[world.pod("elastic-worker-2")["metadata"]["uid"]] = answer

    done = world.later(61)

    assert "delete elastic-worker-2" not in pods_of(done)
    assert world.outcome("in")[0] == "ScaleFailed"


def test_the_worker_itself_is_asked_about_commands_of_any_origin(world: TrainingWorld) -> None:
    [question] = world.plan().questions

    assert (question.pod, question.container) == ("elastic-worker-2", "worker")


@pytest.mark.parametrize("key", ["hostfile", "deepspeed-hostfile"])
def test_every_hostfile_follows_the_workers(key: str) -> None:
    world = running()

    world.scale_in(count=1)

    assert "elastic-worker-2" not in world.get("ConfigMap")["data"][key]


def test_a_name_that_was_removed_is_not_used_again(world: TrainingWorld) -> None:
    world.idle("elastic-worker-2")
    world.settle()

    world.scale_out(1)

    assert world.workers()[-1] == "elastic-worker-3"


def test_a_job_that_starts_again_has_all_its_workers() -> None:
    world = running(restartPolicy="OnFailure")
    world.fails("elastic-worker-1")
    world.settle()

    world.launcher_fails()
    world.settle()

    assert world.wanted() == ["0", "2", "3"]
    assert set(world.workers()) >= {"elastic-worker-0", "elastic-worker-2", "elastic-worker-3"}


def test_workers_that_fail_while_others_join_are_replaced() -> None:
    world = running(restart="Always")
    world.scale_out(1)

    world.fails("elastic-worker-0")
    world.settle()

    assert world.wanted() == ["1", "2", "4"]
    assert set(world.workers()) >= {f"elastic-worker-{number}" for number in (1, 2, 3, 4)}


def test_a_job_that_has_succeeded_is_not_suspended() -> None:
    world = running()
    world.objects["Pod", "elastic-launcher-1"]["status"]["phase"] = "Succeeded"
    world.finish(completionTime="2026-05-04T12:01:00Z")

    world.job["metadata"]["annotations"] = {"job-supervisor.kube-ai.io/job-suspended": "true"}
    world.later(60)

    assert world.status["phase"] == "Succeeded"


def test_a_launcher_that_is_missing_ends_the_job_or_is_created_again() -> None:
    never = TRAINING.parse(training_job())
    again = training_job()
    again["spec"]["etReplicaSpecs"]["launcher"]["restartPolicy"] = "Always"
    always = TRAINING.parse(again)

    assert (never.run.retries, always.run.retries) == (0, 6)
    assert "podFailurePolicy" not in launcher_job(never, Settings(""))["spec"]
    assert launcher_job(always, Settings(""))["spec"]["podFailurePolicy"]["rules"] == [
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "launcher", "operator": "NotIn", "values": [0]},
        }
    ]


def test_there_are_no_keys() -> None:
    world = running()

    assert "Secret" not in world.kinds()
    assert "/root/.ssh" not in str(world.pod("elastic-worker-0"))


def test_nothing_that_a_user_has_written_is_part_of_a_shell_line(world: TrainingWorld) -> None:
    world.objects["ScaleIn", "in"]["spec"]["env"] = [{"name": "X", "value": "$(reboot)"}]

    world.settle()

    assert COMMAND[:2] == ("/bin/sh", "-c")
    assert "reboot" not in str(world.done)
