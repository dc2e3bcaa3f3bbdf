"""Reading a TrainingJob, and the form of its status, its ScaleIns and its ScaleOuts."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.dialects.training_job import TRAINING, phase_of, read_scaler, read_status
from mpirt.controller.model.conditions import Condition, JobStatus, Type
from mpirt.controller.model.objectnames import PATIENCE_ANNOTATION
from mpirt.controller.model.roster import Change, Drain, Roster, Source, read_roster, write_roster
from mpirt.controller.model.spec import CleanPods, JobKey, Restart
from mpirt.errors import SpecError
from tests.unit.controller.badspecs import put
from tests.unit.controller.jobs import NOON, at, container, template
from tests.unit.controller.trainings import scaler, training_job

KEY = JobKey("TrainingJob", "ml", "elastic")


class TestTheSpec:
    def test_fields_that_are_missing_have_et_operators_defaults(self) -> None:
        spec = TRAINING.parse(training_job(replicas=None, least=None, most=None))

        assert spec.workers.names == ("elastic-worker-0",)
        assert (spec.slots, spec.run.retries, spec.run.clean) == (1, 0, CleanPods.RUNNING)
        assert spec.workers.bare is not None
        assert spec.workers.bare.restart is Restart.NEVER
        assert spec.workers.elastic is not None
        assert spec.workers.elastic.least == 1

    @pytest.mark.parametrize(
        ("asked", "limits", "slots"),
        [(None, {"nvidia.com/gpu": 4}, 4), (2, {"nvidia.com/gpu": "4"}, 2), (None, {"cpu": 8}, 1), (None, {}, 1)],
    )
    def test_a_worker_has_as_many_slots_as_gpus_unless_the_job_sets_them(
        self, asked: int | None, limits: dict[str, Any], slots: int
    ) -> None:
        worker = template(container("worker", resources={"limits": limits}))
        more: dict[str, Any] = {} if asked is None else {"slotsPerWorker": asked}

        assert TRAINING.parse(training_job(worker=worker, **more)).slots == slots

    @pytest.mark.parametrize(
        ("path", "value", "problem"),
        [
            ("spec.etReplicaSpecs.worker.replicas", 0, "must be at least 1, got 0"),
            ("spec.etReplicaSpecs.worker.replicas", 10, "must be from 1 to 9, got 10"),
            ("spec.etReplicaSpecs.worker.minReplicas", 3, "must be from 3 to 9, got 2"),
            ("spec.etReplicaSpecs.worker.maxReplicas", 0, "must be at least 1, got 0"),
            ("spec.etReplicaSpecs.launcher.replicas", 2, "must be at most 1, got 2"),
            ("spec.launcherAttachMode", "rsh", "must be one of ssh, kubexec, got 'rsh'"),
            ("spec.restartPolicy", "Always", "must be one of Never, OnFailure, got 'Always'"),
            ("spec.slotsPerWorker", 0, "must be at least 1, got 0"),
            ("metadata.name", "Upper", "must consist of lower-case letters"),
        ],
    )
    def test_an_invalid_field_is_named_with_its_path(self, path: str, value: object, problem: str) -> None:
        job = training_job()
        put(path.replace(".", "/"), value)(job)

        with pytest.raises(SpecError) as caught:
            TRAINING.parse(job)

        replicas = "spec.etReplicaSpecs.worker.replicas"
        assert caught.value.field == (replicas if "minReplicas" in path else path)
        assert problem in str(caught.value)

    @pytest.mark.parametrize(("written", "seconds"), [("600", 600), ("0", None), ("", None)])
    def test_an_annotation_of_arena_sets_how_long_it_waits(self, written: str, seconds: int | None) -> None:
        job = training_job(annotations={PATIENCE_ANNOTATION: written})

        assert TRAINING.parse(job).run.patience == seconds

    def test_a_time_that_is_no_number_is_refused(self) -> None:
        with pytest.raises(SpecError, match=rf"^metadata\.annotations\[{PATIENCE_ANNOTATION}\]: must be a whole"):
            TRAINING.parse(training_job(annotations={PATIENCE_ANNOTATION: "10m"}))

    def test_a_least_above_the_most_is_refused(self) -> None:
        with pytest.raises(SpecError, match="maxReplicas: must not be below minReplicas=5, got 4"):
            TRAINING.parse(training_job(least=5, most=4))

    @pytest.mark.parametrize(
        ("manager", "ours", "claimed"),
        [(None, True, False), ("mpirt.dev/controller", True, True), ("example.com/controller", False, False)],
    )
    def test_an_annotation_names_the_manager(self, manager: str | None, *, ours: bool, claimed: bool) -> None:
        job = training_job(annotations={"mpirt.dev/managed-by": manager} if manager else None)

        assert (TRAINING.is_ours(job), TRAINING.is_claimed(job)) == (ours, claimed)

    def test_its_resource_is_the_one_of_et_operator(self) -> None:
        assert TRAINING.resource.api_version == "kai.alibabacloud.com/v1alpha1"
        assert TRAINING.resource.plural == "trainingjobs"


class TestTheStatus:
    @pytest.mark.parametrize(
        ("held", "changing", "phase"),
        [
            ([], False, ""),
            ([Type.CREATED], False, "Created"),
            ([Type.CREATED, Type.RUNNING], False, "Running"),
            ([Type.CREATED, Type.RUNNING], True, "Scaling"),
            ([Type.CREATED, Type.SUSPENDED], False, "Suspended"),
            ([Type.CREATED, Type.SUCCEEDED], False, "Succeeded"),
            ([Type.CREATED, Type.FAILED], True, "Failed"),
        ],
    )
    def test_the_phase_is_what_counts_most(self, held: list[Type], *, changing: bool, phase: str) -> None:
        conditions = {
            kind: Condition(kind, status=True, reason="", message="", changed=NOON, updated=NOON) for kind in held
        }
        roster = Roster(change=Change(Source.REPLICAS, NOON)) if changing else Roster()

        assert phase_of(JobStatus(conditions, roster=roster)) == phase

    def test_it_is_read_back_as_it_was_written(self) -> None:
        conditions = {
            Type.RUNNING: Condition(
                Type.RUNNING, status=True, reason="MPIJobRunning", message="runs", changed=NOON, updated=NOON
            )
        }
        status = JobStatus(conditions, roster=Roster(("w-0",), 0, 1), running=("w-0",), written=NOON)

        written = TRAINING.write_status(status, KEY)

        assert written["conditions"][0]["reason"] == "TrainingJobRunning"  # type: ignore[index]
        assert read_status(written) == status

    def test_every_field_of_a_roster_is_read_back(self) -> None:
        change = Change(
            Source.SCALE_IN, at(1), "in", "uid", 60, force=True, leaving=("w-1",), joining=("w-3",), committed=True
        )
        drain = Drain("w-2", Source.NODE_TAINT, "node n has the taint t", at(2), "w-4", committed=True)
        roster = Roster(("w-0", "w-1"), 4, 2, ("w-4",), change, (drain,), 3, at(3))

        assert read_roster(write_roster(roster)) == roster

    @pytest.mark.parametrize(
        "broken", [{"drains": [{"source": "Nonsense"}]}, {"change": {"source": "Nonsense"}}, {"pending": "w-1"}]
    )
    def test_a_field_that_can_not_be_read_counts_as_missing(self, broken: dict[str, Any]) -> None:
        assert read_roster({"scaling": {"highestNumber": 1, **broken}}) == Roster(highest=1)

    def test_a_status_without_it_has_no_roster(self) -> None:
        assert read_roster({"targetWorkers": ["w-0"]}) is None


class TestScalers:
    def test_a_scale_out_without_a_count_is_invalid(self) -> None:
        body = scaler("ScaleOut", "out", {"toAdd": {}}, created=0)

        assert read_scaler(Source.SCALE_OUT, body).problem == "spec.toAdd.count: is missing"

    def test_the_time_limit_is_a_minute_by_default(self) -> None:
        body = scaler("ScaleOut", "out", {"toAdd": {"count": 1}}, created=0)

        assert read_scaler(Source.SCALE_OUT, body).seconds == 60
