"""
Jobs that Kueue admits by a quota: it suspends them, adds to their templates, and lets them run.

Kueue is a real one, and so are the pods; it looks at the jobs of this file's controller alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.e2e.controller.deployed import job_name
from tests.e2e.controller.mpijobs import MpiJob, manifest
from tests.e2e.controller.watching import State, watch
from tests.e2e.ground import Ground, Namespace
from tests.kube.wait import until
from tests.neighbours import kueue
from tests.neighbours.kueue import is_true, queue, queued

# Somebody else's cluster can't reach this process, or has an operator of its own.
pytestmark = pytest.mark.usefixtures("own_cluster")

WITHIN = 180.0
MPIRUN = ("mpirun", "--allow-run-as-root", "-n", "2", "hostname")
RUNS_ON = ("sleep", "1000")
# Of a job, if nobody asks for another number: two workers and a launcher.
CPU = 0.3


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


def workload(job: MpiJob) -> Mapping[str, Any]:
    """Kueue's object of the job; empty if there is none."""
    found = kueue.workloads(job.namespace.kubectl)
    owned = (one for one in found if one["metadata"]["ownerReferences"][0]["name"] == job.name)
    return next(owned, {})


def wait_until_queued(job: MpiJob) -> None:
    """Wait until Kueue knows the job, and has no place for it."""
    until(
        lambda: any(
            row["type"] == "QuotaReserved" and row["status"] == "False"
            for row in workload(job).get("status", {}).get("conditions", [])
        ),
        within=WITHIN,
        what=f"Kueue to have {job.name} wait",
        instead=lambda: workload(job),
    )


def pods(job: MpiJob) -> list[dict[str, Any]]:
    return [*job.pods("launcher"), *job.pods("worker")]


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


def test_a_job_without_a_place_is_suspended_until_another_has_ended(jobs: Namespace, name: str) -> None:
    with queue(jobs, name, str(CPU)):
        first = submit(jobs, name, RUNS_ON)
        first.wait_for("Running")
        second = submit(jobs, name)
        wait_until_queued(second)
        second.wait_for("Suspended")
        assert pods(second) == []

        jobs.kubectl("delete", "mpijob", first.name)

        second.wait_for_end()
        assert not second.holds("Suspended")


def test_a_displaced_jobs_pods_are_gone_before_others_are_created_and_it_runs_again(
    jobs: Namespace, name: str
) -> None:
    jobs.ground.kubectl.apply(kueue.priority(name, 1000))
    with queue(jobs, name, str(CPU), preempts=True):
        low = submit(jobs, name, ("sh", "-c", f"sleep 5; {' '.join(MPIRUN)}"))
        low.wait_for("Running")
        with watch(jobs, "pods", labels="training.kubeflow.org/operator-name=mpi-operator") as seen:
            high = submit(jobs, name, priority=name)
            high.wait_for_end()
            low.wait_for_end()

    assert sorted(low.log()) == [f"{low.name}-worker-{number}" for number in range(2)]
    assert {low.name} in together(seen.states, low, high)
    assert {high.name} in together(seen.states, low, high)
    # Workers of a job that has succeeded stay if nothing says otherwise, and Kueue counts them no more.
    first = together(seen.states, low, high)
    assert {low.name, high.name} not in first[: first.index({high.name})]


def together(states: Sequence[State], *jobs: MpiJob) -> list[set[str]]:
    """Which of the jobs had pods that had not ended, after each change of one."""
    names, left, found = {job.name for job in jobs}, dict[str, str](), list[set[str]]()
    for state in states:
        job = state.body["metadata"]["labels"]["training.kubeflow.org/job-name"]
        if job not in names:
            continue
        left.pop(state.uid, None)
        if not state.deleted and state.body["status"].get("phase") not in ("Succeeded", "Failed"):
            left[state.uid] = job
        found.append(set(left.values()))
    return found


def test_a_failed_job_leaves_its_place_to_others(jobs: Namespace, name: str) -> None:
    with queue(jobs, name, str(CPU)):
        failing = submit(jobs, name, ("false",), runPolicy={"backoffLimit": 0, "cleanPodPolicy": "Running"})
        waiting = submit(jobs, name)

        failing.wait_for("Failed")
        waiting.wait_for_end()

        assert is_true(workload(failing), "Finished")


def test_a_job_that_is_deleted_while_it_waits_leaves_nothing(jobs: Namespace, name: str) -> None:
    with queue(jobs, name, "0"):
        job = submit(jobs, name)
        wait_until_queued(job)

        jobs.kubectl("delete", "mpijob", job.name)

        until(lambda: not workload(job), within=WITHIN, what="its workload to be gone")
        selector = f"--selector=training.kubeflow.org/job-name={job.name}"
        everything = "configmaps,serviceaccounts,roles,rolebindings,services,statefulsets,jobs,pods"
        until(lambda: jobs.kubectl.get(everything, selector) == [], within=WITHIN, what="its objects to be gone")


def test_a_job_that_is_scaled_is_stopped_and_admitted_again_with_its_new_size(jobs: Namespace, name: str) -> None:
    with queue(jobs, name, "1"):
        job = submit(jobs, name, RUNS_ON)
        job.wait_for("Running")
        [launcher] = job.pods("launcher")

        jobs.kubectl("scale", f"mpijob/{job.name}", "--replicas=3")

        def runs_with_three() -> bool:
            found = job.pods("launcher")
            others = [pod for pod in found if pod["metadata"]["uid"] != launcher["metadata"]["uid"]]
            return job.holds("Running") and bool(others) and len(job.pods("worker")) == 3

        until(runs_with_three, within=WITHIN, what="three workers and another launcher", instead=job.surroundings)
        counts = {one["name"]: one["count"] for one in workload(job)["status"]["admission"]["podSetAssignments"]}
        assert counts == {"launcher": 1, "worker": 3}


def test_a_job_that_is_scaled_beyond_its_quota_waits(jobs: Namespace, name: str) -> None:
    with queue(jobs, name, str(CPU)):
        job = submit(jobs, name, RUNS_ON)
        job.wait_for("Running")

        jobs.kubectl("scale", f"mpijob/{job.name}", "--replicas=3")

        job.wait_for("Suspended")
        until(lambda: pods(job) == [], within=WITHIN, what="its pods to be gone")
        wait_until_queued(job)


def test_fields_that_kueue_does_not_know_survive_it(jobs: Namespace, name: str) -> None:
    with queue(jobs, name, "1"):
        job = submit(jobs, name, elastic={"minReplicas": 1, "maxReplicas": 4}, mainContainer="mpi")
        job.wait_for_end()

        spec = job.body()["spec"]
        assert (spec["elastic"], spec["mainContainer"]) == ({"minReplicas": 1, "maxReplicas": 4}, "mpi")
        assert job.status()["attempts"]
