"""
TrainJobs of Kubeflow Trainer 2.2 by the runtime of examples/trainjob: mpirun starts its daemons by mpirt-rsh.

Trainer and JobSet are real ones, and so are the pods. mpirt's controller has no part in it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from testbed.ground import Ground, Namespace, passing_namespace
from testbed.neighbours.jobset import jobset
from testbed.neighbours.trainer import trainer
from tests.e2e import horovod
from tests.e2e.controller import longrun, trainjobs
from tests.e2e.controller.deployed import job_name
from tests.e2e.controller.trainjobs import TrainJob
from tests.promises import promise

# Somebody else's cluster can't reach these processes, or has a Trainer of its own.
pytestmark = pytest.mark.usefixtures("own_cluster")

# The example's job for each image.
FILES = {"openmpi4": "job.yaml", "openmpi5": "job-openmpi5.yaml", "mpich": "job-mpich.yaml"}
IMAGES = [pytest.param(image, id=image) for image in FILES]

WITHOUT_SSH = 'echo "$(hostname) has $(command -v ssh sshd || echo no ssh)"'
# Not within milliseconds: see "Troubleshooting" in docs/operations.md.
FAILS = 'sleep 1; [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 1 ] || exit 7'
WAITS = "echo begun; sleep 600"
WAITS_IN_THE_FIRST_ATTEMPT = 'echo "begun in attempt $ATTEMPT"; [ "$ATTEMPT" != 0 ] || sleep 600'
ATTEMPT = {
    "name": "ATTEMPT",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{trainjobs.RESTART_ATTEMPT}']"}},
}


@pytest.fixture(scope="module")
def jobs(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """A namespace with TrainJobs, whose launchers have the example's permissions."""
    folder = tmp_path_factory.mktemp
    with (
        passing_namespace(cluster, folder("jobs")) as namespace,
        jobset(cluster, folder("jobset"), within=[namespace.name]),
        trainer(cluster, folder("trainer"), within=[namespace.name]),
    ):
        trainjobs.allow(namespace)
        yield namespace


@promise("mpirt-rsh finds the pod of an Indexed Job, JobSet or TrainJob by its host name.", of="mpirt-rsh")
@promise(
    "TrainJobs run Open MPI 4, Open MPI 5, MPICH and horovodrun by the runtime of the example.", of="neighbours"
)
@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.sample(1)
def test_the_example_runs_a_rank_on_every_node_and_completes(jobs: Namespace, image: str) -> None:
    job = trainjobs.submit(jobs, job_name("hosts"), trainjobs.add_runtime(jobs, image, image), FILES[image])

    assert job.ends() == "Complete"
    assert job.lines() == job.hosts


@promise(
    "TrainJobs run Open MPI 4, Open MPI 5, MPICH and horovodrun by the runtime of the example.", of="neighbours"
)
@pytest.mark.one_in(3)
def test_horovodrun_runs_a_rank_on_every_node(jobs: Namespace) -> None:
    runtime = trainjobs.add_runtime(jobs, "horovod", "horovod")
    train = ["python3", "-c", horovod.ALLREDUCE]
    job = trainjobs.submit(jobs, job_name("horovod"), runtime, "job-horovod.yaml", args=train)

    assert job.ends() == "Complete"
    ranks = re.findall(r"host=(\S+) rank=\d size=3 sum=6", job.log())
    assert sorted(ranks) == job.hosts


@promise("Images of TrainJobs need no ssh.", of="neighbours")
@pytest.mark.sample(1)
@pytest.mark.parametrize("image", IMAGES)
def test_no_image_has_ssh_and_each_node_has_the_ranks_that_the_job_asks_for(jobs: Namespace, image: str) -> None:
    job = start(jobs, image, WITHOUT_SSH, numProcPerNode=2)

    assert job.ends() == "Complete"
    assert job.lines() == sorted([f"{host} has no ssh" for host in job.hosts] * 2)


@promise("A rank that fails fails its TrainJob, and the launcher's pod has its exit code.", of="neighbours")
@pytest.mark.sample(1)
@pytest.mark.parametrize("image", IMAGES)
def test_a_rank_that_fails_fails_the_job_and_its_code_is_the_launchers(jobs: Namespace, image: str) -> None:
    job = start(jobs, image, FAILS)

    assert job.ends() == "Failed"
    assert job.exit_code() == 7


@promise("A TrainJob fails when one of its nodes is deleted, with every MPI.", of="neighbours")
def test_a_node_that_is_deleted_fails_the_job_and_the_launcher_names_its_pod(jobs: Namespace) -> None:
    job = start(jobs, "openmpi4", WAITS)

    lost = lose_a_node(job)

    assert job.ends() == "Failed"
    assert re.search(rf"mpirt-rsh: host {job.name}-node-0-1: pod {lost} (is being|was) deleted", job.log())


@promise("A TrainJob fails when one of its nodes is deleted, with every MPI.", of="neighbours")
@pytest.mark.full("a node that is deleted with Open MPI 4; its lost workers are in test_losses")
def test_open_mpi_5_fails_when_a_node_is_deleted_and_the_launcher_names_its_pod(jobs: Namespace) -> None:
    job = start(jobs, "openmpi5", WAITS)

    lost = lose_a_node(job)

    assert job.ends() == "Failed"
    assert "PRTE has lost communication with a remote daemon" in job.log()
    assert re.search(rf"mpirt-rsh: .*pod {lost}", job.log())


@promise("A TrainJob fails when one of its nodes is deleted, with every MPI.", of="neighbours")
@pytest.mark.full("a node that is deleted with Open MPI 4; its lost worker is in chaos")
def test_mpich_fails_when_a_node_is_deleted(jobs: Namespace) -> None:
    # Shells won't do: mpiexec goes on without a rank that has ended and has no MPI in it.
    job = start(jobs, "mpich", f"exec python3 -c {shlex.quote(longrun.source(first=600.0))}")

    lose_a_node(job, when="runs first")

    assert job.ends() == "Failed"


@promise("A TrainJob whose failurePolicy allows restarts completes after a node was deleted.", of="neighbours")
def test_a_job_that_may_restart_completes_after_a_node_was_deleted(jobs: Namespace) -> None:
    runtime = trainjobs.add_runtime(jobs, "restarts", "openmpi4", failurePolicy={"maxRestarts": 2})
    job = start(jobs, "openmpi4", WAITS_IN_THE_FIRST_ATTEMPT, runtime=runtime, env=[ATTEMPT])

    lose_a_node(job)

    assert job.ends() == "Complete"
    assert job.lines() == ["begun in attempt 1"] * 3


def start(jobs: Namespace, image: str, script: str, *, runtime: str = "", **trainer: object) -> TrainJob:
    """The example's job for that image with ranks that run a shell script."""
    runtime = runtime or trainjobs.add_runtime(jobs, image, image)
    args = ["/bin/sh", "-c", script]
    return trainjobs.submit(jobs, job_name("ranks"), runtime, FILES[image], args=args, **trainer)


def lose_a_node(job: TrainJob, *, when: str = "begun") -> str:
    """Delete the pod of a node when the ranks on all of them have said so. Return the pod's name."""
    job.wait_until_said(when, times=len(job.hosts))
    lost = job.node(1)
    job.namespace.kubectl("delete", "pod", lost, "--wait=false")
    return lost
