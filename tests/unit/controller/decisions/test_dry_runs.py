"""What the API server is asked before anything is done, and which field its no is about."""

from __future__ import annotations

from mpirt.controller.decisions.dry_runs import refused_field
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.model.actions import Create, Rejection
from tests.unit.controller.jobs import SETTINGS, Body, container, mpi_job, parsed, template
from tests.unit.controller.world import World, started, writes


def tried(world: World) -> dict[str, Body]:
    """What is asked now, by kind."""
    return {
        one.kind: dict(one.manifest) for one in world.plan().actions if isinstance(one, Create) and one.dry_run
    }


def test_templates_are_tried_as_the_objects_that_will_hold_them() -> None:
    worker = template(container("worker", command=["serve"]), metadata={"labels": {"team": "blue"}})
    world = World(mpi_job(worker=worker))

    asked = tried(world)

    world.start()
    assert asked == {"Job": launcher_job(parsed(worker=worker), SETTINGS), "StatefulSet": made(world)}
    assert asked["StatefulSet"]["spec"]["template"]["metadata"]["labels"]["team"] == "blue"


def test_a_changed_template_is_tried_under_the_name_that_it_has_and_will_have() -> None:
    world = started()
    world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))

    asked = tried(world)

    assert list(asked) == ["StatefulSet"]
    assert asked["StatefulSet"]["metadata"]["name"] == "train-worker"


def test_a_suspended_job_asks_nothing() -> None:
    world = World()
    world.job["spec"]["runPolicy"] = {"suspend": True}

    assert not any(word.startswith("try") for word in writes(world.settle()))


def test_what_is_on_its_way_out_needs_no_answer() -> None:
    world = started()
    world.get("Job")["metadata"]["deletionTimestamp"] = "2026-05-04T12:00:20Z"
    world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = template(container("mpi", command=["other"]))

    assert not any(word.startswith("try") for word in writes(world.settle()))


def test_a_refusal_names_the_field_that_it_is_about() -> None:
    def about(kind: str) -> str:
        return refused_field(parsed(), Rejection(kind, "digest", "no", final=True))

    assert about("Job") == "spec.mpiReplicaSpecs.Launcher.template"
    assert about("StatefulSet") == "spec.mpiReplicaSpecs.Worker.template"
    assert about("Role") == ""


def made(world: World) -> Body:
    """The StatefulSet, as it was created."""
    body = world.get("StatefulSet")
    metadata = {name: value for name, value in body["metadata"].items() if name not in ("uid", "generation")}
    return {name: value for name, value in body.items() if name != "status"} | {"metadata": metadata}
