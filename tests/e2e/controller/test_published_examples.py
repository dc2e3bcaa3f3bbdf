"""
mpi-operator's examples run as they are published, with the images of the tests and smaller sizes.

Those whose programs the test images have: the others need TensorFlow, GPUs or Intel MPI, and tests/unit has their
manifests.
"""

from __future__ import annotations

import pytest

from testbed.ground import Namespace
from testbed.mpijobs import MpiJob
from tests.e2e.controller.deployed import job_name
from tests.promises import promise
from tests.support.mpi_operator_examples import example


@promise("The examples that mpi-operator publishes run unchanged.", of="neighbours")
@promise("A worker that starts sshd waits instead, and probes of sshd's port are removed.", of="MPIJob")
@pytest.mark.parametrize(
    ("path", "image"),
    [
        pytest.param("pi/pi.yaml", "openmpi4", id="pi with Open MPI"),
        pytest.param(
            "pi/pi-mpich.yaml", "mpich", id="pi with MPICH, whose workers have sshd in args and a probe of it"
        ),
    ],
)
def test_a_published_example_runs_its_ranks_on_its_workers(jobs: Namespace, path: str, image: str) -> None:
    name = job_name("published")
    body = example(path, image=jobs.ground.image(image), cpu="200m", memory="256Mi")
    body["metadata"]["name"] = name
    for replica in body["spec"]["mpiReplicaSpecs"].values():
        # Images of the tests are on the nodes and in no registry.
        replica["template"]["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    jobs.kubectl.apply(body)
    job = MpiJob(jobs, name)

    job.wait_for_end()

    assert sorted(line for line in job.log() if line.startswith("rank")) == [
        f"rank {number} of 2 on {name}-worker-{number}" for number in (0, 1)
    ], job.surroundings()
