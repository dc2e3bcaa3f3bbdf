"""
A job that Kueue admits runs on real nodes, with what Kueue has added to its templates; all else is in tests/api.

Kueue is a real one, and so are the pods; it looks at the jobs of this file's controller alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, manifest
from testbed.neighbours import kueue
from testbed.neighbours.kueue import is_true, queue, queued, workload
from tests.e2e.controller.deployed import job_name
from tests.promises import promise

# Somebody else's cluster can't reach this process, or has an operator of its own.
pytestmark = pytest.mark.usefixtures("own_cluster")

WITHIN = 180.0
MPIRUN = ("mpirun", "--allow-run-as-root", "-n", "2", "hostname")


@pytest.fixture(scope="module", autouse=True)
def running(cluster: Ground, controller: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Kueue for the controller's namespace."""
    with kueue.kueue(cluster, tmp_path_factory.mktemp("kueue"), within=[controller.namespace.name]):
        yield


@pytest.fixture
def name() -> str:
    """The queue's: no other has it."""
    return job_name("queue")


def submit(
    jobs: Namespace, of: str, command: Sequence[str] = MPIRUN, *, priority: str = "", **spec: Any
) -> MpiJob:
    """A job of 0.1 CPU for each of its pods, in a queue."""
    made = manifest(
        job_name("queued"),
        jobs.ground.image("openmpi4"),
        command,
        workers=spec.pop("workers", 2),
        worker={"topologySpreadConstraints": []},
        launcher={"terminationGracePeriodSeconds": 1},
        container={"resources": {"requests": {"cpu": "100m"}}},
        **spec,
    )
    jobs.kubectl.apply(queued(made, of, priority=priority))
    return MpiJob(jobs, made["metadata"]["name"])


def pods(job: MpiJob) -> list[dict[str, Any]]:
    return [*job.pods("launcher"), *job.pods("worker")]


@promise("A job that Kueue admits runs with the node labels and tolerations of its flavor.", of="neighbours")
def test_an_admitted_job_runs_where_its_flavor_says(jobs: Namespace, name: str) -> None:
    node = "node-1"
    toleration = {"key": "mpirt-test", "operator": "Exists", "effect": "NoSchedule"}
    flavor = {"nodeLabels": {"kubernetes.io/hostname": node}, "tolerations": [toleration]}

    with queue(jobs, name, "1", flavor=flavor):
        job = submit(jobs, name)
        job.wait_for_end()

        found = pods(job)
        assert {pod["spec"]["nodeName"] for pod in found} == {node}
        assert all(toleration in pod["spec"]["tolerations"] for pod in found)
        assert sorted(job.log()) == [f"{job.name}-worker-{number}" for number in range(2)]
        until(lambda: is_true(workload(job), "Finished"), within=WITHIN, what="Kueue to see its end")
