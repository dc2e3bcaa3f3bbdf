"""Jobs of every launcher run to their end, with their ranks really on the workers."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt import account
from mpirt.account import Account
from testbed.ground import Ground, Namespace
from testbed.mpijobs import MpiJob, submit
from tests.e2e.controller import first_users
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.controller.losing import last_messages
from tests.promises import promise

ROOT = "--allow-run-as-root"
OPENMPI = ("mpirun", ROOT, "-n", "2", "--map-by", "node", "hostname")
USER = {"runAsUser": 12345, "runAsGroup": 12345, "runAsNonRoot": True}
HOME = [{"name": "HOME", "value": "/tmp"}]

# Says of each rank in which pod it runs, even where pods have no host names of their own.
POD = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
NODE = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
# Two jobs at a time: there is no port on which one could be in the other's way.
WHO_IS_ON_IT: dict[str, dict[str, Any]] = {
    "workers": {"worker": {"hostNetwork": True}},
    "workers and launcher": {"worker": {"hostNetwork": True}, "launcher": {"hostNetwork": True}},
}


@pytest.fixture(scope="module")
def on_hosts(controller: Deployed) -> dict[str, MpiJob]:
    """Jobs on the hosts' network."""
    where = [*OPENMPI[:-1], "/bin/sh", "-c", 'echo "rank in $POD on $NODE"']
    env = {"env": [POD, NODE]}
    return {
        who: submit(controller.namespace, job_name("host"), "openmpi4", where, container=env, **pods)
        for who, pods in WHO_IS_ON_IT.items()
    }


@pytest.fixture(scope="module")
def simple_ml(cluster: Ground, controller: Deployed) -> MpiJob:
    """Made before the other jobs of this module: its launcher sleeps for a minute, while they run."""
    first_users.give_gpus(cluster)
    name = job_name("simple-ml")
    controller.namespace.kubectl.apply(first_users.manifest(name, cluster.image("horovod")))
    return MpiJob(controller.namespace, name)


@promise("Jobs of kubeflow.org/v1 are kept as they were written, and run.", of="MPIJob")
@pytest.mark.usefixtures("own_cluster")
@pytest.mark.one_in(3)
def test_the_job_of_the_first_users_is_kept_as_they_wrote_it(simple_ml: MpiJob) -> None:
    wrote = first_users.manifest(simple_ml.name, simple_ml.namespace.ground.image("horovod"))["spec"]

    kept = simple_ml.namespace.kubectl.get("mpijobs.v1.kubeflow.org", simple_ml.name)["spec"]

    assert kept["mpiReplicaSpecs"] == wrote["mpiReplicaSpecs"]
    assert (kept["slotsPerWorker"], kept["runPolicy"]["cleanPodPolicy"]) == (1, "Running")


@promise(
    "All ranks run on the workers, with Open MPI 4, Open MPI 5 and MPICH, without ssh in any image.", of="MPIJob"
)
@promise("A job needs no root: it runs as the user that its image or template sets.", of="MPIJob")
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
    assert [account.read(message) for message in last_messages(job)] == [Account(is_settled=True)]


@promise("Ranks run in the main container of a worker, beside sidecars.", of="MPIJob")
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


@promise("With runLauncherAsWorker ranks run in the launcher, too.", of="MPIJob")
def test_the_launcher_works_too_where_it_is_told_to(jobs: Namespace) -> None:
    command = [word if word != "2" else "3" for word in OPENMPI]
    job = submit(jobs, job_name("too"), "openmpi4", command, runLauncherAsWorker=True)
    job.wait_for_end()

    hosts = [line for line in job.log() if line.startswith(job.name)]
    assert len(hosts) == 3
    assert any("-launcher" in host for host in hosts)


@promise("Jobs on the network of their nodes run their ranks in the workers.", of="MPIJob")
@pytest.mark.parametrize("who", WHO_IS_ON_IT)
@pytest.mark.sample(1)
def test_jobs_on_the_hosts_network_run_their_ranks_in_the_workers(on_hosts: dict[str, MpiJob], who: str) -> None:
    job = on_hosts[who]
    job.wait_for_end()

    workers = [(pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in job.pods("worker")]
    assert len({node for _, node in workers}) == 2
    assert sorted(line for line in job.log() if line.startswith("rank")) == [
        f"rank in {pod} on {node}" for pod, node in sorted(workers)
    ]


@promise("Jobs of kubeflow.org/v1 are kept as they were written, and run.", of="MPIJob")
@pytest.mark.oldest
@pytest.mark.usefixtures("own_cluster")
def test_the_job_of_the_first_users_trains_their_model_on_its_workers(simple_ml: MpiJob) -> None:
    simple_ml.wait_for_end()

    said = [line.partition("<stdout>:")[2] for line in simple_ml.log() if "<stdout>:host=" in line]
    assert len(said) == 2, simple_ml.surroundings()
    ranks, weights = zip(*(line.split(" weights=") for line in sorted(said)), strict=True)
    assert ranks == tuple(f"host={simple_ml.name}-worker-{n} rank={n} of 2" for n in (0, 1))
    # Each rank has made up inputs of its own: they agree because they have exchanged what they learnt.
    assert weights[0] == weights[1]
