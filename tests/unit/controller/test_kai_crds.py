"""
The CRDs of TrainingJob, ScaleIn and ScaleOut know the same fields as the code that reads and writes these objects.

Both ways, as in test_crd.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.dialects.training_job import SCALERS as SCALER_RESOURCES
from mpirt.controller.dialects.training_job import TRAINING, read_scaler, write_scaler_status
from mpirt.controller.model.conditions import Condition, Counts, JobStatus, Reason, Type
from mpirt.controller.model.roster import Change, Drain, Roster, Source
from mpirt.controller.model.spec import JobKey, Scaler
from mpirt.controller.observed.store import Store
from mpirt.errors import SpecError
from tests.unit.controller.badspecs import put
from tests.unit.controller.jobs import NOON, Body, container, template
from tests.unit.controller.mpijob_schema import TEMPLATE_UNUSED
from tests.unit.controller.schemas import HISTORY, Watched, at, both_ways, crd, described, leaves, without_place
from tests.unit.controller.trainings import scaler, training_job

GROUP = "kai.alibabacloud.com"
CRDS = {kind: crd(f"{kind.lower()}s.{GROUP}") for kind in ("TrainingJob", "ScaleIn", "ScaleOut")}
VERSIONS = {kind: body["spec"]["versions"][0] for kind, body in CRDS.items()}
SCHEMAS = {kind: version["schema"]["openAPIV3Schema"]["properties"] for kind, version in VERSIONS.items()}
FIELDS = {kind: dict(leaves(schema["spec"], "spec")) for kind, schema in SCHEMAS.items()}

JOB_FIELDS = FIELDS["TrainingJob"]
REPLICAS = "spec.etReplicaSpecs"
# Accepted, because jobs have them, and not used: their descriptions say so.
UNUSED = {
    f"{REPLICAS}.{role}.template.metadata.{name}" for role in ("launcher", "worker") for name in TEMPLATE_UNUSED
}
# The words that et-operator's schema leaves to its code, so that ours can say what is wrong with another one.
WORDS = {
    "spec.launcherAttachMode": ("ssh", "kubexec"),
    "spec.cleanPodPolicy": ("Running", "All", "None"),
    "spec.restartPolicy": ("Never", "OnFailure"),
    f"{REPLICAS}.worker.restartPolicy": ("Never", "Always", "OnFailure", "ExitCode"),
}
# What et-operator's CRDs have: see also examples/ of et-operator.
PUBLISHED = {
    "TrainingJob": {
        *("spec.launcherAttachMode", "spec.slotsPerWorker", "spec.cleanPodPolicy", "spec.restartPolicy"),
        *("spec.backoffLimit", f"{REPLICAS}.launcher.replicas", f"{REPLICAS}.launcher.restartPolicy"),
        *(f"{REPLICAS}.worker.{name}" for name in ("replicas", "minReplicas", "maxReplicas", "restartPolicy")),
        *(f"{REPLICAS}.{role}.template.spec" for role in ("launcher", "worker")),
    },
    "ScaleIn": {
        *("spec.selector.name", "spec.toDelete.count", "spec.toDelete.podNames", "spec.script", "spec.timeout"),
        *("spec.env", "spec.backoffLimit"),
    },
    "ScaleOut": {
        *("spec.selector.name", "spec.toAdd.count", "spec.script", "spec.timeout", "spec.env"),
        "spec.backoffLimit",
    },
}

SCALERS = ("ScaleIn", "ScaleOut")
SCALER_UNUSED = {"spec.script": "x", "spec.env": [{"name": "A"}], "spec.backoffLimit": 1}
# By it a scaler is found to belong to a job, before it is read.
DECIDES = "spec.selector.name"
USED = [(kind, path) for kind in SCALERS for path in sorted(FIELDS[kind].keys() - SCALER_UNUSED - {DECIDES})]
CONDITION = Condition(Type.SCALING, True, Reason.SCALING, "", NOON, NOON)  # noqa: FBT003  as it is defined


class TestTheReaderOfTrainingJobs:
    @pytest.mark.parametrize("path", sorted(JOB_FIELDS.keys() - UNUSED))
    def test_a_field_of_the_schema_is_read(self, path: str) -> None:
        wrong: Any = [] if JOB_FIELDS[path]["type"] in ("object", "string") else {}

        assert refused(path, wrong) == path

    @pytest.mark.parametrize("path", sorted(UNUSED))
    def test_a_field_that_is_not_used_is_accepted_and_says_so(self, path: str) -> None:
        job = training_job()
        put(path.replace(".", "/"), ["x"])(job)

        assert TRAINING.parse(job) == TRAINING.parse(training_job())
        assert JOB_FIELDS[path]["description"] == "Accepted and not used."

    @pytest.mark.parametrize("path", sorted(WORDS))
    def test_the_description_names_the_words_that_are_known(self, path: str) -> None:
        assert [word for word in WORDS[path] if refused(path, word)] == []
        assert refused(path, "Nonsense") == path
        assert [word for word in WORDS[path] if word not in JOB_FIELDS[path]["description"]] == []

    @pytest.mark.parametrize("path", sorted(path for path, field in JOB_FIELDS.items() if "enum" in field))
    def test_they_know_the_same_words(self, path: str) -> None:
        assert tuple(JOB_FIELDS[path]["enum"]) == WORDS[path]

    @pytest.mark.parametrize("path", sorted(path for path, field in JOB_FIELDS.items() if "minimum" in field))
    def test_they_know_the_same_least_number(self, path: str) -> None:
        least = JOB_FIELDS[path]["minimum"]

        assert (refused(path, least), refused(path, least - 1)) == ("", path)

    @pytest.mark.parametrize("path", sorted(path for path, field in JOB_FIELDS.items() if "maximum" in field))
    def test_they_know_the_same_greatest_number(self, path: str) -> None:
        most = JOB_FIELDS[path]["maximum"]

        assert (refused(path, most), refused(path, most + 1)) == ("", path)

    @pytest.mark.parametrize("path", sorted(path for path, field in JOB_FIELDS.items() if "default" in field))
    def test_they_know_the_same_default(self, path: str) -> None:
        plain, explicit = training_job(replicas=None), training_job(replicas=None)
        put(path.replace(".", "/"), JOB_FIELDS[path]["default"])(explicit)

        assert TRAINING.parse(explicit) == TRAINING.parse(plain)

    def test_what_is_read_has_a_place_in_the_schema(self) -> None:
        asked: set[str] = set()
        job = training_job(worker=template(container("worker")), restartPolicy="OnFailure")

        TRAINING.parse(Watched(job, "", asked))

        assert f"{REPLICAS}.worker.maxReplicas" in asked
        assert without_place(asked, JOB_FIELDS) == set()


class TestTheReaderOfScalers:
    @pytest.mark.parametrize(("kind", "path"), USED)
    def test_a_field_of_the_schema_is_read(self, kind: str, path: str) -> None:
        body = asks(kind)
        # Alone: another way to say which workers is not meant beside it.
        body["spec"].pop(path.split(".")[1], None)
        put(path.replace(".", "/"), "x")(body)

        assert read(kind, body).problem.startswith(f"{path}: ")

    @pytest.mark.parametrize("kind", SCALERS)
    @pytest.mark.parametrize("path", SCALER_UNUSED)
    def test_a_field_that_is_not_used_is_accepted_and_told(self, kind: str, path: str) -> None:
        body = asks(kind)
        put(path.replace(".", "/"), SCALER_UNUSED[path])(body)

        assert (read(kind, body).problem, read(kind, body).unused) == ("", (path,))
        assert FIELDS[kind][path]["description"].startswith("Accepted and not used")

    @pytest.mark.parametrize("kind", SCALERS)
    def test_the_selector_decides_whose_it_is(self, kind: str) -> None:
        body = asks(kind)
        put(DECIDES.replace(".", "/"), "another")(body)

        assert Store(["TrainingJob"], clock=lambda: NOON).put(kind, body) == {
            JobKey("TrainingJob", "ml", "another")
        }
        assert DECIDES in FIELDS[kind]

    @pytest.mark.parametrize("kind", SCALERS)
    def test_they_know_the_same_least_time(self, kind: str) -> None:
        least, found = FIELDS[kind]["spec.timeout"]["minimum"], []
        for seconds in (least, least - 1):
            body = asks(kind)
            body["spec"]["timeout"] = seconds
            found.append(read(kind, body).problem)

        assert found == ["", "spec.timeout: must be at least 0, got -1"]

    @pytest.mark.parametrize("kind", SCALERS)
    def test_what_is_read_has_a_place_in_the_schema(self, kind: str) -> None:
        asked: set[str] = set()
        body = {**asks(kind), "status": write_scaler_status(Source(kind), [CONDITION], ["w"])}

        assert read(kind, Watched(body, "", asked)).problem == ""  # type: ignore[arg-type]  # a mapping that notes
        assert without_place(asked, FIELDS[kind]) == set()


class TestTheSchemas:
    @pytest.mark.parametrize("kind", CRDS)
    def test_every_field_is_explained(self, kind: str) -> None:
        obvious = (".labels", ".annotations")
        said = [*described(SCHEMAS[kind]["spec"], "spec"), *described(SCHEMAS[kind]["status"], "status")]

        assert [path for path, text in said if not text.endswith(".") and not path.endswith(obvious)] == []

    @pytest.mark.parametrize("kind", CRDS)
    def test_what_was_published_is_in_it(self, kind: str) -> None:
        assert PUBLISHED[kind] - FIELDS[kind].keys() == set()

    def test_what_is_written_in_the_status_of_a_job_is_in_it(self) -> None:
        written = TRAINING.write_status(whole_status(), JobKey("TrainingJob", "ml", "elastic"))

        assert both_ways(written, SCHEMAS["TrainingJob"]["status"]) == (set(), set())

    @pytest.mark.parametrize("kind", SCALERS)
    def test_what_is_written_in_the_status_of_a_scaler_is_in_it(self, kind: str) -> None:
        end = Condition(Type.SCALE_FAILED, True, Reason.SCALING, "", NOON, NOON)  # noqa: FBT003  as it is defined

        written = write_scaler_status(Source(kind), [CONDITION, end], ["elastic-worker-1"])

        assert both_ways(written, SCHEMAS[kind]["status"]) == (set(), set())

    def test_scaling_reads_and_writes_fields_that_exist(self) -> None:
        scale, key = VERSIONS["TrainingJob"]["subresources"]["scale"], JobKey("TrainingJob", "ml", "elastic")
        job = {**training_job(), "status": TRAINING.write_status(JobStatus(workers=Counts(2)), key)}

        assert (at(job, scale["specReplicasPath"]), at(job, scale["statusReplicasPath"])) == (2, 2)
        assert "job-role=worker" in str(at(job, scale["labelSelectorPath"]))

    @pytest.mark.parametrize("resource", [*TRAINING.versions, *SCALER_RESOURCES], ids=lambda one: one.kind)
    def test_the_controller_watches_the_version_that_is_stored(self, resource: Any) -> None:
        spec = CRDS[resource.kind]["spec"]

        assert [version["name"] for version in spec["versions"] if version["storage"]] == ["v1alpha1"]
        assert resource.api_version == f"{spec['group']}/v1alpha1"
        assert resource.plural == spec["names"]["plural"]


def refused(path: str, value: object) -> str:
    """The field that the reader finds wrong in a job that has this value there; empty if it takes it."""
    job = training_job(replicas=1, least=None, most=None)
    put(path.replace(".", "/"), value)(job)
    try:
        TRAINING.parse(job)
    except SpecError as error:
        return error.field
    return ""


def asks(kind: str) -> Body:
    """A scaler that is valid."""
    return scaler(kind, "asks", {"toDelete" if kind == "ScaleIn" else "toAdd": {"count": 1}}, created=0)


def read(kind: str, body: Body) -> Scaler:
    return read_scaler(Source(kind), body)


def whole_status() -> JobStatus:
    """Every field of it is written."""
    change = Change(
        Source.SCALE_IN, NOON, "in", "uid", 60, force=True, leaving=("w-1",), joining=("w-4",), committed=True
    )
    drain = Drain("w-0", Source.NODE_TAINT, "node-1 is about to go", NOON, after="w-3", committed=True)
    roster = Roster(("w-1", "w-2", "w-3"), 4, 3, ("w-4",), change, (drain,), 1, NOON)
    return JobStatus(
        {Type.SCALING: CONDITION}, Counts(), Counts(), NOON, NOON, NOON, HISTORY, roster, running=("w-1",)
    )
