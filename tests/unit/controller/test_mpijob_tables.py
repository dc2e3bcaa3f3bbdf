"""The tables of docs/mpijob.md name every field of the CRD, and every label and variable that is set."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from mpirt.controller.decisions.launching import with_hosts
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.pod_group import pod_group
from mpirt.controller.manifests.supporting import role, role_binding, service, service_account
from mpirt.controller.manifests.workers import stateful_set, worker_indices
from mpirt.controller.model.spec import JobSpec, Settings
from tests.promises import promise
from tests.unit.controller.jobs import SETTINGS, Body, container, mpi_job, template
from tests.unit.controller.mpijob_schema import PUBLISHED, VERSIONS
from tests.unit.controller.schemas import own_fields
from tests.unit.layers import PROJECT

_VERDICTS = ("same", "differs: ", "only here", "missing: ")


def expanded(name: str) -> list[str]:
    """`a.{b,c}` as the two names that it stands for."""
    pieces = [piece.split(",") for piece in re.split(r"[{}]", name)]
    return ["".join(words) for words in itertools.product(*pieces)]


def table(heading: str) -> dict[str, list[str]]:
    """The rows below a heading of the document, by the names in their first cells."""
    text = (PROJECT / "docs" / "mpijob.md").read_text(encoding="utf-8")
    [section] = re.findall(rf"^### {heading}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line] for line in lines]
    named = [(name, rest) for first, *rest in cells for name in expanded(first.strip("`"))]
    assert len(named) == len(dict(named)), f"a row of {heading} stands twice"
    return dict(named)


GANGS = [SETTINGS, *(replace(SETTINGS, gang=name) for name in ("volcano", "other"))]
FIELDS, LABELS, VARIABLES = table("Fields"), table("Labels and annotations"), table("Variables")


def fields(schema: Body, path: str) -> Iterator[str]:
    """The fields of a schema that have none below them with names of their own."""
    items, others = schema.get("items", {}), schema.get("additionalProperties", {})
    if "properties" in items:
        yield from fields(items, f"{path}[]")
    elif "properties" in others:
        yield from fields(others, f"{path}.*")
    elif not own_fields(schema):
        yield path
    for name, below in own_fields(schema).items():
        yield from fields(below, f"{path}.{name}")


def jobs() -> list[JobSpec]:
    """Jobs that between them have everything set that the controller ever sets."""
    gates = [{"name": "kueue.x-k8s.io/topology"}]
    cpus = container("mpi", resources={"limits": {"cpu": 2}})
    alone = mpi_job()
    del alone["spec"]["mpiReplicaSpecs"]["Worker"]
    bodies = [
        *(mpi_job(mpiImplementation=mpi, worker=template(cpus)) for mpi in ("OpenMPI", "Intel", "MPICH")),
        mpi_job(worker=template(container("mpi"), schedulingGates=gates)),
        mpi_job(launcher=template(cpus), runLauncherAsWorker=True),
        *(mpi_job(mpiImplementation=mpi, elastic={"minReplicas": 1}) for mpi in ("OpenMPI", "MPICH")),
        alone,
    ]
    return [MPI_JOB.parse(body) for body in bodies]


def objects(spec: JobSpec) -> list[Mapping[str, Any]]:
    rights = [role(spec, [*spec.workers.names]), role_binding(spec)]
    made = [config_map(spec, {}), service_account(spec), *rights, service(spec)]
    return [*made, *(each for settings in GANGS for each in objects_of_pods(spec, settings))]


def objects_of_pods(spec: JobSpec, settings: Settings) -> list[Mapping[str, Any]]:
    gang = settings.gang_scheduler
    groups = [] if gang is None or not spec.has_workers else [pod_group(spec, settings, gang, 1)]
    workers = [stateful_set(spec, settings)] if spec.has_workers else []
    return [*groups, *workers, with_hosts(launcher_job(spec, settings), spec)]


def names_in(metadata: Mapping[str, Any]) -> set[str]:
    return {*metadata.get("labels", {}), *metadata.get("annotations", {})}


def places_of_labels() -> dict[str, set[str]]:
    """Every label and annotation that is set, and on what."""
    found: dict[str, set[str]] = {}
    for spec in jobs():
        everything = objects(spec)
        on_all = set.intersection(*(names_in(made["metadata"]) for made in everything))
        for made in everything:
            for name in names_in(made["metadata"]):
                found.setdefault(name, set()).add("objects" if name in on_all else made["kind"])
            if made["kind"] in ("StatefulSet", "Job"):
                pods = "workers" if made["kind"] == "StatefulSet" else "launchers"
                for name in names_in(made["spec"]["template"]["metadata"]):
                    found.setdefault(name, set()).add(pods)
        if worker_indices(spec):
            found.setdefault("training.kubeflow.org/replica-index", set()).add("workers")
    return found


def places_of_variables() -> dict[str, set[str]]:
    """Every variable that is set, and in which containers, with the MPI if it is set for one alone."""
    found: dict[str, set[tuple[str, str]]] = {}
    for spec in jobs():
        for made in objects(spec):
            if made["kind"] not in ("StatefulSet", "Job"):
                continue
            pod = made["spec"]["template"]["spec"]
            main = "workers" if made["kind"] == "StatefulSet" else "launcher"
            for place, containers in (
                (main, pod["containers"]),
                ("launcher's wait", pod.get("initContainers", [])),
            ):
                for variable in (variable for one in containers for variable in one.get("env", [])):
                    found.setdefault(variable["name"], set()).add((place, spec.implementation))
    return {
        name: {place for place, _ in where}
        | ({str(mpi) for _, mpi in where} if len({mpi for _, mpi in where}) == 1 else set())
        for name, where in found.items()
    }


def shown(rows: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """What the table says is set, and where."""
    return {
        name: {place.strip() for place in where.split(",")}
        for name, (where, _, here) in rows.items()
        if not here.startswith("missing")
    }


@promise(
    "The tables of fields, labels and variables in mpijob.md are complete.",
    of="MPIJob",
    no_cluster="files and built objects are compared",
)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_table_has_every_field_of_the_crd_and_no_other(version: str) -> None:
    schema = VERSIONS[version]["schema"]["openAPIV3Schema"]["properties"]

    assert set(FIELDS) == {*fields(schema["spec"], "spec"), *fields(schema["status"], "status")}


def test_the_table_has_every_field_that_mpi_operator_publishes() -> None:
    assert PUBLISHED - FIELDS.keys() == set()


def test_the_table_has_every_label_and_annotation_that_is_set_and_where() -> None:
    assert shown(LABELS) == places_of_labels()


@promise(
    "The tables of fields, labels and variables in mpijob.md are complete.",
    of="MPIJob",
    no_cluster="files and built objects are compared",
)
def test_the_table_has_every_variable_that_is_set_and_where() -> None:
    assert shown(VARIABLES) == places_of_variables()


@pytest.mark.parametrize("rows", [FIELDS, LABELS, VARIABLES], ids=["fields", "labels", "variables"])
def test_every_row_says_whether_it_is_the_same(rows: dict[str, list[str]]) -> None:
    unclear = {name: here for name, (*_, here) in rows.items() if not here.startswith(_VERDICTS)}

    assert unclear == {}
