"""A job that is scaled while it runs, as its launcher sees it. What else is rolled out is in tests/api."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.kube.wait import until
from testbed.manifests import IDLE
from testbed.mpijobs import MpiJob, submit
from tests.e2e.controller.deployed import Deployed, job_name
from tests.promises import promise

pytestmark = pytest.mark.oldest

ROLLED_WITHIN = 150.0
# Five seconds are promised for what the controller does, and that is measured elsewhere; kubectl asks here.
FOLLOWS_WITHIN = 60.0


@pytest.fixture(scope="module")
def running(controller: Deployed) -> Iterator[MpiJob]:
    """A job whose launcher goes on for as long as the tests need."""
    quick = {"terminationGracePeriodSeconds": 2}
    job = submit(
        controller.namespace,
        job_name("scale"),
        "openmpi4",
        ("/bin/sh", "-c", IDLE),
        worker=quick,
        launcher=quick,
    )
    job.wait_for("Running")
    yield job
    controller.namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")


@promise("When a job is scaled, hostfile, Role and discovery follow, and its launcher keeps running.", of="MPIJob")
@pytest.mark.parametrize("count", [3, 2], ids=["up", "down"])
def test_a_job_is_scaled_and_hostfile_rights_and_discovery_follow(running: MpiJob, count: int) -> None:
    before = running.launcher()
    hosts = [f"{running.name}-worker-{n}" for n in range(count)]

    running.namespace.kubectl("scale", "mpijobs.kubeflow.org", running.name, f"--replicas={count}")

    until(lambda: running.hosts() == hosts, within=FOLLOWS_WITHIN, what=f"{hosts} in the hostfile")
    until(lambda: may_enter(running) == hosts, within=FOLLOWS_WITHIN, what=f"{hosts} in the Role")
    until(
        lambda: discovered(running, before) == hosts, within=ROLLED_WITHIN, what=f"{hosts} found by mpirt-discover"
    )
    until(
        lambda: sorted(name(pod) for pod in running.pods("worker")) == hosts,
        within=ROLLED_WITHIN,
        what=f"pods {hosts}",
    )
    assert running.launcher() == before


def may_enter(job: MpiJob) -> list[str]:
    """The pods that the launcher may start commands in."""
    rules = job.namespace.kubectl.get("role", f"{job.name}-launcher")["rules"]
    return [pod for rule in rules if rule["resources"] == ["pods/exec"] for pod in rule["resourceNames"]]


def discovered(job: MpiJob, launcher: str) -> list[str]:
    """The hosts that horovodrun would get in the launcher's pod."""
    found = job.namespace.kubectl.execute(launcher, "/etc/mpi/discover_hosts.sh")
    return [line.partition(":")[0] for line in found.splitlines()]


def name(body: dict[str, Any]) -> str:
    return str(body["metadata"]["name"])
