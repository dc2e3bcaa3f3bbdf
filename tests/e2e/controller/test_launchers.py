"""Jobs of every launcher run to their end, with their ranks on the workers: that of the first users, too."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import yaml

from mpirt import account
from mpirt.account import Account
from testbed.ground import Ground, Namespace
from testbed.kube.wait import until
from testbed.manifests import IDLE
from testbed.mpijobs import MpiJob, submit
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.controller.losing import last_messages
from tests.e2e.rsh.launcher import INTEL_SETTINGS, PYPI
from tests.promises import promise
from tests.support.mpi_operator_examples import example

ROOT = "--allow-run-as-root"
OPENMPI = ("mpirun", ROOT, "-n", "2", "--map-by", "node", "hostname")
# Where a rank runs: its host, the processors that it and its container may use, and its threads.
SAYS_WHERE = "hostname; grep -h Cpus_allowed_list /proc/self/status /proc/1/status; echo $OMP_NUM_THREADS"
PLACED = (*OPENMPI[:-1], "/bin/sh", "-c", f"echo $({SAYS_WHERE})")
MPIEXEC = ("mpiexec", "-n", "2", "-ppn", "1", *PLACED[-3:])
INTEL_BARRIER = "exec IMB-MPI1 -npmin 2 barrier >/dev/null"
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
    give_gpus(cluster)
    name = job_name("simple-ml")
    controller.namespace.kubectl.apply(simple_ml_manifest(name, cluster.image("horovod")))
    return MpiJob(controller.namespace, name)


@promise("Jobs of kubeflow.org/v1 are kept as they were written, and run.", of="MPIJob")
@pytest.mark.usefixtures("own_cluster")
@pytest.mark.one_in(3)
def test_the_job_of_the_first_users_is_kept_as_they_wrote_it(simple_ml: MpiJob) -> None:
    wrote = simple_ml_manifest(simple_ml.name, simple_ml.namespace.ground.image("horovod"))["spec"]

    kept = simple_ml.namespace.kubectl.get("mpijobs.v1.kubeflow.org", simple_ml.name)["spec"]

    assert kept["mpiReplicaSpecs"] == wrote["mpiReplicaSpecs"]
    assert (kept["slotsPerWorker"], kept["runPolicy"]["cleanPodPolicy"]) == (1, "Running")


@promise(
    "All ranks run on the workers, with Open MPI 4 and 5, MPICH and Intel MPI, without ssh in any image.",
    of="MPIJob",
)
@promise("Ranks may run on every processor that their container may use, and start as many threads.", of="MPIJob")
@promise("A job needs no root: it runs as the user that its image or template sets.", of="MPIJob")
@pytest.mark.parametrize(
    ("image", "command", "how"),
    [
        pytest.param("openmpi4", PLACED, {}, id="Open MPI 4"),
        pytest.param("openmpi5", PLACED, {}, id="Open MPI 5"),
        pytest.param("mpich", MPIEXEC, {}, id="MPICH"),
        pytest.param(
            PYPI,
            (*MPIEXEC[:-1], f"echo $({SAYS_WHERE}); {INTEL_BARRIER}"),
            {"env": [{"name": name, "value": value} for name, value in INTEL_SETTINGS.items()]},
            id="Intel MPI",
            marks=pytest.mark.full("its image has two hundred megabytes that no other test needs"),
        ),
        pytest.param(
            "openmpi4",
            [word for word in PLACED if word != ROOT],
            {"securityContext": USER, "env": HOME},
            id="a user that is not root",
        ),
    ],
)
def test_each_rank_runs_on_a_worker_of_its_own(
    jobs: Namespace, image: str, command: tuple[str, ...], how: dict[str, Any]
) -> None:
    cpus = {"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "10m"}}}
    spec: dict[str, Any] = {"mpiImplementation": "Intel"} if image == PYPI else {}
    job = submit(jobs, job_name("hello"), image, command, container={**cpus, **how}, **spec)
    job.wait_for_end()

    ranks = [line.split() for line in job.log() if line.startswith(job.name)]
    assert sorted(rank[0] for rank in ranks) == [f"{job.name}-worker-{n}" for n in (0, 1)]
    for _, _, of_rank, _, of_container, threads in ranks:
        assert (of_rank, threads) == (of_container, "2")
    assert len({pod["spec"]["nodeName"] for pod in job.pods("worker")}) == 2
    [found] = [account.read(message) for message in last_messages(job)]
    assert found == Account(again=found.again, is_settled=True)


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


_GPU = "nvidia.com/gpu"

_MANIFEST = """
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata:
  name: sw-simple-ml-gitlab
spec:
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - args:
            - sleep 1m && mkdir simple_ml && cd simple_ml && horovodrun -np 2 --hostfile
              /etc/mpi/hostfile python main_with_horovod.py
            command:
            - "/bin/sh"
            - "-c"
            image: horovod-sw-base
            name: horovod-master
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - args:
            - git clone && cd simple_ml && pip install -r requirements.txt && chmod +x init.sh
              && ./init.sh && sleep infinity
            command:
            - "/bin/sh"
            - "-c"
            image: horovod-sw-base
            name: horovod-worker
            resources:
              limits:
                nvidia.com/gpu: 1
          tolerations:
          - effect: NoSchedule
            key: gpu
            operator: Exists
  runPolicy:
    cleanPodPolicy: Running
  slotsPerWorker: 1
"""

_PROGRAM = """
import socket

import horovod.torch as hvd
import torch

hvd.init()
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(4, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for step in range(2):
    inputs = torch.randn(8, 4)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.sum(dim=1, keepdim=True))
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter -= 0.1 * hvd.allreduce(parameter.grad, name=f"{step}.{number}")
weights = ",".join(f"{each:.4f}" for each in model.weight[0].tolist())
print(f"host={socket.gethostname()} rank={hvd.rank()} of {hvd.size()} weights={weights}", flush=True)
"""

# What their repository and their scripts brought.
_INIT = """
mkdir simple_ml && cd simple_ml && ln -s "$(command -v python3)" /usr/local/bin/python &&
cat > main_with_horovod.py <<'END' && sleep infinity
"""


def simple_ml_manifest(name: str, image: str) -> dict[str, Any]:
    """The object."""
    made: dict[str, Any] = yaml.safe_load(_MANIFEST)
    made["metadata"]["name"] = name
    for replica in made["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["image"] = image
    [worker] = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    worker["args"] = [f"{_INIT.strip()}{_PROGRAM}END\n"]
    return made


def give_gpus(cluster: Ground) -> None:
    """
    Say of every node that it has GPUs, as a device plugin would.

    They stay: other runs may be using them, and nobody else asks.
    """
    for node in cluster.kubectl.ready_nodes():
        until(partial(_has_gpus, cluster, node), within=30, what=f"GPUs on {node}")


def _has_gpus(cluster: Ground, name: str) -> bool:
    node = cluster.kubectl.get("node", name)
    if _GPU in node["status"]["allocatable"]:
        return True
    for held in ("capacity", "allocatable"):
        node["status"][held][_GPU] = "8"
    # The node itself writes there, too, and who comes second has to look again.
    path = f"/api/v1/nodes/{name}/status"
    done = cluster.kubectl("replace", "--raw", path, "--filename=-", stdin=json.dumps(node), check=False)
    return done.returncode == 0


@promise("A launcher starts beside its workers; its commands wait until they are Ready.", of="MPIJob")
@promise(
    "A service account in the launcher's template is kept, and may start commands in the workers.", of="MPIJob"
)
def test_a_launcher_at_startup_is_there_before_its_workers_and_starts_its_ranks_by_its_own_account(
    controller: Deployed,
) -> None:
    """A file makes its worker Ready."""
    namespace, name = controller.namespace, job_name("early")
    probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "timeoutSeconds": 10}
    image = {"image": namespace.ground.image("openmpi4"), "imagePullPolicy": "IfNotPresent"}
    idle = {"name": "mpi", "command": ["/bin/sh", "-c", IDLE], "readinessProbe": probe, **image}
    namespace.kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"{name}-mine"}})
    early = submit(
        namespace,
        name,
        "openmpi4",
        ("mpirun", "--allow-run-as-root", "-n", "1", "hostname"),
        workers=1,
        worker={"containers": [idle]},
        launcher={"serviceAccountName": f"{name}-mine"},
    )

    early.wait_for_words(f"0 of 1 workers are Ready: {early.worker(0)}: container mpi runs but")
    until(lambda: is_running(early), within=60, what="a launcher that runs")
    namespace.kubectl.execute(early.worker(0), "touch", "/tmp/ready")
    early.wait_for_end()

    [worker] = early.pods("worker")
    [launcher] = early.pods("launcher")
    ready = next(each for each in worker["status"]["conditions"] if each["type"] == "Ready")
    [main] = launcher["status"]["containerStatuses"]
    assert main["state"]["terminated"]["startedAt"] <= ready["lastTransitionTime"]
    assert launcher["spec"]["serviceAccountName"] == f"{name}-mine"
    assert early.log() == [early.worker(0)]
    assert not early.exists(f"serviceaccount/{name}-launcher")


def is_running(job: MpiJob) -> bool:
    return any(pod["status"]["phase"] == "Running" for pod in job.pods("launcher"))


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
