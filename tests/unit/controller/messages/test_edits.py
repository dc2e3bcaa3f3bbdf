"""The clients that changed an object, and the messages about that."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.messages.events import edit_undone, field_managers
from mpirt.controller.messages.status import launcher_suspended
from mpirt.controller.model.actions import Patch
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.observed.observe import Circumstances, observe
from tests.unit.controller.jobs import NOON, SETTINGS, mpi_job
from tests.unit.controller.world import World, started

Fields = dict[str, Any]


def patched(*paths: str) -> Patch:
    operations = ({"op": "test", "path": "/metadata/uid"}, *({"op": "add", "path": path} for path in paths))
    return Patch("Job", "train-launcher", operations, "has drifted")


def row(manager: str, fields: Fields, *, time: str = "2026-01-01T12:00:00Z", **more: str) -> Fields:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields, **more}


def managed(*rows: Fields) -> Fields:
    return {"metadata": {"managedFields": list(rows)}}


PARALLELISM: Fields = {"f:spec": {"f:parallelism": {}}}
LABELS: Fields = {"f:metadata": {"f:labels": {"f:example.com/team": {}}}}


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        pytest.param("/spec/parallelism", PARALLELISM, id="a field"),
        pytest.param("/spec/template", {"f:spec": {"f:template": {"f:spec": {}}}}, id="a part of it"),
        pytest.param("/spec/selector/app", {"f:spec": {"f:selector": {}}}, id="all around it"),
        pytest.param("/metadata/labels/example.com~1team", LABELS, id="a name with a slash"),
    ],
)
def test_the_managers_are_those_that_have_set_what_is_changed_back(path: str, fields: Fields) -> None:
    later = row("kubectl-edit", {"f:spec": {"f:completions": {}}}, time="2026-01-01T12:00:09Z")
    found = managed(row("kueue", fields), row("mpirt-controller", fields), later)

    assert field_managers(found, patched(path)) == ["kueue"]


def test_of_a_field_that_was_removed_the_manager_is_the_last_writer() -> None:
    found = managed(
        row("kueue", LABELS, time="2026-01-01T12:00:01Z"),
        row("helm", LABELS),
        row("kube-controller-manager", {"f:status": {}}, time="2026-01-01T12:00:09Z", subresource="status"),
    )

    assert field_managers(found, patched("/spec/parallelism")) == ["kueue"]


def test_the_event_names_object_fields_and_managers() -> None:
    found = managed(row("kueue", PARALLELISM))
    patch = patched("/spec/parallelism", "/metadata/annotations/mpirt.dev~1generation")

    event = edit_undone(MPI_JOB.owner(mpi_job()), patch, found, now=NOON)

    assert event.once
    assert (event.manifest["type"], event.manifest["reason"]) == ("Warning", "MPIJobEditUndone")
    assert event.manifest["message"] == (
        "Job train-launcher: field manager kueue changed /spec/parallelism, and mpirt-controller has changed it "
        "back 3 times. It goes on to do so, with delays that grow to 5 min. Configure kueue to leave the objects "
        "of MPIJobs alone."
    )


def test_the_event_names_a_client_without_a_field_manager() -> None:
    patch = patched("/metadata/annotations/mpirt.dev~1generation")

    message = edit_undone(MPI_JOB.owner(mpi_job()), patch, {}, now=NOON).manifest["message"]

    assert message.startswith(
        "Job train-launcher: a client that names no field manager changed "
        "/metadata/annotations/mpirt.dev~1generation, and mpirt-controller has changed it back 3 times."
    )


def suspended_as_observed(world: World) -> str:
    cached = {"Job": [body for (kind, _), body in world.objects.items() if kind == "Job"]}
    around, owner = Circumstances(SETTINGS, world.now), MPI_JOB.owner(world.job)
    return launcher_suspended(observe(world.job, cached, (), around, owner=owner, status=JobStatus()))


def test_a_launcher_job_that_another_client_has_suspended_is_named() -> None:
    world = started()
    assert suspended_as_observed(world) == suspended_as_observed(World()) == ""

    world.edit("Job", suspend=True)

    assert suspended_as_observed(world) == (
        "launcher Job train-launcher is suspended (spec.suspend is true); mpirt-controller never sets this field, "
        "and waits until the client that suspended the Job, Kueue for example, resumes it"
    )
