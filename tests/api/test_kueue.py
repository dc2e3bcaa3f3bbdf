"""
Jobs that Kueue admits by a quota: it suspends them, adds to their templates, and lets them run.

Many jobs go through a small quota: never more of them run than it allows, and none undoes what others do. Kueue is
a real one; like the controller, it speaks to the API server through the proxy that records every write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube import kubeconfig, pki
from testbed.kube.kubectl import Manifest
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, manifest
from testbed.neighbours import kueue
from testbed.neighbours.kueue import is_true, queue, queued, workload
from testbed.plane.plane import Plane
from testbed.plane.stages import ENDS, ENDS_AFTER, NEVER, STOPS_AFTER
from tests.api.beds import Bed, beds
from tests.api.controllers import job_name
from tests.promises import promise
from tests.support import sizes
from tests.support.watching import State, watch

JOBS, AT_ONCE = sizes.of(merge=12, full=200), sizes.of(merge=4, full=10)
# Of a job: two pods.
CPU = 0.2

# And of one of two workers.
CPU_OF_THREE = 0.3

Ends = Mapping[str, str]
SUCCEEDS: Ends = {ENDS: "0", ENDS_AFTER: "1s"}
FAILS: Ends = {ENDS: "1"}
RUNS_ON: Ends = {ENDS: NEVER}

WITHIN = 600.0
KUEUE = "kueue"


@pytest.fixture(scope="module")
def bed(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A controller of one replica, and a Kueue beside it."""
    folder = tmp_path_factory.mktemp("kueue")
    with beds(plane, cluster, folder, 1, replicas=1) as [made]:
        door = kubeconfig.write(folder / "admin.kubeconfig", plane.site, pki.ADMIN, url=made.proxy.open(KUEUE))
        with kueue.kueue(cluster, folder, within=[made.namespace.name], kubeconfig=door):
            yield made


@pytest.fixture
def name() -> str:
    """The queue's: no other has it."""
    return job_name("queue")


def submit(jobs: Namespace, of: str, ends: Ends = SUCCEEDS, *, priority: str = "", **spec: Any) -> MpiJob:
    """A job of 0.1 CPU for each of its pods, in a queue."""
    annotations = {"Launcher": ends, "Worker": {STOPS_AFTER: "1s"}}
    made = _manifest(job_name("queued"), 2, annotations, **spec)
    jobs.kubectl.apply(queued(made, of, priority=priority))
    return MpiJob(jobs, made["metadata"]["name"])


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


# In the full tier 200 jobs run ten at a time.
@pytest.mark.timeout(2400)
@promise("Never more jobs run than a Kueue quota allows, and all come to their ends.", of="neighbours")
def test_never_more_jobs_run_than_the_quota_allows_and_all_end(bed: Bed) -> None:
    alone, beside = numbered("alone"), numbered("queued")

    run(bed, alone)
    with queue(bed.namespace, "many", f"{CPU * AT_ONCE:g}"):
        limited = run(bed, [queued(job, "many") for job in beside])

    assert 1 < most_at_once(limited) <= AT_ONCE
    ours, without, theirs = written(bed, "queued"), written(bed, "alone"), written(bed, "queued", by=KUEUE)
    print(f"at once: {most_at_once(limited)}")
    print(f"writes for a job: {each(ours)} with Kueue, {each(without)} without; of Kueue: {each(theirs)}")
    # Two more statuses and events, of Suspended and Resumed, and some of how many workers are Ready.
    assert sum(ours.values()) - sum(without.values()) <= 5 * JOBS
    # The jobs were created suspended: each is admitted by one write.
    assert theirs["PATCH mpijobs"] + theirs["PUT mpijobs"] == JOBS


def test_more_jobs_run_at_once_without_a_quota(bed: Bed) -> None:
    """So that the comparison above can fail."""
    jobs = [_manifest(job_name("free"), 1, {"Launcher": RUNS_ON}) for _ in range(AT_ONCE + 1)]

    bed.namespace.kubectl.apply(*jobs)

    for job in jobs:
        MpiJob(bed.namespace, job["metadata"]["name"]).wait_for("Running")
    bed.namespace.kubectl("delete", "mpijobs.kubeflow.org", *(job["metadata"]["name"] for job in jobs))


def numbered(prefix: str) -> list[Manifest]:
    policy = {"cleanPodPolicy": "Running"}
    return [_manifest(f"{prefix}-{number}", 1, {"Launcher": SUCCEEDS}, runPolicy=policy) for number in range(JOBS)]


def _manifest(name: str, workers: int, annotations: Mapping[str, Ends], **spec: Any) -> Manifest:
    return manifest(
        name,
        "none",
        ("true",),
        workers=workers,
        worker={"topologySpreadConstraints": []},
        launcher={},
        container={"resources": {"requests": {"cpu": "100m"}}},
        annotations=annotations,
        **spec,
    )


def run(bed: Bed, jobs: Sequence[Manifest]) -> list[State]:
    """Run the jobs to their ends, and return the states of all pods meanwhile."""
    kubectl, names = bed.namespace.kubectl, {job["metadata"]["name"] for job in jobs}
    path = (
        '--output=jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.status=="True")].type}|{end}'
    )

    def ended() -> int:
        rows = kubectl("get", "mpijobs.kubeflow.org", path).stdout.split("|")
        found = {name: types for name, *types in (row.split() for row in rows if row.strip())}
        assert not any("Failed" in types for types in found.values())
        return sum("Succeeded" in found.get(name, ()) for name in names)

    # A watch begins with a first state.
    kubectl.apply(jobs[0])
    with watch(bed.namespace, "pods", labels="training.kubeflow.org/operator-name=mpi-operator") as seen:
        kubectl.apply(*jobs[1:])
        until(lambda: ended() == len(names), within=WITHIN, what=f"{len(names)} jobs to succeed", instead=ended)
        return [state for state in seen.states if _job(state) in names]


def most_at_once(states: Sequence[State]) -> int:
    """
    Return how many jobs ran at a time: from their first pod to the end of their launcher.

    The workers of a job that has ended are deleted after that; Kueue no longer counts them.
    """
    running, over, most = set[str](), set[str](), 0
    for state in states:
        job = _job(state)
        if state.body["status"].get("phase") in ("Succeeded", "Failed") and "launcher" in _role(state):
            over.add(job)
        (running.discard if job in over else running.add)(job)
        most = max(most, len(running))
    return most


def written(bed: Bed, prefix: str, *, by: str = "") -> Counter[str]:
    """Return how many writes by the controller, or by Kueue, concerned jobs of that prefix, by method and kind."""
    return Counter(
        f"{one.method} {one.kind}"
        for one in bed.proxy.writes()
        if one.is_good
        and not one.is_dry
        and (one.sender == KUEUE) is (by == KUEUE)
        and "/namespaces/" in one.path
        and f"{prefix}-" in f"{one.path} {one.content}"
    )


def each(found: Counter[str]) -> str:
    """Return how many that are for each job, in words."""
    kinds = ", ".join(f"{what} {count / JOBS:g}" for what, count in sorted(found.items()))
    return f"{sum(found.values()) / JOBS:g} ({kinds})"


def _job(state: State) -> str:
    return str(state.body["metadata"]["labels"]["training.kubeflow.org/job-name"])


def _role(state: State) -> str:
    return str(state.body["metadata"]["labels"]["training.kubeflow.org/job-role"])


@promise("A job for which Kueue has no room stays suspended, without pods.", of="neighbours")
def test_a_job_without_a_place_is_suspended_until_another_has_ended(bed: Bed, name: str) -> None:
    with queue(bed.namespace, name, str(CPU_OF_THREE)):
        first = submit(bed.namespace, name, RUNS_ON)
        first.wait_for("Running")
        second = submit(bed.namespace, name)
        wait_until_queued(second)
        second.wait_for("Suspended")
        assert pods(second) == []

        bed.namespace.kubectl("delete", "mpijob", first.name)

        second.wait_for_end()
        assert not second.holds("Suspended")


@promise("A job that Kueue displaces is gone before the other one starts, and runs again later.", of="neighbours")
def test_a_displaced_jobs_pods_are_gone_before_others_are_created_and_it_runs_again(bed: Bed, name: str) -> None:
    bed.namespace.ground.kubectl.apply(kueue.priority(name, 1000))
    with queue(bed.namespace, name, str(CPU_OF_THREE), preempts=True):
        low = submit(bed.namespace, name, RUNS_ON)
        low.wait_for("Running")
        with watch(bed.namespace, "pods", labels="training.kubeflow.org/operator-name=mpi-operator") as seen:
            high = submit(bed.namespace, name, priority=name)
            high.wait_for_end()
            low.wait_for("Running")
            launchers = f"--selector=job-name={low.name}-launcher"
            low.namespace.kubectl("annotate", "pods", launchers, f"{ENDS}=0", "--overwrite")
            low.wait_for_end()

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


@promise("A job that fails or is deleted leaves its place in Kueue to the next one.", of="neighbours")
def test_a_failed_job_leaves_its_place_to_others(bed: Bed, name: str) -> None:
    with queue(bed.namespace, name, str(CPU_OF_THREE)):
        failing = submit(bed.namespace, name, FAILS, runPolicy={"backoffLimit": 0, "cleanPodPolicy": "Running"})
        waiting = submit(bed.namespace, name)

        failing.wait_for("Failed")
        waiting.wait_for_end()

        assert is_true(workload(failing), "Finished")


@promise("A job that fails or is deleted leaves its place in Kueue to the next one.", of="neighbours")
def test_a_job_that_is_deleted_while_it_waits_leaves_nothing(bed: Bed, name: str) -> None:
    with queue(bed.namespace, name, "0"):
        job = submit(bed.namespace, name)
        wait_until_queued(job)

        bed.namespace.kubectl("delete", "mpijob", job.name)

        until(lambda: not workload(job), within=WITHIN, what="its workload to be gone")
        selector = f"--selector=training.kubeflow.org/job-name={job.name}"
        everything = "configmaps,serviceaccounts,roles,rolebindings,services,statefulsets,jobs,pods"
        until(
            lambda: bed.namespace.kubectl.get(everything, selector) == [],
            within=WITHIN,
            what="its objects to be gone",
        )


@promise("A job that is scaled is stopped by Kueue and admitted again with its new size.", of="neighbours")
def test_a_job_that_is_scaled_is_stopped_and_admitted_again_with_its_new_size(bed: Bed, name: str) -> None:
    with queue(bed.namespace, name, "1"):
        job = submit(bed.namespace, name, RUNS_ON)
        job.wait_for("Running")
        [launcher] = job.pods("launcher")

        bed.namespace.kubectl("scale", f"mpijob/{job.name}", "--replicas=3")

        def runs_with_three() -> bool:
            found = job.pods("launcher")
            others = [pod for pod in found if pod["metadata"]["uid"] != launcher["metadata"]["uid"]]
            return job.holds("Running") and bool(others) and len(job.pods("worker")) == 3

        until(runs_with_three, within=WITHIN, what="three workers and another launcher", instead=job.surroundings)
        counts = {one["name"]: one["count"] for one in workload(job)["status"]["admission"]["podSetAssignments"]}
        assert counts == {"launcher": 1, "worker": 3}


@promise("A job that is scaled is stopped by Kueue and admitted again with its new size.", of="neighbours")
def test_a_job_that_is_scaled_beyond_its_quota_waits(bed: Bed, name: str) -> None:
    with queue(bed.namespace, name, str(CPU_OF_THREE)):
        job = submit(bed.namespace, name, RUNS_ON)
        job.wait_for("Running")

        bed.namespace.kubectl("scale", f"mpijob/{job.name}", "--replicas=3")

        job.wait_for("Suspended")
        until(lambda: pods(job) == [], within=WITHIN, what="its pods to be gone")
        wait_until_queued(job)


@promise("Fields that Kueue doesn't know stay in a job.", of="neighbours")
def test_fields_that_kueue_does_not_know_survive_it(bed: Bed, name: str) -> None:
    with queue(bed.namespace, name, "1"):
        job = submit(bed.namespace, name, elastic={"minReplicas": 1, "maxReplicas": 4}, mainContainer="mpi")
        job.wait_for_end()

        spec = job.body()["spec"]
        assert (spec["elastic"], spec["mainContainer"]) == ({"minReplicas": 1, "maxReplicas": 4}, "mpi")
        assert job.status()["attempts"]
