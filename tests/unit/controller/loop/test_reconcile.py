"""What becomes of a plan when the API server doesn't do all of it."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.loop.reconcile import Result
from mpirt.controller.model.actions import (
    Conflict,
    Create,
    Delete,
    Done,
    Exists,
    Missing,
    Outcome,
    Patch,
    Refused,
    Unavailable,
    WriteStatus,
)
from tests.unit.controller.jobs import UID, Body, at, mpi_job
from tests.unit.controller.loop.ground import Ground, ended, running
from tests.unit.controller.world import started, writes


@pytest.fixture
def ground() -> Ground:
    """A job that runs, and whose ConfigMap was edited."""
    return running()


class TestAWebhookThatIsDown:
    SAID = 'Internal error occurred: failed calling webhook "policy.example.com": connection refused'

    def test_is_told_of_when_it_stays_down(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Job"] = Unavailable(self.SAID, answered=True)
        assert [ground.look(10).result for _ in range(2)] == [Result.FAILED, Result.FAILED]

        turn = ground.look(10)

        assert (turn.result, turn.again) == (Result.CHANGED, at(60))
        assert writes(ground.asked) == ["try Job", "tell MPIJobCreated", "tell MPIJobRefused", "status"]
        assert ground.status()["Running"] == (
            "False",
            "MPIJobRefused",
            f"spec.mpiReplicaSpecs.Launcher.template: the API server refuses it: {self.SAID}",
        )

    def test_is_asked_again_after_half_a_minute_and_forgotten_when_it_is_back(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Job"] = Unavailable(self.SAID, answered=True)
        for _ in range(3):
            ground.look(10)
        ground.answers.clear()
        ground.look(30)
        assert "ConfigMap" in {action.kind for action in ground.asked if isinstance(action, Create)}

        ground.answers["Create Job"] = Unavailable(self.SAID, answered=True)

        assert ground.look(300).result is Result.FAILED
        [first, *others] = ground.asked
        assert first.why == "dry-run of the pod template"
        assert {writes([each])[0] for each in others} == {"tell MPIJobCreated", "status"}

    def test_a_server_that_does_not_answer_is_no_matter_of_the_jobs(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Job"] = Unavailable("no answer within 5 s")

        assert [ground.look(10).result for _ in range(9)] == [Result.FAILED] * 9
        assert len(ground.asked) == 1


class TestTheEndIsTold:
    def test_before_anything_is_deleted(self) -> None:
        ground = ended()

        assert ground.look(40).result is Result.CHANGED

        assert ground.status()["Succeeded"][0] == "True"
        assert writes(ground.asked) == ["tell MPIJobSucceeded", "status"]

    @pytest.mark.parametrize(
        ("no", "is_written"),
        [
            pytest.param(Refused("exceeded quota: count/events", final=False), True, id="events are refused"),
            pytest.param(Unavailable("no answer within 5 s"), False, id="the server does not answer"),
        ],
    )
    def test_unless_the_server_does_not_answer(self, no: Outcome, *, is_written: bool) -> None:
        ground = ended()
        ground.answers["Create Event"] = no

        assert ground.look(40).result is Result.FAILED

        assert writes(ground.asked) == ["tell MPIJobSucceeded", *(["status"] if is_written else [])]
        assert not is_written or ground.status()["Succeeded"][0] == "True"

    @pytest.mark.parametrize(
        "no",
        [
            pytest.param(Refused("policy 'p' denied request", final=False), id="a policy refuses it"),
            pytest.param(Conflict("the server rejected our request"), id="it can't be applied"),
            pytest.param(Unavailable("failed calling webhook", answered=True), id="a webhook is down"),
            pytest.param(Missing("not found"), id="the object is gone"),
        ],
    )
    def test_the_end_is_told_though_a_patch_of_an_object_is_not_done(self, no: Outcome) -> None:
        ground = ended()
        edited = ground.known("ConfigMap")
        ground.see({**edited, "data": {}, "metadata": {**edited["metadata"], "resourceVersion": "50"}})
        ground.there["ConfigMap", "train-config"] = ground.known("ConfigMap")
        ground.answers["Patch ConfigMap"] = no

        ground.look(20)
        ground.look(10)
        ground.look(10)

        assert ground.status()["Succeeded"][0] == "True"


class TestWhatIsReleased:
    @pytest.mark.parametrize(
        "no", [Refused("protected", final=False), Unavailable("failed calling webhook", answered=True)], ids=type
    )
    def test_is_not_held_back_by_what_can_not_be_deleted(self, no: Outcome) -> None:
        ground = ended(is_told=True)
        ground.answers["Delete StatefulSet"] = no

        assert ground.look(40).result is Result.FAILED

        assert writes(ground.asked) == ["delete StatefulSet", "patch Role"]


class TestAPatchThatIsRefused:
    NO = "configmaps \"train-config\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no"

    def test_a_refused_patch_is_told(self, ground: Ground) -> None:
        ground.answers["Patch ConfigMap"] = Refused(self.NO, final=False)

        assert ground.look().result is Result.CHANGED
        ground.look()

        status, reason, message = ground.status()["Running"]
        assert (status, reason) == ("True", "MPIJobRefused")
        assert message == f"the API server refuses ConfigMap: {self.NO}"

    def test_a_patch_that_can_not_be_applied_to_the_object_that_was_seen_is_told(self, ground: Ground) -> None:
        ground.answers["Patch ConfigMap"] = Conflict("the server rejected our request")
        ground.there["ConfigMap", "train-config"] = ground.known("ConfigMap")

        assert ground.look().result is Result.CHANGED
        ground.look()

        assert ground.status()["Running"][1] == "MPIJobRefused"

    def test_a_patch_that_can_not_be_applied_to_a_newer_object_is_planned_anew(self, ground: Ground) -> None:
        ground.answers["Patch ConfigMap"] = Conflict("the server rejected our request")
        known = ground.known("ConfigMap")
        metadata = {**known["metadata"], "uid": "another", "resourceVersion": "99"}
        ground.there["ConfigMap", "train-config"] = {**known, "metadata": metadata}

        assert ground.look().result is Result.CHANGED
        ground.look()

        [patch] = [action for action in ground.asked if isinstance(action, Patch)]
        assert patch.operations[0]["value"] == "another"

    def test_a_patch_that_can_not_be_applied_is_tried_again_where_the_object_can_not_be_read(
        self, ground: Ground
    ) -> None:
        ground.answers["Patch ConfigMap"] = Conflict("the server rejected our request")

        for _ in range(2):
            assert ground.look().result is Result.FAILED
            assert writes(ground.asked) == ["patch ConfigMap"]


class TestAStatus:
    def test_a_status_names_the_version_that_the_plan_was_made_for(self) -> None:
        ground = ended()

        ground.look(40)

        [written] = [action for action in ground.asked if isinstance(action, WriteStatus)]
        assert written.version == "1"

    def test_a_status_that_somebody_else_has_written_meanwhile_is_made_anew_from_that(self) -> None:
        ground = ended()
        ground.answers["WriteStatus status"] = Conflict("the object has been modified")
        known = ground.known("MPIJob")
        theirs = {**known, "metadata": {**known["metadata"], "resourceVersion": "77"}}
        ground.there["MPIJob", "train"] = theirs

        assert ground.look(40).result is Result.CHANGED

        ground.look()
        [written] = [action for action in ground.asked if isinstance(action, WriteStatus)]
        assert written.version == "77"

    def test_a_status_that_is_not_taken_is_tried_again_with_back_off(self) -> None:
        for no in (Conflict("modified"), Refused("policy", final=False)):
            ground = ended()
            ground.answers["WriteStatus status"] = no
            ground.there["MPIJob", "train"] = ground.known("MPIJob")

            assert [ground.look(40).result for _ in range(3)] == [Result.FAILED] * 3


class TestAServerThatHasNoTime:
    def test_after_retry_after_the_rest_of_the_plan_waits_as_long_as_the_server_asks(self, ground: Ground) -> None:
        ground.answers["Patch ConfigMap"] = Unavailable("too many requests", answered=True, retry_after=7)

        turn = ground.look()

        assert (turn.result, turn.retry_after) == (Result.FAILED, 7)
        assert writes(ground.asked) == ["patch ConfigMap"]


class TestAnObjectOfTheNameThatIsThereAlready:
    def test_an_object_that_exists_already_is_shown_to_the_next_plan(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Service"] = Exists()
        theirs = {"kind": "Service", "metadata": {"name": "train", "namespace": "ml", "uid": "x"}}
        ground.there["Service", "train"] = theirs

        assert ground.look().result is Result.CHANGED
        ground.look()

        assert ground.status()["Running"][1] == "ErrResourceExists"

    def test_an_object_that_exists_already_and_can_not_be_read_is_looked_for_later(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Service"] = Exists()

        assert ground.look().result is Result.FAILED
        assert "create StatefulSet" not in writes(ground.asked)
        assert "status" in writes(ground.asked)


class TestWhatAnotherControllerHasMade:
    """It carries no label of ours: only its name in our way tells of it."""

    @staticmethod
    def ground(**status: Any) -> Ground:
        owner = {"kind": "MPIJob", "name": "train", "uid": UID, "controller": True}

        def head(name: str) -> Body:
            return {"name": name, "namespace": "ml", "uid": f"uid-of-{name}", "ownerReferences": [owner]}

        ground = Ground(mpi_job(runPolicy={"managedBy": "mpirt.dev/controller"}))
        ground.answers["Create ConfigMap"] = Exists()
        ground.there = {
            ("ConfigMap", "train-config"): {"kind": "ConfigMap", "metadata": head("train-config"), "data": {}},
            ("Job", "train-launcher"): {
                "kind": "Job",
                "metadata": head("train-launcher"),
                "spec": {},
                "status": status,
            },
        }
        return ground

    def test_is_looked_at_as_a_whole_before_anything_is_done_about_it(self) -> None:
        ground = self.ground(active=1)

        assert ground.look().result is Result.SETTLED

        assert writes(ground.asked) == ["try Job", "try StatefulSet", "create ConfigMap"]
        assert ground.look().result is Result.SETTLED
        assert ground.asked == []

    @pytest.mark.parametrize("launcher_job", [True, False], ids=["with a launcher Job", "without one"])
    def test_is_reported_if_no_launcher_has_started(self, *, launcher_job: bool) -> None:
        ground = self.ground()
        if not launcher_job:
            del ground.there["Job", "train-launcher"]

        ground.look()

        assert ground.status()["Running"][1] == "MPIJobRunByAnother"
        assert not [action for action in ground.asked if isinstance(action, Delete | Patch)]


class TestALauncherJobThatNoWatchShows:
    @staticmethod
    def missing() -> tuple[Ground, Body]:
        """A job that runs, and its launcher Job, of which no watch has told."""
        world = started()
        job = world.get("Job")
        world.launcher_is()
        del world.objects["Job", "train-launcher"]
        return Ground(world.job, *world.objects.values()), {**job, "metadata": {**job["metadata"], "labels": {}}}

    def test_is_the_jobs_own_if_it_is_there_all_the_same(self) -> None:
        ground, job = self.missing()
        ground.answers["Find Job"] = Done(job)

        assert ground.look().result is Result.CHANGED
        assert writes(ground.asked) == ["find Job"]
        ground.look()

        assert not {"find Job", "create Job"} & set(writes(ground.asked))

    def test_is_gone_if_the_api_server_says_so(self) -> None:
        ground, _ = self.missing()
        ground.answers["Find Job"] = Missing('jobs.batch "train-launcher" not found')

        assert ground.look().result is Result.CHANGED

        assert ground.status()["Failed"][:2] == ("True", "LauncherGone")
        assert "create Job" not in writes(ground.asked)

    def test_is_looked_for_again_if_the_api_server_does_not_answer(self) -> None:
        ground, _ = self.missing()
        ground.answers["Find Job"] = Unavailable("no answer within 5 s")

        assert [ground.look(1).result for _ in range(3)] == [Result.FAILED] * 3

        assert writes(ground.asked) == ["find Job"]


class TestTemplatesThatWereAccepted:
    NO = Refused("denied by policy", final=False)

    def tried(self, ground: Ground) -> list[str]:
        return [word for word in writes(ground.asked) if word.startswith("try")]

    @pytest.fixture
    def ground(self) -> Ground:
        """A job whose templates were accepted, and another one that has taken its place."""
        ground = Ground(mpi_job())
        ground.look()
        assert self.tried(ground) == ["try Job", "try StatefulSet"]
        ground.edit(uid="another")
        return ground

    def test_are_not_tried_for_the_next_job_within_five_minutes(self, ground: Ground) -> None:
        ground.look(299)
        assert self.tried(ground) == []

        ground.look(1)
        assert self.tried(ground) == ["try Job", "try StatefulSet"]

    def test_are_tried_again_when_an_object_of_their_kind_was_refused(self, ground: Ground) -> None:
        ground.answers["Create StatefulSet"] = self.NO
        ground.look(10)
        assert self.tried(ground) == []
        assert ground.status()["Running"][1:] == (
            "MPIJobRefused",
            "spec.mpiReplicaSpecs.Worker.template: the API server refuses it: denied by policy",
        )

        ground.look(30)

        assert writes(ground.asked)[:1] == ["try StatefulSet"]
        assert "create ConfigMap" not in writes(ground.asked)
