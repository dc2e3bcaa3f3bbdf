"""
The CRD and the code that reads jobs know the same fields.

Both ways: what is written wrongly in any field of the schema is found by the parser, under the schema's path; and
what the parser looks for has a place in the schema.
"""

from __future__ import annotations

import copy

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.model.conditions import Condition, Counts, JobStatus, Reason, Type
from mpirt.controller.model.spec import JobKey
from mpirt.errors import SpecError
from tests.unit.controller.badspecs import put
from tests.unit.controller.jobs import NOON, container, mpi_job, template
from tests.unit.controller.mpijob_schema import CRD, PUBLISHED, SCHEMA, TEMPLATE_UNUSED, VERSIONS
from tests.unit.controller.schemas import HISTORY, Watched, at, both_ways, described, leaves, without_place

# Accepted, because jobs have them, and not used: their descriptions say so.
UNUSED = {
    "spec.sshAuthMountPath",
    *(
        f"spec.mpiReplicaSpecs.{role}.template.metadata.{name}"
        for role in ("Launcher", "Worker")
        for name in TEMPLATE_UNUSED
    ),
}
# Decides whether the job is ours at all, before it is read.
DECIDES = {"spec.runPolicy.managedBy"}
# mpi-operator's schemas have it, and what they take must not be refused before anybody can say why.
NOT_FOR_LAUNCHERS = {("spec.mpiReplicaSpecs.Launcher.restartPolicy", "Always")}
# Says which words there are where it refers to.
REFERS = {"spec.cleanPodPolicy"}

FIELDS = dict(leaves(SCHEMA["spec"], "spec"))


class TestTheParserAndTheSchema:
    @pytest.mark.parametrize("path", sorted(FIELDS.keys() - UNUSED - DECIDES))
    def test_a_field_of_the_schema_is_read(self, path: str) -> None:
        job = mpi_job()
        kind = FIELDS[path]["type"]
        put(path.replace(".", "/"), [] if kind in ("object", "string") else {})(job)

        with pytest.raises(SpecError) as caught:
            MPI_JOB.parse(job)

        assert caught.value.field == path

    @pytest.mark.parametrize("path", sorted(UNUSED))
    def test_a_field_that_is_not_used_is_accepted(self, path: str) -> None:
        job = mpi_job()
        put(path.replace(".", "/"), ["x"])(job)

        assert MPI_JOB.parse(job) == MPI_JOB.parse(mpi_job())
        assert path in FIELDS

    @pytest.mark.parametrize("path", sorted(DECIDES))
    def test_a_field_that_decides_whose_the_job_is(self, path: str) -> None:
        job = mpi_job()
        put(path.replace(".", "/"), ["x"])(job)

        assert not MPI_JOB.is_ours(job)
        assert path in FIELDS

    @pytest.mark.parametrize("path", sorted(path for path, field in FIELDS.items() if "enum" in field))
    def test_they_know_the_same_words(self, path: str) -> None:
        for word in FIELDS[path]["enum"]:
            assert told(path, word) == ("" if (path, word) not in NOT_FOR_LAUNCHERS else path)
        assert told(path, "Nonsense") == path

    @pytest.mark.parametrize("path", sorted(path for path, field in FIELDS.items() if "minimum" in field))
    def test_they_know_the_same_least_number(self, path: str) -> None:
        least = FIELDS[path]["minimum"]

        assert (told(path, least), told(path, least - 1)) == ("", path)

    @pytest.mark.parametrize("path", sorted(path for path, field in FIELDS.items() if "maximum" in field))
    def test_they_know_the_same_greatest_number(self, path: str) -> None:
        most = FIELDS[path]["maximum"]

        assert (told(path, most), told(path, most + 1)) == ("", path)

    def test_what_is_read_has_a_place_in_the_schema(self) -> None:
        whole = mpi_job(
            elastic={},
            launcher=template(container("mpi")),
            runPolicy={"schedulingPolicy": {"minResources": {"cpu": "1"}}},
        )
        asked: set[str] = set()

        MPI_JOB.parse(Watched(whole, "", asked))

        below = ("minResources.cpu",)
        assert {path for path in without_place(asked, FIELDS) if not path.endswith(below)} == set()

    def test_what_was_published_is_in_it(self) -> None:
        assert PUBLISHED - FIELDS.keys() == set()


def told(path: str, value: object) -> str:
    """The field that the parser finds wrong in a job that has this value there; empty if it takes it."""
    job = mpi_job(replicas=1)
    put(path.replace(".", "/"), value)(job)
    try:
        MPI_JOB.parse(job)
    except SpecError as error:
        return error.field
    return ""


class TestTheSchema:
    def test_both_versions_have_the_same_so_that_nothing_is_cut_off_in_storage(self) -> None:
        v1, v2 = VERSIONS["v1"], VERSIONS["v2beta1"]

        assert (v1["storage"], v2["storage"], v1["served"], v2["served"]) == (False, True, True, True)
        assert {**v1, "name": "", "storage": ""} == {**v2, "name": "", "storage": ""}

    @pytest.mark.parametrize("version", VERSIONS)
    def test_every_field_is_explained(self, version: str) -> None:
        schema = VERSIONS[version]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        obvious = (".labels", ".annotations")

        said = {path: text for path, text in described(schema, "spec") if not path.endswith(obvious)}

        assert [path for path, text in said.items() if not text.endswith(".")] == []

    def test_a_description_names_the_words_that_may_be_said(self) -> None:
        """Older kubectl explain shows nothing else of them."""
        silent = {
            path: [word for word in field["enum"] if word not in field["description"]]
            for path, field in FIELDS.items()
            if "enum" in field and path not in REFERS
        }

        assert {path: words for path, words in silent.items() if words} == {}

    def test_what_is_written_in_a_status_is_in_it(self) -> None:
        condition = Condition(Type.CREATED, True, Reason.CREATED, "", NOON, NOON)  # noqa: FBT003  as it is defined
        status = JobStatus({Type.CREATED: condition}, Counts(), Counts(), NOON, NOON, NOON, HISTORY)

        written = MPI_JOB.write_status(status, JobKey("MPIJob", "ml", "train"))

        # It is deprecated, and says so.
        assert both_ways(written, SCHEMA["status"]) == (
            set(),
            {"replicaStatuses.Launcher.labelSelector", "replicaStatuses.Worker.labelSelector"},
        )

    @pytest.mark.parametrize("version", VERSIONS)
    def test_scaling_reads_and_writes_fields_that_exist(self, version: str) -> None:
        scale = VERSIONS[version]["subresources"]["scale"]
        job = copy.deepcopy(mpi_job())
        job["status"] = MPI_JOB.write_status(JobStatus(workers=Counts(2)), JobKey("MPIJob", "ml", "train"))

        assert (at(job, scale["specReplicasPath"]), at(job, scale["statusReplicasPath"])) == (2, 2)
        assert "job-role=worker" in str(at(job, scale["labelSelectorPath"]))

    def test_the_controller_watches_the_version_that_is_stored(self) -> None:
        resource = MPI_JOB.resource

        assert resource.api_version == f"{CRD['spec']['group']}/v2beta1"
        assert (resource.kind, resource.plural) == (CRD["spec"]["names"]["kind"], CRD["spec"]["names"]["plural"])
