"""
Other people's CRDs: those of mpi-operator, training-operator and Arena, the way to ours, and the way back.

On a plane of its own: all tests of a plane share its CRDs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, manifest
from testbed.plane.plane import Plane
from testbed.plane.stages import ENDS, NEVER
from tests.api import controllers
from tests.api.controllers import Controller, job_name
from tests.api.crds import (
    ARENA,
    CRD,
    NOTICED_WITHIN,
    OURS,
    PUBLISHED,
    go_back,
    remove_crd,
    replace,
    served,
    serves_mpijobs,
    serves_trainings,
    stored,
)
from tests.api.endings import FAILS, OUT_OF_MEMORY, SUCCEEDS, WITHIN, have, launcher
from tests.promises import promise
from tests.support import trainings

# Of both versions, one is enough for each.
pytestmark = pytest.mark.sample(1)

# As `arena submit mpijob` creates it.
ARENA_JOB = {
    "apiVersion": "kubeflow.org/v1alpha1",
    "kind": "MPIJob",
    "metadata": {"name": "arena"},
    "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "mpi", "image": "busybox"}]}}},
}


@pytest.fixture
def ground(own: Plane) -> Iterator[Ground]:
    """The same without a CRD."""
    remove_crd(own.kubectl)
    yield Ground(own.kubectl, is_ours=False)
    remove_crd(own.kubectl)


@pytest.fixture(params=["v1", "v2beta1"])
def version(request: pytest.FixtureRequest) -> str:
    """The only version that a CRD of another origin serves."""
    return str(request.param)


@pytest.fixture
def theirs(own: Plane, ground: Ground, version: str, tmp_path: Path) -> Iterator[Controller]:
    """A controller where that CRD is installed."""
    ground.kubectl("create", f"--filename={PUBLISHED[version]}")
    with controllers.passing(own, ground, tmp_path) as installed:
        yield installed


def submit(controller: Controller, version: str, **spec: Any) -> MpiJob:
    """A job in that version of the API."""
    namespace = controller.namespace
    job = MpiJob(namespace, job_name(version))
    body = manifest(job.name, "busybox", ["true"], workers=2, worker={}, launcher={}, container={}, **spec)
    namespace.kubectl("create", "--filename=-", stdin=json.dumps(body | {"apiVersion": f"kubeflow.org/{version}"}))
    return job


def resource_version(job: MpiJob) -> str:
    return str(job.body()["metadata"]["resourceVersion"])


@promise(
    "Without any CRD of jobs /readyz says what to do, and jobs run as soon as there is one.", of="mpirt-controller"
)
def test_a_controller_without_a_crd_says_so_and_acts_as_soon_as_one_serves_a_version(
    own: Plane, ground: Ground, version: str, tmp_path: Path
) -> None:
    started = controllers.start(own, ground, tmp_path)
    [replica] = started.replicas
    try:
        until(
            lambda: "serves no MPIJob" in replica.page("/readyz"),
            within=NOTICED_WITHIN,
            what="/readyz to say why",
            instead=replica.problems,
        )
        assert "apply the CRD" in replica.page("/readyz")

        ground.kubectl("create", f"--filename={PUBLISHED[version]}")
        submit(started, version).wait_for_end()
        assert replica.page("/readyz") == "ok\n"

        said = [line for line in replica.log() if line["message"] == "version of the job resource"]
        assert [line["version"] for line in said if line["kind"] == "MPIJob"] == [f"kubeflow.org/{version}"]
        assert replica.ends == []
    finally:
        started.remove()


@promise("MPIJobs run with the CRD of mpi-operator or of training-operator.", of="neighbours")
@pytest.mark.one_in(3)
def test_a_job_runs_to_its_end_where_one_version_is_served(theirs: Controller, version: str) -> None:
    job = submit(theirs, version, slotsPerWorker=2)
    job.wait_for_end()

    status, kubectl = job.status(), theirs.namespace.kubectl
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "Created": "True",
        "Running": "False",
        "Succeeded": "True",
    }
    assert status["replicaStatuses"]["Launcher"]["succeeded"] == 1
    assert "training.kubeflow.org/job-role=worker" in status["replicaStatuses"]["Worker"]["selector"]
    assert {"startTime", "completionTime", "lastReconcileTime"} <= status.keys()
    [owner] = kubectl.get("configmap", f"{job.name}-config")["metadata"]["ownerReferences"]
    assert owner["apiVersion"] == f"kubeflow.org/{version}"
    events = kubectl.get("events", f"--field-selector=involvedObject.name={job.name}")
    assert {each["involvedObject"]["apiVersion"] for each in events} == {f"kubeflow.org/{version}"}


@pytest.mark.one_in(3)
def test_the_status_of_an_ended_job_is_not_written_again_where_a_crd_cuts_fields_off(
    theirs: Controller, version: str
) -> None:
    job = submit(theirs, version)
    job.wait_for_end()
    before = resource_version(job)

    # Who has come to the end of another job has looked at this one's last write, too.
    submit(theirs, version).wait_for_end()

    assert resource_version(job) == before


@promise("Where a CRD drops the history of a job, the controller still knows it after a restart.", of="neighbours")
def test_a_death_is_reported_after_a_restart_of_the_controller_where_the_crd_drops_the_attempts(
    theirs: Controller, version: str
) -> None:
    job = submit(theirs, version, annotations={"Launcher": {ENDS: NEVER}})
    job.wait_for("Running")
    worker = f"{job.name}-worker-1"
    have(job, worker, OUT_OF_MEMORY)
    until(lambda: worker in job.condition("Running")["message"], within=WITHIN, what="a dead worker in Running")
    have(job, launcher(job), FAILS)
    job.wait_for("Restarting")
    told = job.condition("Restarting")["message"]

    [replica] = theirs.replicas
    replica.end()
    replica.start()
    have(job, launcher(job), SUCCEEDS)
    job.wait_for_end()

    assert f"{worker}: container mpi ended with code 137 (OOMKilled)" in told
    assert job.condition("Restarting")["message"] == f"The launcher had to start again: {told}"
    assert "attempts" not in job.status()


@promise("A job that is deleted takes all that belongs to it along.", of="MPIJob")
def test_a_job_goes_with_all_that_it_owns_where_one_version_is_served(theirs: Controller, version: str) -> None:
    job = submit(theirs, version)
    job.wait_for_end()
    kubectl = theirs.namespace.kubectl

    kubectl("delete", CRD, job.name)

    until(lambda: all_of(job) == [], within=NOTICED_WITHIN, what="nothing of the job")


@promise(
    "Our CRDs can be applied over those of others while jobs are there and the controller runs.", of="neighbours"
)
def test_our_crd_is_applied_over_theirs_and_the_controller_goes_on(theirs: Controller, version: str) -> None:
    before = submit(theirs, version)
    before.wait_for_end()
    status, kubectl = before.status(), theirs.namespace.ground.kubectl
    assert stored(kubectl) == [version]

    kubectl("apply", "--kustomize", OURS)
    until(lambda: served(kubectl) == {"v1", "v2beta1"}, within=NOTICED_WITHIN, what="both versions")

    assert stored(kubectl) == sorted({version, "v2beta1"})
    assert before.status() == status
    for each in ("v1", "v2beta1"):
        submit(theirs, each).wait_for_end()
    [replica] = theirs.replicas
    assert replica.ends == []


@promise("The documented way back to another CRD works while the controller runs.", of="neighbours")
def test_the_documented_way_back_to_their_crd_is_open_and_the_controller_goes_on(
    own: Plane, ground: Ground, version: str, tmp_path: Path
) -> None:
    kubectl = ground.kubectl
    kubectl("apply", "--kustomize", OURS)
    with controllers.passing(own, ground, tmp_path) as ours:
        # Without pods: the garbage collector may delete those that a job has kept, and fewer are counted then.
        before = submit(ours, version, runPolicy={"cleanPodPolicy": "All"})
        before.wait_for_end()
        until(lambda: active_workers(before) == 0, within=NOTICED_WITHIN, what="a job without workers")
        ended = before.status()

        go_back(kubectl, version)
        submit(ours, version).wait_for_end()

        assert stored(kubectl) == [version]
        # What their CRD has no fields for is dropped.
        kept = {name: value for name, value in ended.items() if name not in ("attempts", "rerun")}
        assert before.status() == kept
        [replica] = ours.replicas
        assert replica.ends == []


@pytest.mark.one_in(3)
def test_objects_of_earlier_jobs_come_to_name_the_version_that_is_served(
    own: Plane, ground: Ground, version: str, tmp_path: Path
) -> None:
    kubectl = ground.kubectl
    kubectl("apply", "--kustomize", OURS)
    with controllers.passing(own, ground, tmp_path) as ours:
        wait_for_garbage_collector(ours, version)
        ended, waiting = submit(ours, version), submit(ours, version, annotations={"Launcher": {ENDS: NEVER}})
        ended.wait_for_end()
        # A job that never ran has no objects.
        waiting.wait_for("Running")
        waiting.change(runPolicy={"suspend": True})
        waiting.wait_for("Suspended")

        go_back(kubectl, version)

        wanted = {f"kubeflow.org/{version}"}
        until(
            lambda: owners(ended) == owners(waiting) == wanted,
            within=NOTICED_WITHIN,
            what="the version that is served",
            instead=lambda: (owners(ended), owners(waiting)),
        )


@promise(
    "A kind whose CRD is missing is done without, and runs without a restart once it is there.",
    of="mpirt-controller",
)
@pytest.mark.one_in(3)
def test_a_controller_does_without_the_crds_of_elastic_jobs_until_they_are_installed(
    own: Plane, ground: Ground, tmp_path: Path
) -> None:
    ground.kubectl("apply", "--kustomize", OURS)
    ground.kubectl("delete", "crd", *trainings.CRDS, "--timeout=60s")
    until(lambda: not serves_trainings(own.kubectl), within=NOTICED_WITHIN, what="an API server without them")
    with controllers.passing(own, ground, tmp_path) as installed:
        [replica] = installed.replicas
        submit(installed, "v2beta1").wait_for_end()
        told, *missing = replica.page("/readyz").splitlines()
        assert (told, replica.page("/healthz")) == ("ok", "ok\n")
        assert [line.split()[5] for line in missing] == ["TrainingJob", "ScaleIn", "ScaleOut"]

        ground.kubectl("apply", "--kustomize", OURS)
        until(lambda: serves_trainings(own.kubectl), within=NOTICED_WITHIN, what="elastic jobs to be served")
        job = trainings.submit(installed.namespace, job_name("elastic"), replicas=1)
        job.wait_for("Running")
        outcome = job.scale_out(f"{job.name}-out", 1).outcome()

        assert outcome == ("ScaleSucceeded", f"added {job.worker(1)}")
        assert replica.ends == []


@pytest.fixture
def arena(own: Plane, ground: Ground) -> Ground:
    """The same with Arena's CRDs alone, as its installer creates them."""
    ground.kubectl("delete", "crd", *trainings.CRDS, "--timeout=60s")
    until(lambda: not serves_trainings(own.kubectl), within=NOTICED_WITHIN, what="an API server without them")
    ground.kubectl("create", f"--filename={ARENA}")
    until(lambda: serves_trainings(own.kubectl), within=NOTICED_WITHIN, what="Arena's elastic jobs")
    return ground


@promise("TrainingJobs run beside Arena's own MPIJobs, and the documented way to our CRDs works.", of="neighbours")
@pytest.mark.one_in(3)
def test_training_jobs_run_where_arena_has_its_own_mpijobs(own: Plane, arena: Ground, tmp_path: Path) -> None:
    applied = arena.kubectl("apply", "--kustomize", OURS, check=False)
    with controllers.passing(own, arena, tmp_path) as installed:
        trainings.submit(installed.namespace, job_name("elastic"), replicas=1).wait_for("Running")

        [replica] = installed.replicas
        said = [line for line in replica.log() if line["message"] == "doing without a kind"]
        page = replica.page("/readyz")

    assert 'status.storedVersions[0]: Invalid value: "v1alpha1"' in applied.stderr
    [(level, reason)] = [(line["level"], line["error"]) for line in said if line["kind"] == "MPIJob"]
    assert reason.startswith("the API server serves MPIJob as kubeflow.org/v1alpha1 only")
    assert (level, page) == ("warning", f"ok\n{reason}\n")


@promise("TrainingJobs run beside Arena's own MPIJobs, and the documented way to our CRDs works.", of="neighbours")
def test_the_documented_way_from_arenas_crds_to_ours_is_open_and_the_controller_goes_on(
    own: Plane, arena: Ground, tmp_path: Path
) -> None:
    with controllers.passing(own, arena, tmp_path) as installed:
        kubectl = installed.namespace.kubectl
        kubectl("create", "--filename=-", stdin=json.dumps(ARENA_JOB))

        arena.kubectl("delete", "crd", CRD, "--timeout=60s")
        arena.kubectl("apply", "--kustomize", OURS)
        until(lambda: serves_mpijobs(arena.kubectl), within=NOTICED_WITHIN, what="our MPIJobs")

        submit(installed, "v2beta1").wait_for_end()
        trainings.submit(installed.namespace, job_name("elastic"), replicas=1).wait_for("Running")
        [replica] = installed.replicas
        assert (replica.page("/readyz"), replica.ends) == ("ok\n", [])
        assert set(stored(arena.kubectl)) == {"v2beta1"}


def all_of(job: MpiJob) -> list[Any]:
    """What the job owns, itself or by what it owns."""
    kinds = "configmaps,serviceaccounts,roles,rolebindings,services,statefulsets,jobs,pods"
    found: list[Any] = job.namespace.kubectl.get(kinds, f"--selector=training.kubeflow.org/job-name={job.name}")
    return found


def wait_for_garbage_collector(controller: Controller, version: str) -> None:
    """
    Wait until it watches jobs, which takes it up to a minute in which the CRD is new.

    It asks again and again for a job that it has not seen yet, and deletes all that belongs to it when the version
    is gone by which it asks. To delete a job in the foreground it must have seen it.
    """
    job = submit(controller, version, runPolicy={"suspend": True})
    job.wait_for("Suspended")
    within = f"--timeout={NOTICED_WITHIN:.0f}s"
    job.namespace.kubectl("delete", CRD, job.name, "--cascade=foreground", within)


def owners(job: MpiJob) -> set[str]:
    """The versions of MPIJob that are named as the owner's."""
    return {
        owner["apiVersion"]
        for each in all_of(job)
        for owner in each["metadata"]["ownerReferences"]
        if owner["kind"] == "MPIJob"
    }


@pytest.mark.one_in(3)
def test_their_crd_is_refused_while_jobs_may_be_stored_in_a_version_that_it_lacks(ground: Ground) -> None:
    ground.kubectl("apply", "--kustomize", OURS)

    refused = replace(ground.kubectl, "v1")

    assert refused.returncode != 0
    assert 'status.storedVersions[0]: Invalid value: "v2beta1"' in refused.stderr


def active_workers(job: MpiJob) -> int:
    return int(job.status()["replicaStatuses"]["Worker"]["active"])
