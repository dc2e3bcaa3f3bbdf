"""
What a job costs the API server, as the controller's own /metrics tell: few writes, and in peace nothing.

The controller is this module's own, so that every request that it counts is for the one job here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.plane import Plane
from testbed.plane.stages import ENDS, NEVER
from tests.api import controllers
from tests.api.controllers import Controller, Replica
from tests.promises import promise
from tests.support.metrics import Rest, Scrape, parse

QUIET_SECONDS = 20.0
MOST_WRITES = 16
# Mere counts and words in a status may be kept back for ten seconds.
LONGEST_DELAY = 11.0


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
    rest = Rest(lambda: sum(scrape(each).requests() for each in alone.replicas))
    until(lambda: rest.seconds() > LONGEST_DELAY, within=60, what="the controller to come to rest")
    return scrape(alone.replica(alone.leader()))


@promise("A job that runs in peace costs the API server no request but watches.", of="mpirt-controller")
def test_a_running_job_in_peace_is_followed_by_watches_alone(alone: Controller, running: MpiJob) -> None:
    rest = Rest(lambda: sum(scrape(each).requests() for each in alone.replicas))

    # It may have something left to say about the start. Who asked regularly would never be at rest.
    until(lambda: rest.seconds() > QUIET_SECONDS, within=60, what=f"{QUIET_SECONDS:g} s without a request")

    assert running.holds("Running")


@promise("The paths /healthz and /readyz answer ok for each replica that is well.", of="mpirt-controller")
def test_replicas_say_that_they_are_well(alone: Controller) -> None:
    said = {(each.name, path): each.page(path) for each in alone.replicas for path in ("/healthz", "/readyz")}

    assert len(said) == 4
    assert set(said.values()) == {"ok\n"}


@promise("Jobs are counted in metrics under mpi-operator's names.", of="mpirt-controller")
def test_a_running_job_is_counted_under_the_names_of_mpi_operator(alone: Controller, running: MpiJob) -> None:
    replicas = [scrape(each) for each in alone.replicas]
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

    assert {name: ended.value(name) for name in names} == {
        "mpi_operator_jobs_created_total": 1,
        "mpi_operator_jobs_failed_total": 0,
        "mpi_operator_jobs_successful_total": 1,
    }


def scrape(replica: Replica) -> Scrape:
    return parse(replica.page("/metrics"))
