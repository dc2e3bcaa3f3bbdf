"""What the API server is asked before anything is done, and which field its no is about."""

from __future__ import annotations

from mpirt.controller.decisions.dry_runs import refused_field, workers_as_job
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.model.actions import Refusal
from mpirt.controller.model.digests import digest
from tests.unit.controller.jobs import SETTINGS, container, parsed, template
from tests.unit.controller.world import World, writes


def test_workers_are_tried_as_a_job_that_ends_for_a_job_has_to() -> None:
    worker = template(container("worker", command=["serve"]), metadata={"labels": {"job-name": "mine"}})

    tried = workers_as_job(parsed(worker=worker), SETTINGS)

    assert (tried["kind"], tried["metadata"]["name"]) == ("Job", "train-worker")
    pod = tried["spec"]["template"]["spec"]
    assert (pod["containers"][0]["command"], pod["restartPolicy"]) == (["serve"], "Never")
    # A Job's own label: with another value in it the API server would refuse a template that is fine.
    assert "metadata" not in tried["spec"]["template"]


def test_a_suspended_job_asks_nothing() -> None:
    world = World()
    assert world.job is not None
    world.job["spec"]["runPolicy"] = {"suspend": True}

    assert not any(word.startswith("try") for word in writes(world.settle()))


def test_what_is_on_its_way_out_needs_no_answer() -> None:
    world = World()
    world.start()
    world.get("Job")["metadata"]["deletionTimestamp"] = "2026-05-04T12:00:20Z"
    assert world.job is not None
    world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = template(container("mpi", command=["other"]))

    assert not any(word.startswith("try") for word in writes(world.settle()))


def test_a_refusal_names_the_field_that_it_is_about() -> None:
    spec = parsed()

    def about(kind: str, *manifest: object) -> str:
        return refused_field(Refusal(kind, digest(*manifest), "no", final=True), spec, SETTINGS)

    assert about("Job", launcher_job(spec, SETTINGS)) == "spec.mpiReplicaSpecs.Launcher.template"
    assert about("Job", workers_as_job(spec, SETTINGS)) == "spec.mpiReplicaSpecs.Worker.template"
    assert about("StatefulSet") == "spec.mpiReplicaSpecs.Worker.template"
    assert about("Role") == ""
