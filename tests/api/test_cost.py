"""
What jobs cost the API server, as the controllers' own /metrics tell: few writes, and in peace nothing.

The controllers are this module's own, so that every request that they count is for the jobs here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, manifest, submit
from testbed.plane.plane import Plane
from testbed.plane.stages import ENDS, NEVER
from tests.api import controllers
from tests.api.beds import beds
from tests.api.controllers import Controller
from tests.promises import promise
from tests.support import sizes, trainings
from tests.support.metrics import Scrape

QUIET_SECONDS = 20.0
# Mere counts and words in a status may be kept back for ten seconds.
LONGEST_DELAY = 11.0
WITHIN = 240.0

MOST_WRITES = 16
# Of an elastic job. Of these, two per worker are its pod and its mark.
MOST_WRITES_FOR = {"start": 20, "ScaleOut by 2": 18, "ScaleIn by 1": 17}
MANY, WORKERS = sizes.of(merge=15, full=50), 8


@pytest.fixture(scope="module")
def alone(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller without other jobs."""
    with controllers.passing(plane, cluster, tmp_path_factory.mktemp("alone"), replicas=2) as installed:
        yield installed


@pytest.fixture(scope="module")
def running(alone: Controller) -> MpiJob:
    """A job whose launcher runs until the test ends it."""
    job = submit(alone.namespace, "plain", "busybox", ("true",), annotations={"Launcher": {ENDS: NEVER}})
    job.wait_for("Running")
    return job


@pytest.fixture(scope="module")
def ended(alone: Controller, running: MpiJob) -> Scrape:
    """What the leader has counted when the job is over and nothing is left to be said about it."""
    running.namespace.kubectl("annotate", "pods", "--selector=job-name=plain-launcher", f"{ENDS}=0", "--overwrite")
    running.wait_for_end()
    alone.wait_for_rest(LONGEST_DELAY)
    return alone.replica(alone.leader()).metrics()


@promise("A job that runs in peace costs the API server no request but watches.", of="mpirt-controller")
def test_a_running_job_in_peace_is_followed_by_watches_alone(alone: Controller, running: MpiJob) -> None:
    # It may have something left to say about the start. Who asked regularly would never be at rest.
    alone.wait_for_rest(QUIET_SECONDS)

    assert running.holds("Running")


@promise("The paths /healthz and /readyz answer ok for each replica that is well.", of="mpirt-controller")
def test_replicas_say_that_they_are_well(alone: Controller) -> None:
    said = {(each.name, path): each.page(path) for each in alone.replicas for path in ("/healthz", "/readyz")}

    assert len(said) == 4
    assert set(said.values()) == {"ok\n"}


@promise("Jobs are counted in metrics under mpi-operator's names.", of="mpirt-controller")
def test_a_running_job_is_counted_under_the_names_of_mpi_operator(alone: Controller, running: MpiJob) -> None:
    replicas = [each.metrics() for each in alone.replicas]
    launcher = {"launcher": f"{running.name}-launcher", "namespace": running.namespace.name}

    assert sorted(each.value("mpi_operator_is_leader") for each in replicas) == [0, 1]
    assert [each.value("mpi_operator_job_info", **launcher) for each in replicas] == [1, 1]


@pytest.mark.one_in(3)
def test_a_plain_jobs_whole_life_takes_few_writes(ended: Scrape) -> None:
    print(f"{ended.writes()} writes, {ended.requests()} requests other than watches")

    assert 0 < ended.writes() <= MOST_WRITES


@promise("Jobs are counted in metrics under mpi-operator's names.", of="mpirt-controller")
def test_an_ended_job_is_counted_under_the_names_of_mpi_operator(ended: Scrape) -> None:
    names = [f"mpi_operator_jobs_{what}_total" for what in ("created", "failed", "successful")]

    assert [ended.value(name) for name in names] == [1, 0, 1]


@pytest.mark.one_in(3)
def test_an_elastic_jobs_start_and_its_changes_take_few_writes_each(
    plane: Plane, cluster: Ground, tmp_path: Path
) -> None:
    with beds(plane, cluster, tmp_path, 1, replicas=1) as [bed]:
        [replica] = bed.controller.replicas
        job, counts = trainings.submit(bed.namespace, "elastic", replicas=2), [0]
        for ask in (
            lambda: job.wait_for("Running"),
            lambda: job.scale_out("out", 2).outcome(),
            lambda: job.scale_in("in", toDelete={"count": 1}).outcome(),
        ):
            ask()
            bed.controller.wait_for_rest(LONGEST_DELAY)
            counts.append(replica.metrics().writes())

    writes = {
        what: after - before for what, (before, after) in zip(MOST_WRITES_FOR, pairwise(counts), strict=True)
    }
    print(writes)
    assert {what: count for what, count in writes.items() if not 0 < count <= MOST_WRITES_FOR[what]} == {}


@promise("A job that runs in peace costs the API server no request but watches.", of="mpirt-controller")
def test_a_controller_of_many_running_jobs_comes_to_rest(plane: Plane, cluster: Ground, tmp_path: Path) -> None:
    """It is given all of them at once."""
    path = '--output=jsonpath={range .items[*]}{.status.conditions[?(@.type=="Running")].status} {end}'
    with controllers.passing(plane, cluster, tmp_path) as controller:
        kubectl = controller.namespace.kubectl

        def running() -> int:
            return kubectl("get", "mpijobs.kubeflow.org", path).stdout.split().count("True")

        kubectl.apply(*(idle_job(f"many-{number}") for number in range(MANY)))
        until(lambda: running() == MANY, within=WITHIN, what=f"{MANY} jobs that run")
        controller.wait_for_rest(LONGEST_DELAY)

        assert running() == MANY


def idle_job(name: str) -> dict[str, object]:
    spread: dict[str, object] = {"topologySpreadConstraints": []}
    annotations = {"Launcher": {ENDS: NEVER}}
    return manifest(
        name, "none", ("true",), workers=WORKERS, worker=spread, launcher={}, container={}, annotations=annotations
    )
