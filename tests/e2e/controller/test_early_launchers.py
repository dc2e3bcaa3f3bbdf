"""A launcher that is made at startup waits in its own pod. The rest of a job's life is in tests/api."""

from __future__ import annotations

import pytest

from testbed.kube.wait import until
from testbed.manifests import IDLE
from testbed.mpijobs import MpiJob, submit
from tests.e2e.controller.deployed import Deployed, job_name
from tests.promises import promise

WITHIN = 120.0

FOREVER = ("/bin/sh", "-c", IDLE)
RANK = ("mpirun", "--allow-run-as-root", "-n", "1", "hostname")


@pytest.fixture(scope="module")
def early(controller: Deployed) -> MpiJob:
    """A job whose launcher is made at startup, under the user's account; a file makes its worker Ready."""
    namespace, name = controller.namespace, job_name("early")
    probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "timeoutSeconds": 10}
    image = {"image": namespace.ground.image("openmpi4"), "imagePullPolicy": "IfNotPresent"}
    worker = {"name": "mpi", "command": list(FOREVER), "readinessProbe": probe, **image}
    namespace.kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"{name}-mine"}})
    return submit(
        namespace,
        name,
        "openmpi4",
        RANK,
        workers=1,
        worker={"containers": [worker]},
        launcher={"serviceAccountName": f"{name}-mine"},
        launcherCreationPolicy="AtStartup",
    )


@promise("With launcherCreationPolicy AtStartup the launcher's pod waits for Ready workers.", of="MPIJob")
def test_a_launcher_at_startup_is_there_before_its_workers_and_waits_for_them(early: MpiJob) -> None:
    waits = (
        f"init container mpirt-wait runs; 0 of 1 workers are Ready: {early.name}-worker-0: container mpi runs but"
    )
    until(
        lambda: waits in early.condition("Running").get("message", ""),
        within=WITHIN,
        what="a launcher that waits",
        instead=early.status,
    )
    early.namespace.kubectl.execute(f"{early.name}-worker-0", "touch", "/tmp/ready")
    early.wait_for_end()

    [worker] = early.pods("worker")
    [launcher] = early.pods("launcher")
    ready = next(each for each in worker["status"]["conditions"] if each["type"] == "Ready")
    [main] = launcher["status"]["containerStatuses"]
    assert launcher["metadata"]["creationTimestamp"] < ready["lastTransitionTime"]
    assert main["state"]["terminated"]["startedAt"] >= ready["lastTransitionTime"]


@promise(
    "A service account in the launcher's template is kept, and may start commands in the workers.", of="MPIJob"
)
def test_a_launchers_own_account_is_kept_and_may_start_its_ranks(early: MpiJob) -> None:
    early.namespace.kubectl("exec", f"{early.name}-worker-0", "--", "touch", "/tmp/ready")
    early.wait_for_end()

    [launcher] = early.pods("launcher")
    assert launcher["spec"]["serviceAccountName"] == f"{early.name}-mine"
    assert early.log() == [f"{early.name}-worker-0"]
    assert not exists(early, f"serviceaccount/{early.name}-launcher")


def exists(job: MpiJob, what: str) -> bool:
    return bool(job.namespace.kubectl("get", what, "--ignore-not-found", "--output=name").stdout)
