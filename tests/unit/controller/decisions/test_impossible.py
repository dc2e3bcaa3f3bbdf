"""Jobs of which something can't be done: objects that are refused or in the way, and specs that can't be."""

from __future__ import annotations

import json

import pytest

from mpirt.controller.model.actions import Plan, Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at, container, mpi_job, template
from tests.unit.controller.world import World, settled, started, writes


def of_another(kind: str, name: str, *owners: Body) -> Body:
    references = [{**owner, "uid": "anothers", "controller": True} for owner in owners]
    return {"kind": kind, "metadata": {"name": name, "namespace": "ml", "ownerReferences": references}}


class TestWhatCantBeDone:
    def test_an_object_of_somebody_elses_is_left_alone_and_told_of(self) -> None:
        world = World()
        world.put(of_another("ConfigMap", "train-config"))

        world.settle()

        assert world.kinds() == ["ConfigMap"]
        assert world.condition("Running") == (
            False,
            "ErrResourceExists",
            "ConfigMap train-config exists and has no owner, and is left alone; delete it or rename the job",
        )
        assert world.events[-1][:2] == ("Warning", "ErrResourceExists")
        assert world.plan().again == at(30)

    def test_and_the_job_goes_on_when_the_name_is_free(self) -> None:
        world = World()
        world.put(of_another("Service", "train", {"kind": "Tenant", "name": "ann"}))
        world.settle()
        assert "belongs to Tenant ann" in world.condition("Running")[2]

        del world.objects["Service", "train"]
        world.settle()

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"

    def test_what_is_left_of_an_earlier_job_of_the_name_is_waited_for(self) -> None:
        world = World()
        world.put(of_another("Role", "train-launcher", {"kind": "MPIJob", "name": "train"}))

        world.settle()

        assert world.condition("Running")[2] == (
            "Role train-launcher belongs to a previous job of this name; waiting for its deletion"
        )
        assert world.told() == ["MPIJobCreated"]

    def test_an_account_of_that_name_is_no_matter_if_none_is_wanted(self) -> None:
        launcher = template(container("mpi"), serviceAccountName="train-launcher")
        world = World(mpi_job(launcher=launcher))
        world.put(of_another("ServiceAccount", "train-launcher"))

        world.settle()

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"

    @pytest.mark.parametrize(
        ("refused", "field"),
        [
            pytest.param("Job", "Launcher", id="the launcher"),
            pytest.param("train-worker", "Worker", id="the workers"),
            pytest.param("StatefulSet", "Worker", id="their StatefulSet"),
        ],
    )
    def test_a_template_that_the_api_server_refuses_fails_no_job_and_is_tried_again(
        self, refused: str, field: str
    ) -> None:
        world = World()
        world.refuse[refused] = Rejection(refused if refused[0] != "t" else "Job", "", "image: no", final=True)

        world.settle()

        problem = f"spec.mpiReplicaSpecs.{field}.template: the API server refuses it: image: no"
        assert world.kinds() == []
        assert world.state() == "Created"
        assert world.condition("Running") == (False, "MPIJobFailedValidation", problem)
        assert ("Warning", "MPIJobFailedValidation", problem) in world.events
        assert world.plan().again == at(30)

    @pytest.mark.parametrize("is_edited", [True, False], ids=["it was edited", "the policy has changed"])
    def test_a_refused_template_is_acted_on_once_it_is_accepted(self, *, is_edited: bool) -> None:
        world = World()
        world.refuse["Job"] = Rejection("Job", "", "denied by policy", final=True)
        world.settle()
        world.refuse.clear()

        if is_edited:
            world.change(**mpi_job(launcher=template(container("mpi", image="mpi:5")))["spec"])
        else:
            world.rejections.clear()
        world.later(30)

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"
        assert world.state() == "Created"

    def test_an_object_that_is_built_from_several_fields_is_named_itself(self) -> None:
        world = World()
        world.refuse["Role"] = Rejection("Role", "", "no", final=True)
        world.settle()
        world.workers_are(pods.worker(0), pods.worker(1))

        world.settle()

        assert world.condition("Running") == (False, "MPIJobRefused", "the API server refuses Role: no")

    def test_a_refusal_of_any_length_is_told_in_a_status_of_limited_length(self) -> None:
        world = World()
        world.refuse["Job"] = Rejection("Job", "", "no! " * 150_000, final=True)

        world.settle()

        assert len(json.dumps(world.job["status"])) < 10_000

    def test_what_a_quota_refuses_may_come_yet(self) -> None:
        world = World()
        world.refuse["StatefulSet"] = Rejection("StatefulSet", "", "exceeded quota", final=False)

        world.settle()

        assert world.condition("Running") == (
            False,
            "MPIJobRefused",
            "spec.mpiReplicaSpecs.Worker.template: the API server refuses it: exceeded quota",
        )
        assert world.plan().again == at(30)
        world.refuse.clear()
        world.rejections.clear()
        world.settle()
        assert "StatefulSet" in world.kinds()

    def test_a_refusal_of_what_is_wanted_no_more_is_no_matter(self) -> None:
        world = World()
        world.rejections.append(Rejection("Job", "of something else", "no", final=True))

        world.settle()

        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"


class TestSpecsThatCantBe:
    def test_are_told_with_the_fields_path_and_fail_no_job(self) -> None:
        world = settled(mpi_job(slotsPerWorker="two"))

        problem = "spec.slotsPerWorker: expected a whole number, got 'two'"
        assert world.kinds() == []
        assert world.state() == "Created"
        assert world.condition("Running") == (False, "MPIJobFailedValidation", problem)
        assert world.events == [
            ("Normal", "MPIJobCreated", "MPIJob ml/train is created."),
            ("Warning", "MPIJobFailedValidation", problem),
        ]
        assert world.plan() == Plan()

    def test_are_acted_on_once_they_are_mended(self) -> None:
        world = settled(mpi_job(slotsPerWorker="two"))

        world.change(slotsPerWorker=1)
        world.settle()

        assert world.state() == "Created"
        assert world.condition("Running")[1] == "MPIJobWorkersNotReady"

    def test_are_no_reason_to_call_a_suspended_job_resumed(self) -> None:
        world = settled(mpi_job(runPolicy={"suspend": True}))

        world.change(slotsPerWorker="two")
        world.later(15)

        assert world.condition("Suspended")[0] is True
        assert world.condition("Running")[1] == "MPIJobFailedValidation"

    def test_that_no_edit_can_mend_have_failed_for_good(self) -> None:
        world = settled(mpi_job(name="1st"))

        assert world.state() == "Failed"
        status, reason, message = world.condition("Failed")
        assert (status, reason) == (True, "MPIJobInvalidName")
        assert message.startswith("metadata.name: must consist of lower-case letters")
        assert world.condition("Running")[:2] == (False, "MPIJobInvalidName")
        assert "completionTime" in world.job["status"]
        assert world.later(60) == []

    def test_leave_alone_what_runs(self) -> None:
        world = started()

        world.change(slotsPerWorker="two")
        world.settle()

        assert world.state() == "Running"
        status, reason, message = world.condition("Running")
        assert (status, reason) == (True, "MPIJobFailedValidation")
        assert message.startswith(
            "The changed spec is ignored, and the job runs on with the previous one: spec.slotsPerWorker"
        )

    def test_leave_nothing_on_a_node_that_is_lost(self) -> None:
        world = started()
        world.change(slotsPerWorker="two")
        world.workers_are(pods.worker(0), pods.worker(1, node="node-2", conditions=pods.given_up(30), deleted=120))
        world.settle()

        assert world.plan().again == at(120)
        assert "delete Pod" in writes(world.later(120 - world.seconds))

    def test_of_a_job_that_is_over_change_nothing(self) -> None:
        world = started()
        world.finish(succeeded=1)
        world.lose_launcher_job()

        world.change(slotsPerWorker="two")
        world.later(60)

        assert world.state() == "Succeeded"
