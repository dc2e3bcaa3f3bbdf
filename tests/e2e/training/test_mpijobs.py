"""An elastic MPIJob is scaled down while it trains: its highest worker leaves with proof, and no step is lost."""

from __future__ import annotations

import time

import pytest

from testbed.mpijobs import MpiJob
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.elastic import training
from tests.e2e.elastic.steps import broken_promises, repeated, worlds
from tests.e2e.training import jobs
from tests.promises import promise

WITHIN = 120.0

pytestmark = pytest.mark.oldest


def submit(controller: Deployed, name: str, workers: int) -> MpiJob:
    """The training of examples/training-job as an MPIJob."""
    replicas = jobs.example(controller.namespace)["spec"]["etReplicaSpecs"]
    launcher = replicas["launcher"]["template"]
    [main] = launcher["spec"]["containers"]
    main["command"] = [word.replace("/etc/edl/", "/etc/mpi/") for word in main["command"]]
    body = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 1,
            "elastic": {"minReplicas": 1, "maxReplicas": 4},
            "mpiReplicaSpecs": {
                "Launcher": {"template": launcher},
                "Worker": {"replicas": workers, "template": replicas["worker"]["template"]},
            },
        },
    }
    controller.namespace.kubectl.apply(body)
    return MpiJob(controller.namespace, name)


@promise("An elastic MPIJob that is scaled down while it trains repeats no step.", of="MPIJob")
def test_the_highest_worker_leaves_when_the_training_has_let_go_of_it(controller: Deployed) -> None:
    job = submit(controller, job_name("mpi-elastic"), 3)
    job.wait_for("Running")
    with training.followed(job.namespace, job.launcher()) as run:
        run.settled(run.world(3, since=0.0, within=WITHIN))
        asked = time.time()
        job.namespace.kubectl("scale", "mpijobs.kubeflow.org", job.name, "--replicas=2")
        smaller = run.world(2, since=asked, within=WITHIN)
        job.wait(lambda: len(job.pods("worker")) == 2, "two workers")
        print(f"smaller after {smaller.at - asked:.1f} s, gone after {time.time() - asked:.1f} s")
        run.finish(f"{job.name}-worker-0")
        code = run.exit_code(within=60)

    assert code == 0
    assert worlds(run.steps()) == [3, 2]
    assert repeated(run.steps()) == []
    assert broken_promises(run.lines()) == []
