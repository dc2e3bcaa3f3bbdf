"""Which pod templates of new jobs are tried, and which were accepted for an equal job."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.actions import Rejection
from tests.unit.controller.jobs import Body, container, mpi_job, template
from tests.unit.controller.trainings import TrainingWorld, training_job
from tests.unit.controller.world import World, started, writes

REFUSED = Rejection("StatefulSet", "", "denied by policy", final=False)


def after(first: World, second: World) -> list[str]:
    """What is tried of the second job if the first has started in the same namespace."""
    first.settle()
    second.accepted = first.accepted
    return [word for word in writes(second.settle()) if word.startswith("try")]


def another(**changed: Any) -> Body:
    job = mpi_job(name="other", **changed)
    job["metadata"]["uid"] = "uid-of-other"
    return job


class TestANewJob:
    def test_that_differs_from_an_accepted_one_by_name_and_uid_is_not_tried(self) -> None:
        assert after(World(), World(another())) == []

    def test_without_a_stateful_set_is_not_tried_either(self) -> None:
        job = training_job()
        job["metadata"] |= {"name": "other", "uid": "uid-of-other"}

        assert after(TrainingWorld(training_job()), TrainingWorld(job)) == []

    @pytest.mark.parametrize(
        ("changed", "tried"),
        [
            pytest.param({"replicas": 3}, ["try StatefulSet"], id="more workers"),
            pytest.param(
                {"launcher": template(container("mpi", command=["other"]))}, ["try Job"], id="another command"
            ),
            pytest.param(
                {"worker": template(container("worker", image="mpi:5"))},
                # Its object names the digest of the workers' template.
                ["try Job", "try StatefulSet"],
                id="another image of the workers",
            ),
        ],
    )
    def test_is_tried_if_an_object_differs_otherwise(self, changed: Body, tried: list[str]) -> None:
        assert after(World(), World(another(**changed))) == tried

    def test_of_another_namespace_is_tried(self) -> None:
        job = another()
        job["metadata"]["namespace"] = "other"

        assert after(World(), World(job)) == ["try Job", "try StatefulSet"]


def test_a_changed_template_is_tried_though_it_was_accepted_for_another_job() -> None:
    launcher = template(container("mpi", command=["other"]))
    world, other = started(), World(another(launcher=launcher))
    other.settle()
    world.accepted |= other.accepted
    world.change(**mpi_job(launcher=launcher)["spec"])

    assert writes(world.plan().actions)[0] == "try Job"


def test_a_job_whose_object_is_refused_after_all_reports_the_field() -> None:
    """A policy came after an equal job was accepted."""
    world, other = World(), World(another())
    other.settle()
    world.accepted = other.accepted
    world.refuse["StatefulSet"] = REFUSED

    world.settle()

    assert world.condition("Running") == (
        False,
        "MPIJobRefused",
        "spec.mpiReplicaSpecs.Worker.template: the API server refuses it: denied by policy",
    )
    assert world.kinds() == ["ConfigMap", "Service", "ServiceAccount"]
