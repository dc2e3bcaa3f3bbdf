"""
Many jobs through a small quota of Kueue: never more of them run than it allows, and none undoes what others do.

Kueue is a real one; like the controller, it speaks to the API server through the proxy that records every write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from tests.api.beds import Bed, beds
from tests.e2e.controller.mpijobs import manifest
from tests.e2e.controller.watching import State, watch
from tests.e2e.ground import Ground
from tests.kube import kubeconfig, pki
from tests.kube.kubectl import Manifest
from tests.kube.wait import until
from tests.neighbours import kueue
from tests.neighbours.kueue import queue, queued
from tests.plane.plane import Plane
from tests.plane.stages import ENDS, ENDS_AFTER

JOBS, AT_ONCE = 200, 10
# Of a job: two pods.
CPU = 0.2

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


@pytest.mark.timeout(900)
def test_never_more_jobs_run_than_the_quota_allows_and_all_end(bed: Bed) -> None:
    alone, beside = numbered("alone"), numbered("queued")

    unlimited = run(bed, alone)
    with queue(bed.namespace, "many", f"{CPU * AT_ONCE:g}"):
        limited = run(bed, [queued(job, "many") for job in beside])

    # Without Kueue the same jobs run all at once, so that the comparison can fail.
    assert most_at_once(unlimited) > AT_ONCE
    assert 1 < most_at_once(limited) <= AT_ONCE
    ours, without, theirs = written(bed, "queued"), written(bed, "alone"), written(bed, "queued", by=KUEUE)
    print(f"at once: {most_at_once(limited)} with Kueue, {most_at_once(unlimited)} without")
    print(f"writes for a job: {each(ours)} with Kueue, {each(without)} without; of Kueue: {each(theirs)}")
    # Two more statuses and events, of Suspended and Resumed, and some of how many workers are Ready.
    assert sum(ours.values()) - sum(without.values()) <= 5 * JOBS
    # The jobs were created suspended: each is admitted by one write.
    assert theirs["PATCH mpijobs"] + theirs["PUT mpijobs"] == JOBS


def numbered(prefix: str) -> list[Manifest]:
    container = {"resources": {"requests": {"cpu": "100m"}}}
    annotations = {"Launcher": {ENDS: "0", ENDS_AFTER: "1s"}}
    return [
        manifest(
            f"{prefix}-{number}",
            "none",
            ("true",),
            workers=1,
            worker={"topologySpreadConstraints": []},
            launcher={},
            container=container,
            annotations=annotations,
            runPolicy={"cleanPodPolicy": "Running"},
        )
        for number in range(JOBS)
    ]


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
