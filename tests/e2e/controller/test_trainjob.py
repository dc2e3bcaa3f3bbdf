"""
TrainJobs of Kubeflow Trainer 2.2 by the runtime of examples/trainjob: mpirun starts its daemons by mpirt-rsh.

Trainer and JobSet are real ones, and so are the pods. mpirt's controller has no part in it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from testbed.ground import Ground, Namespace, passing_namespace
from testbed.kube.kubectl import Manifest
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
from testbed.mpijobs import LATE
from testbed.neighbours.jobset import jobset
from testbed.neighbours.trainer import trainer
from tests.e2e import horovod
from tests.e2e.controller import losing
from tests.e2e.controller.deployed import job_name
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
# By the label with the number of times that a pod's JobSet was restarted.
ATTEMPT = {
    "name": "ATTEMPT",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}},
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
        allow(namespace)
        yield namespace


@promise("mpirt-rsh finds the pod of an Indexed Job, JobSet or TrainJob by its host name.", of="mpirt-rsh")
@promise(
    "TrainJobs run Open MPI 4, Open MPI 5, MPICH and horovodrun by the runtime of the example.", of="neighbours"
)
@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.sample(1)
def test_the_example_runs_a_rank_on_every_node_and_completes(jobs: Namespace, image: str) -> None:
    job = submit(jobs, job_name("hosts"), add_runtime(jobs, image, image), FILES[image])

    assert job.ends() == "Complete"
    assert job.lines() == job.hosts


@promise(
    "TrainJobs run Open MPI 4, Open MPI 5, MPICH and horovodrun by the runtime of the example.", of="neighbours"
)
@pytest.mark.one_in(3)
def test_horovodrun_runs_a_rank_on_every_node(jobs: Namespace) -> None:
    runtime = add_runtime(jobs, "horovod", "horovod")
    train = ["python3", "-c", horovod.ALLREDUCE]
    job = submit(jobs, job_name("horovod"), runtime, "job-horovod.yaml", args=train)

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
@pytest.mark.parametrize(
    ("image", "program", "said"),
    [
        pytest.param(
            "openmpi4",
            WAITS,
            [r"mpirt-rsh: host {job}-node-0-1: pod {lost} (is being|was) deleted"],
            id="openmpi4",
        ),
        pytest.param(
            "openmpi5",
            WAITS,
            ["PRTE has lost communication with a remote daemon", "mpirt-rsh: .*pod {lost}"],
            id="openmpi5",
            marks=pytest.mark.full("a node that is deleted with Open MPI 4; its lost workers are in test_losses"),
        ),
        # Shells won't do: mpiexec goes on without a rank that has ended and has no MPI in it.
        pytest.param(
            "mpich",
            f"exec python3 -c {shlex.quote(losing.long_program(first=600.0))}",
            [],
            id="mpich",
            marks=pytest.mark.full("a node that is deleted with Open MPI 4; its lost worker is in chaos"),
        ),
    ],
)
def test_a_node_that_is_deleted_fails_the_job_and_the_launcher_names_its_pod(
    jobs: Namespace, image: str, program: str, said: list[str]
) -> None:
    job = start(jobs, image, program)

    lost = lose_a_node(job, when="begun" if program == WAITS else "runs first")

    assert job.ends() == "Failed"
    for words in said:
        assert re.search(words.format(job=job.name, lost=lost), job.log())


@promise("A TrainJob whose failurePolicy allows restarts completes after a node was deleted.", of="neighbours")
def test_a_job_that_may_restart_completes_after_a_node_was_deleted(jobs: Namespace) -> None:
    runtime = add_runtime(jobs, "restarts", "openmpi4", failurePolicy={"maxRestarts": 2})
    job = start(jobs, "openmpi4", WAITS_IN_THE_FIRST_ATTEMPT, runtime=runtime, env=[ATTEMPT])

    lose_a_node(job)

    assert job.ends() == "Complete"
    assert job.lines() == ["begun in attempt 1"] * 3


def start(jobs: Namespace, image: str, script: str, *, runtime: str = "", **trainer: object) -> TrainJob:
    """The example's job for that image with ranks that run a shell script."""
    runtime = runtime or add_runtime(jobs, image, image)
    args = ["/bin/sh", "-c", script]
    return submit(jobs, job_name("ranks"), runtime, FILES[image], args=args, **trainer)


def lose_a_node(job: TrainJob, *, when: str = "begun") -> str:
    """Delete the pod of a node when the ranks on all of them have said so. Return the pod's name."""
    job.wait_until_said(when, times=len(job.hosts))
    lost = job.node(1)
    job.namespace.kubectl("delete", "pod", lost, "--wait=false")
    return lost


EXAMPLE = PROJECT / "examples" / "trainjob"

_JOBSET = "jobset.sigs.k8s.io/jobset-name"
_TRAINJOBS = "trainjobs.trainer.kubeflow.org"
# Several times what it takes where others keep the processors busy.
_WITHIN = 180.0


@dataclass(frozen=True)
class TrainJob:
    """One job in a cluster."""

    namespace: Namespace
    name: str

    @property
    def hosts(self) -> list[str]:
        """The host names of its three nodes."""
        return [f"{self.name}-launcher-0-0", f"{self.name}-node-0-0", f"{self.name}-node-0-1"]

    def ends(self) -> str:
        """Wait for its end, and return the condition that says how: Complete or Failed."""
        what = f"the end of {self.name}"
        [condition] = until(self._ends, within=_WITHIN, what=what, instead=self.surroundings)
        print(condition, self.log())
        return str(condition["type"])

    def wait_until_said(self, word: str, *, times: int) -> None:
        """Wait until the launcher has said so in that many lines."""
        until(
            lambda: sum(word in line for line in self.log().splitlines()) >= times,
            within=_WITHIN,
            what=f"{times} lines of {self.name} with {word!r}",
            instead=self.surroundings,
        )

    def log(self) -> str:
        """What the launcher has said so far."""
        words = ("logs", f"job/{self.name}-launcher-0", "--container=node")
        return self.namespace.kubectl(*words, check=False).stdout

    def lines(self) -> list[str]:
        """The lines of its log, sorted: those of the ranks come in any order."""
        return sorted(line for line in self.log().splitlines() if LATE not in line)

    def node(self, index: int) -> str:
        """The pod of that node."""
        labels = (
            f"batch.kubernetes.io/job-name={self.name}-node-0,batch.kubernetes.io/job-completion-index={index}"
        )
        [pod] = self.namespace.kubectl.get("pods", f"--selector={labels}")
        return str(pod["metadata"]["name"])

    def exit_code(self) -> int:
        """The code with which its launcher has ended."""
        labels = f"batch.kubernetes.io/job-name={self.name}-launcher-0"
        [pod] = self.namespace.kubectl.get("pods", f"--selector={labels}")
        [status] = pod["status"]["containerStatuses"]
        return int(status["state"]["terminated"]["exitCode"])

    def surroundings(self) -> dict[str, Any]:
        """What a test that has waited in vain wants to know."""
        kubectl = self.namespace.kubectl
        around = kubectl.get("jobsets.jobset.x-k8s.io,jobs,pods", f"--selector={_JOBSET}={self.name}")
        events = kubectl("get", "events", "--sort-by=.lastTimestamp", "--no-headers", check=False).stdout
        return {
            "status": kubectl.get(_TRAINJOBS, self.name).get("status"),
            "around": {f"{one['kind']} {one['metadata']['name']}": one.get("status") for one in around},
            "log": self.log(),
            "events": [line for line in events.splitlines() if self.name in line][-10:],
        }

    def _ends(self) -> list[dict[str, Any]]:
        conditions = self.namespace.kubectl.get(_TRAINJOBS, self.name).get("status", {}).get("conditions", ())
        return [each for each in conditions if each["type"] in {"Complete", "Failed"} and each["status"] == "True"]


def allow(namespace: Namespace) -> None:
    """Give the launchers of the namespace the example's permissions."""
    namespace.kubectl("apply", f"--filename={EXAMPLE / 'access.yaml'}")


def add_runtime(namespace: Namespace, name: str, image: str, **spec: Any) -> str:
    """Add the example's runtime under another name, with a test image; `spec` is the JobSet's. Return its name."""
    made = _example("runtime.yaml")
    made["metadata"]["name"] = name
    jobset = made["spec"]["template"]["spec"]
    for each in jobset["replicatedJobs"]:
        pod = each["template"]["spec"]["template"]["spec"]
        for container in pod.get("initContainers", ()):
            container["image"] = namespace.ground.image("runtime")
        for container in pod["containers"]:
            container["image"] = namespace.ground.image(image)
    jobset |= spec
    namespace.ground.kubectl.apply(made)
    return name


def submit(namespace: Namespace, name: str, runtime: str, file: str, **trainer: Any) -> TrainJob:
    """Create the job of a file of the example by that runtime; `trainer` has the last word on that field."""
    made = _example(file)
    made["metadata"]["name"] = name
    made["spec"]["runtimeRef"]["name"] = runtime
    made["spec"]["trainer"] |= trainer
    namespace.kubectl.apply(made)
    return TrainJob(namespace, name)


def _example(file: str) -> Manifest:
    found: Manifest = yaml.safe_load((EXAMPLE / file).read_text(encoding="utf-8"))
    return found
