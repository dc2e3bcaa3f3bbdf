"""Jobs of every launcher run to their end, with their ranks really on the workers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.controller.deployed import job_name
from tests.e2e.controller.mpijobs import MpiJob, submit
from tests.e2e.ground import Namespace

ROOT = "--allow-run-as-root"
OPENMPI = ("mpirun", ROOT, "-n", "2", "--map-by", "node", "hostname")
USER = {"runAsUser": 12345, "runAsGroup": 12345, "runAsNonRoot": True}
HOME = [{"name": "HOME", "value": "/tmp"}]


@pytest.mark.parametrize(
    ("image", "command", "how"),
    [
        pytest.param("openmpi4", OPENMPI, {}, id="Open MPI 4"),
        pytest.param("openmpi5", OPENMPI, {}, id="Open MPI 5"),
        pytest.param("mpich", ("mpiexec", "-n", "2", "-ppn", "1", "hostname"), {}, id="MPICH"),
        pytest.param(
            "openmpi4",
            [word for word in OPENMPI if word != ROOT],
            {"container": {"securityContext": USER, "env": HOME}},
            id="a user that is not root",
        ),
    ],
)
def test_each_rank_runs_on_a_worker_of_its_own(
    jobs: Namespace, image: str, command: tuple[str, ...], how: dict[str, Any]
) -> None:
    job = submit(jobs, job_name("hello"), image, command, **how)
    job.wait_for_end()

    assert sorted(line for line in job.log() if line.startswith(job.name)) == [
        f"{job.name}-worker-{n}" for n in (0, 1)
    ]
    assert len({pod["spec"]["nodeName"] for pod in job.pods("worker")}) == 2


def test_a_worker_with_a_sidecar_runs_ranks_in_its_main_container(jobs: Namespace) -> None:
    sidecar = {"name": "side", "image": jobs.ground.image("busybox"), "imagePullPolicy": "IfNotPresent"}
    idle = {"name": "mpi", "image": jobs.ground.image("openmpi4"), "imagePullPolicy": "IfNotPresent"}
    sleep = {"command": ["/bin/sh", "-c", "sleep 3600"]}
    job = submit(
        jobs,
        job_name("side"),
        "openmpi4",
        OPENMPI,
        worker={"containers": [sidecar | sleep, idle | sleep]},
        mainContainer="mpi",
    )
    job.wait_for_end()

    assert len([line for line in job.log() if line.startswith(f"{job.name}-worker-")]) == 2


def test_the_launcher_works_too_where_it_is_told_to(jobs: Namespace) -> None:
    command = [word if word != "2" else "3" for word in OPENMPI]
    job = submit(jobs, job_name("too"), "openmpi4", command, runLauncherAsWorker=True)
    job.wait_for_end()

    hosts = [line for line in job.log() if line.startswith(job.name)]
    assert len(hosts) == 3
    assert any("-launcher" in host for host in hosts)


def test_an_existing_version_1_job_runs_unchanged(jobs: Namespace) -> None:
    name = job_name("old")
    image = jobs.ground.image("horovod")
    main = {
        "name": "horovod-master",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c"],
        "args": ["horovodrun -np 2 --hostfile /etc/mpi/hostfile hostname"],
    }
    idle = {**main, "name": "horovod-worker", "args": ["sleep infinity"]}
    jobs.kubectl.apply(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "metadata": {"name": name},
            "spec": {
                "slotsPerWorker": 1,
                "runPolicy": {"cleanPodPolicy": "Running"},
                "mpiReplicaSpecs": {
                    "Launcher": {"replicas": 1, "template": {"spec": {"containers": [main]}}},
                    "Worker": {"replicas": 2, "template": {"spec": {"containers": [idle]}}},
                },
            },
        }
    )
    job = MpiJob(jobs, name)
    job.wait_for_end()

    assert {f"{name}-worker-{n}" for n in (0, 1)} <= {line.rpartition(":")[2] for line in job.log()}
