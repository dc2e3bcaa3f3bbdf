"""
The CRDs and the code that reads and writes their objects know the same fields.

Both ways: what is written wrongly in any field of a schema is found by the reader, under the schema's path; and
what the reader looks for has a place in the schema.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from mpirt.controller.dialects.base import Dialect
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.dialects.training_job import SCALERS as SCALER_RESOURCES
from mpirt.controller.dialects.training_job import TRAINING, read_scaler, write_scaler_status
from mpirt.controller.model.conditions import Condition, Counts, JobStatus, Reason, Type
from mpirt.controller.model.roster import Change, Drain, Roster, Source
from mpirt.controller.model.spec import JobKey, Scaler
from mpirt.controller.observed.store import Store
from mpirt.errors import SpecError
from tests.unit.controller.badspecs import put
from tests.unit.controller.jobs import NOON, Body, container, mpi_job, template
from tests.unit.controller.mpijob_schema import PUBLISHED as OF_MPI_OPERATOR
from tests.unit.controller.mpijob_schema import TEMPLATE_UNUSED
from tests.unit.controller.schemas import HISTORY, Watched, at, both_ways, crd, described, leaves, without_place
from tests.unit.controller.trainings import scaler, training_job

NAMES = {
    "MPIJob": "mpijobs.kubeflow.org",
    **{kind: f"{kind.lower()}s.kai.alibabacloud.com" for kind in ("TrainingJob", "ScaleIn", "ScaleOut")},
}
CRDS = {kind: crd(name) for kind, name in NAMES.items()}
VERSIONS = [(kind, version) for kind, body in CRDS.items() for version in body["spec"]["versions"]]
SCHEMAS = {kind: version["schema"]["openAPIV3Schema"]["properties"] for kind, version in reversed(VERSIONS)}
FIELDS = {kind: dict(leaves(schema["spec"], "spec")) for kind, schema in SCHEMAS.items()}

MPI_REPLICAS, KAI_REPLICAS = "spec.mpiReplicaSpecs", "spec.etReplicaSpecs"
# What the operators' CRDs have: see also examples/ of et-operator.
PUBLISHED = {
    "MPIJob": OF_MPI_OPERATOR,
    "TrainingJob": {
        *("spec.launcherAttachMode", "spec.slotsPerWorker", "spec.cleanPodPolicy", "spec.restartPolicy"),
        *("spec.backoffLimit", f"{KAI_REPLICAS}.launcher.replicas", f"{KAI_REPLICAS}.launcher.restartPolicy"),
        *(f"{KAI_REPLICAS}.worker.{name}" for name in ("replicas", "minReplicas", "maxReplicas", "restartPolicy")),
        *(f"{KAI_REPLICAS}.{role}.template.spec" for role in ("launcher", "worker")),
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
# Accepted, because jobs have them, and not used: their descriptions say so.
UNUSED = {
    "MPIJob": {
        "spec.sshAuthMountPath",
        *(
            f"{MPI_REPLICAS}.{role}.template.metadata.{name}"
            for role in ("Launcher", "Worker")
            for name in TEMPLATE_UNUSED
        ),
    },
    "TrainingJob": {
        f"{KAI_REPLICAS}.{role}.template.metadata.{name}"
        for role in ("launcher", "worker")
        for name in TEMPLATE_UNUSED
    },
}
# Decides whether the job is ours at all, before it is read.
MANAGER = "spec.runPolicy.managedBy"
# mpi-operator's schemas have it, and what they take must not be refused before anybody can say why.
NOT_FOR_LAUNCHERS = (f"{MPI_REPLICAS}.Launcher.restartPolicy", "Always")
# Says which words there are where it refers to.
REFERS = "spec.cleanPodPolicy"
# The words that et-operator's schema leaves to its code, so that ours can say what is wrong with another one.
WORDS = {
    "spec.launcherAttachMode": ("ssh", "kubexec"),
    "spec.cleanPodPolicy": ("Running", "All", "None"),
    "spec.restartPolicy": ("Never", "OnFailure"),
    f"{KAI_REPLICAS}.worker.restartPolicy": ("Never", "Always", "OnFailure", "ExitCode"),
}

SCALERS = ("ScaleIn", "ScaleOut")
SCALER_UNUSED = {"spec.script": "x", "spec.env": [{"name": "A"}], "spec.backoffLimit": 1}
# By it a scaler is found to belong to a job, before it is read.
SELECTOR = "spec.selector.name"
CONDITION = Condition(Type.SCALING, True, Reason.SCALING, "", NOON, NOON)  # noqa: FBT003  as it is defined


class Reader(NamedTuple):
    """A dialect, and a plain job of it."""

    dialect: Dialect
    job: Any

    def refused(self, path: str, value: object) -> str:
        """The field that is found wrong in a job that has this value there; empty if the job is read."""
        job = self.job(replicas=1)
        put(path.replace(".", "/"), value)(job)
        try:
            self.dialect.parse(job)
        except SpecError as error:
            return error.field
        return ""


def plain_training_job(replicas: int = 2) -> Body:
    return training_job(replicas=replicas, least=None, most=None)


JOBS = {"MPIJob": Reader(MPI_JOB, mpi_job), "TrainingJob": Reader(TRAINING, plain_training_job)}


def those_with(key: str) -> list[tuple[str, str]]:
    """The fields of jobs whose schemas have this key."""
    return [(kind, path) for kind in JOBS for path in sorted(FIELDS[kind]) if key in FIELDS[kind][path]]


class TestTheReadersOfJobs:
    @pytest.mark.parametrize(
        ("kind", "path"),
        [(kind, path) for kind in JOBS for path in sorted(FIELDS[kind].keys() - UNUSED[kind] - {MANAGER})],
    )
    def test_a_field_of_the_schema_is_read(self, kind: str, path: str) -> None:
        wrong: Any = [] if FIELDS[kind][path]["type"] in ("object", "string") else {}

        assert JOBS[kind].refused(path, wrong) == path

    @pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind in JOBS for path in sorted(UNUSED[kind])])
    def test_a_field_that_is_not_used_is_accepted_and_says_so(self, kind: str, path: str) -> None:
        dialect, job = JOBS[kind].dialect, JOBS[kind].job()
        put(path.replace(".", "/"), ["x"])(job)

        assert dialect.parse(job) == dialect.parse(JOBS[kind].job())
        assert "not used" in FIELDS[kind][path]["description"]

    def test_the_field_that_names_the_manager_decides_whose_the_job_is(self) -> None:
        job = mpi_job()
        put(MANAGER.replace(".", "/"), ["x"])(job)

        assert not MPI_JOB.is_ours(job)
        assert MANAGER in FIELDS["MPIJob"]

    @pytest.mark.parametrize(
        ("kind", "path", "words"),
        [
            *((kind, path, tuple(FIELDS[kind][path]["enum"])) for kind, path in those_with("enum")),
            *(("TrainingJob", path, words) for path, words in WORDS.items()),
        ],
    )
    def test_they_know_the_same_words_and_the_description_names_them(
        self, kind: str, path: str, words: tuple[str, ...]
    ) -> None:
        """Older kubectl explain shows nothing else of them."""
        refused = {word: JOBS[kind].refused(path, word) for word in (*words, "Nonsense")}

        allowed = {word: path if (path, word) == NOT_FOR_LAUNCHERS else "" for word in words}
        assert refused == {**allowed, "Nonsense": path}
        silent = [word for word in words if word not in FIELDS[kind][path]["description"]]
        assert silent == [] or (kind, path) == ("MPIJob", REFERS)
        assert kind == "MPIJob" or words == WORDS[path]

    @pytest.mark.parametrize(("kind", "path"), those_with("minimum"))
    def test_they_know_the_same_least_number(self, kind: str, path: str) -> None:
        least, refused = FIELDS[kind][path]["minimum"], JOBS[kind].refused

        assert (refused(path, least), refused(path, least - 1)) == ("", path)

    @pytest.mark.parametrize(("kind", "path"), those_with("maximum"))
    def test_they_know_the_same_greatest_number(self, kind: str, path: str) -> None:
        most, refused = FIELDS[kind][path]["maximum"], JOBS[kind].refused

        assert (refused(path, most), refused(path, most + 1)) == ("", path)

    @pytest.mark.parametrize("path", [path for kind, path in those_with("default") if kind == "TrainingJob"])
    def test_they_know_the_same_default(self, path: str) -> None:
        plain, explicit = training_job(replicas=None), training_job(replicas=None)
        put(path.replace(".", "/"), FIELDS["TrainingJob"][path]["default"])(explicit)

        assert TRAINING.parse(explicit) == TRAINING.parse(plain)

    @pytest.mark.parametrize(
        ("kind", "job"),
        [
            (
                "MPIJob",
                mpi_job(
                    elastic={},
                    launcher=template(container("mpi")),
                    runPolicy={"schedulingPolicy": {"minResources": {"cpu": "1"}}},
                ),
            ),
            ("TrainingJob", training_job(worker=template(container("worker")), restartPolicy="OnFailure")),
        ],
        ids=JOBS,
    )
    def test_what_is_read_has_a_place_in_the_schema(self, kind: str, job: Body) -> None:
        asked: set[str] = set()

        JOBS[kind].dialect.parse(Watched(job, "", asked))

        assert {path for path in asked if path.endswith(".replicas")}
        below = ("minResources.cpu",)
        assert {path for path in without_place(asked, FIELDS[kind]) if not path.endswith(below)} == set()


@pytest.mark.parametrize("kind", SCALERS)
class TestTheReaderOfScalers:
    def test_a_field_of_the_schema_is_read(self, kind: str) -> None:
        problems = {}
        for path in FIELDS[kind].keys() - SCALER_UNUSED - {SELECTOR}:
            body = asks(kind)
            # Alone: another way to say which workers is not meant beside it.
            body["spec"].pop(path.split(".")[1], None)
            put(path.replace(".", "/"), "x")(body)
            problems[path] = read(kind, body).problem

        assert {path: problem.partition(": ")[0] for path, problem in problems.items()} == {
            path: path for path in problems
        }
        assert "spec.timeout" in problems

    @pytest.mark.parametrize("path", SCALER_UNUSED)
    def test_a_field_that_is_not_used_is_accepted_and_told(self, kind: str, path: str) -> None:
        body = asks(kind)
        put(path.replace(".", "/"), SCALER_UNUSED[path])(body)

        assert (read(kind, body).problem, read(kind, body).unused) == ("", (path,))
        assert FIELDS[kind][path]["description"].startswith("Accepted and not used")

    def test_the_selector_decides_whose_it_is(self, kind: str) -> None:
        body = asks(kind)
        put(SELECTOR.replace(".", "/"), "another")(body)

        concerned = Store(["TrainingJob"], clock=lambda: NOON).put(kind, body)

        assert concerned == {JobKey("TrainingJob", "ml", "another")}
        assert SELECTOR in FIELDS[kind]

    def test_they_know_the_same_least_time(self, kind: str) -> None:
        least, found = FIELDS[kind]["spec.timeout"]["minimum"], []
        for seconds in (least, least - 1):
            body = asks(kind)
            body["spec"]["timeout"] = seconds
            found.append(read(kind, body).problem)

        assert found == ["", "spec.timeout: must be at least 0, got -1"]

    def test_what_is_read_has_a_place_in_the_schema(self, kind: str) -> None:
        asked: set[str] = set()
        body = {**asks(kind), "status": write_scaler_status(Source(kind), [CONDITION], ["w"])}

        assert read(kind, Watched(body, "", asked)).problem == ""  # type: ignore[arg-type]  # a mapping that notes
        assert without_place(asked, FIELDS[kind]) == set()


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


def written_scaler(kind: str) -> dict[str, object]:
    end = Condition(Type.SCALE_FAILED, True, Reason.SCALING, "", NOON, NOON)  # noqa: FBT003  as it is defined
    return write_scaler_status(Source(kind), [CONDITION, end], ["elastic-worker-1"])


class TestTheSchemas:
    def test_both_versions_of_mpijobs_are_the_same_so_that_nothing_is_cut_off_in_storage(self) -> None:
        v1, v2 = sorted((version for kind, version in VERSIONS if kind == "MPIJob"), key=lambda one: one["name"])

        assert (v1["storage"], v2["storage"], v1["served"], v2["served"]) == (False, True, True, True)
        assert {**v1, "name": "", "storage": ""} == {**v2, "name": "", "storage": ""}

    @pytest.mark.parametrize("kind", CRDS)
    def test_every_field_is_explained(self, kind: str) -> None:
        obvious, parts = (".labels", ".annotations"), ("spec",) if kind == "MPIJob" else ("spec", "status")
        said = [row for part in parts for row in described(SCHEMAS[kind][part], part)]

        assert [path for path, text in said if not text.endswith(".") and not path.endswith(obvious)] == []

    @pytest.mark.parametrize("kind", CRDS)
    def test_what_was_published_is_in_it(self, kind: str) -> None:
        assert PUBLISHED[kind] - FIELDS[kind].keys() == set()

    @pytest.mark.parametrize("kind", CRDS)
    def test_what_is_written_in_a_status_is_in_it(self, kind: str) -> None:
        status = whole_status()
        written = (
            written_scaler(kind)
            if kind in SCALERS
            else JOBS[kind].dialect.write_status(status, JobKey(kind, "ml", "x"))
        )

        # They are deprecated, and say so.
        old = {f"replicaStatuses.{role}.labelSelector" for role in ("Launcher", "Worker")}
        assert both_ways(written, SCHEMAS[kind]["status"]) == (set(), old if kind == "MPIJob" else set())

    @pytest.mark.parametrize(
        ("kind", "version"), [row for row in VERSIONS if row[0] in JOBS], ids=lambda one: str(one)[:20]
    )
    def test_scaling_reads_and_writes_fields_that_exist(self, kind: str, version: Body) -> None:
        scale, dialect = version["subresources"]["scale"], JOBS[kind].dialect
        status = dialect.write_status(JobStatus(workers=Counts(2)), JobKey(kind, "ml", "x"))
        job = {**JOBS[kind].job(), "status": status}

        assert (at(job, scale["specReplicasPath"]), at(job, scale["statusReplicasPath"])) == (2, 2)
        assert "job-role=worker" in str(at(job, scale["labelSelectorPath"]))

    @pytest.mark.parametrize(
        "resource", [MPI_JOB.resource, *TRAINING.versions, *SCALER_RESOURCES], ids=lambda one: one.kind
    )
    def test_the_controller_watches_the_version_that_is_stored(self, resource: Any) -> None:
        spec = CRDS[resource.kind]["spec"]
        [stored] = [version["name"] for version in spec["versions"] if version["storage"]]

        assert resource.api_version == f"{spec['group']}/{stored}"
        assert (resource.kind, resource.plural) == (spec["names"]["kind"], spec["names"]["plural"])
