"""
Two jobs for which there is room one after the other, but not at once.

The scheduler with the coscheduling plugin is a real one, and so are the pods. The room is an extended resource on
one node, of which every pod takes a piece.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, manifest
from testbed.neighbours import gangs
from testbed.neighbours.gangs import SCHEDULER
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import job_name
from tests.promises import promise
from tests.support import sizes

# Somebody else's cluster can't reach this process, or has an operator of its own.
pytestmark = pytest.mark.usefixtures("own_cluster")

WITHIN = 180.0
# Each lasts half a minute, after which the plugin looks again; MPIRT_TEST_GANGS=20 has been seen to pass.
RUNS = int(os.environ.get("MPIRT_TEST_GANGS", sizes.of(merge=1, full=4)))
ALL_WITHIN = 480.0
MPIRUN = ("mpirun", "--allow-run-as-root", "-n", "2", "hostname")
# Two workers and a launcher.
OF_A_JOB = 3
# More than one job needs, less than two.
ROOM = 4


@pytest.fixture(scope="module")
def gang_jobs(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """The namespace of a controller that was started with the gang scheduler, which runs."""
    folder = tmp_path_factory.mktemp("gangs")
    with gangs.coscheduling(cluster, folder):
        installed = deployed.install(cluster, folder, environment={"MPIRT_GANG_SCHEDULING": SCHEDULER})
        try:
            yield installed.namespace
        finally:
            installed.remove()


def a_resource() -> str:
    """The name of one that no node has yet."""
    return f"mpirt.test/{secrets.token_hex(3)}"


@contextmanager
def room(cluster: Ground, name: str) -> Iterator[None]:
    """There is so much of it, on one node."""
    node = cluster.kubectl.get("nodes")[0]["metadata"]["name"]

    def patch(*operations: dict[str, Any]) -> None:
        words = ("patch", "node", node, "--subresource=status", "--type=json", f"--patch={json.dumps(operations)}")
        cluster.kubectl(*words)

    path = f"/status/capacity/{name.replace('/', '~1')}"
    patch({"op": "add", "path": path, "value": str(ROOM)})
    until(
        lambda: name in cluster.kubectl.get("node", node)["status"]["allocatable"],
        within=60,
        what=f"the node to offer {name}",
    )
    try:
        yield
    finally:
        patch({"op": "remove", "path": path})


def two_jobs(jobs: Namespace, resource: str, **spec: Any) -> tuple[MpiJob, MpiJob]:
    """Two jobs that are created at once."""
    names = [job_name("gang") for _ in range(2)]
    jobs.kubectl.apply(
        *(
            manifest(
                name,
                jobs.ground.image("openmpi4"),
                MPIRUN,
                workers=2,
                worker={"topologySpreadConstraints": [], "terminationGracePeriodSeconds": 1},
                launcher={"terminationGracePeriodSeconds": 1},
                container={"resources": {"limits": {resource: "1"}}},
                runPolicy={"cleanPodPolicy": "Running"},
                **spec,
            )
            for name in names
        )
    )
    first, second = (MpiJob(jobs, name) for name in names)
    return first, second


def placed(job: MpiJob) -> int:
    """How many of its pods have a place."""
    return sum("nodeName" in pod["spec"] for pod in [*job.pods("worker"), *job.pods("launcher")])


@promise("With a gang scheduler, two jobs that do not fit together run one after the other.", of="neighbours")
def test_two_gangs_that_do_not_fit_together_run_one_after_the_other(cluster: Ground, gang_jobs: Namespace) -> None:
    """Several times at once: each two jobs have a resource of their own."""
    with ExitStack() as stack:
        resources = [a_resource() for _ in range(RUNS)]
        for resource in resources:
            stack.enter_context(room(cluster, resource))
        names = {job.name for resource in resources for job in two_jobs(gang_jobs, resource)}

        until(lambda: names <= succeeded(gang_jobs), within=ALL_WITHIN, what="all jobs to succeed",
              instead=lambda: names - succeeded(gang_jobs))  # fmt: skip


def succeeded(jobs: Namespace) -> set[str]:
    """The names of the jobs that have succeeded."""
    path = "{range .items[?(@.status.replicaStatuses.Launcher.succeeded==1)]}{.metadata.name} {end}"
    return set(jobs.kubectl("get", "mpijobs.kubeflow.org", f"--output=jsonpath={path}").stdout.split())


@pytest.mark.full("it shows that the other tests can fail")
def test_two_jobs_without_gang_scheduling_hold_what_the_other_one_needs(cluster: Ground, jobs: Namespace) -> None:
    """There is room only once all of their workers ask for it: they get it, and no launcher does."""
    resource = a_resource()
    pair = two_jobs(jobs, resource, launcherCreationPolicy="WaitForWorkersReady")
    until(
        lambda: all(len(job.pods("worker")) == OF_A_JOB - 1 for job in pair),
        within=WITHIN,
        what="the workers of both jobs to be created",
    )
    with room(cluster, resource):

        def are_stuck() -> bool:
            return all(placed(job) == OF_A_JOB - 1 and _has_unscheduled(job) for job in pair)

        until(are_stuck, within=WITHIN, what="two jobs that wait for each other", instead=lambda: _places(*pair))

        for job in pair:
            jobs.kubectl("delete", "mpijob", job.name)


@promise(
    "Launcher and workers are members of the job's PodGroup, which is deleted at the job's end.", of="neighbours"
)
def test_the_launcher_and_the_workers_are_in_the_group_and_ask_for_its_scheduler(
    cluster: Ground, gang_jobs: Namespace, tmp_path: Path
) -> None:
    resource = a_resource()
    with room(cluster, resource):
        first, second = two_jobs(gang_jobs, resource)
        first.wait_for("Running")

        group = gang_jobs.kubectl.get("podgroups.scheduling.x-k8s.io", first.name)
        assert group["spec"]["minMember"] == OF_A_JOB
        assert group["spec"]["minResources"][resource] == str(OF_A_JOB)
        members = [*first.pods("launcher"), *first.pods("worker")]
        assert {pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for pod in members} == {first.name}
        assert {pod["spec"]["schedulerName"] for pod in members} == {SCHEDULER}
        for job in (first, second):
            job.wait_for_end()
        gone = "its group to be gone with its end"
        until(lambda: not _groups(gang_jobs, first, second), within=WITHIN, what=gone)


def _groups(jobs: Namespace, *of: MpiJob) -> set[str]:
    names = {group["metadata"]["name"] for group in jobs.kubectl.get("podgroups.scheduling.x-k8s.io")}
    return names & {job.name for job in of}


def _has_unscheduled(job: MpiJob) -> bool:
    """Whether a pod of it was found no place for."""
    rows = (row for pod in job.pods("launcher") for row in pod["status"].get("conditions", []))
    return any(row["type"] == "PodScheduled" and row.get("reason") == "Unschedulable" for row in rows)


def _places(*jobs: MpiJob) -> dict[str, int]:
    return {job.name: placed(job) for job in jobs}
