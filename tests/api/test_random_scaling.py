"""
Many elastic jobs whose workers are changed at random, by everybody who may, in all ways at once: everything that
was asked for comes to an end, all agree on the workers then, and no limit was ever broken on the way.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

import pytest

from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.plane.plane import Plane
from tests.api.apiproxy import Write
from tests.api.beds import Bed, beds
from tests.api.leadership import is_for_job, made_twice
from tests.api.random_scaling import NamespaceApi, Requesters
from tests.api.recorder import Told, recording
from tests.api.scaling_laws import broken_limits, numbers_used_twice, unasked_deletions, wrong_choices
from tests.api.straight import Straight
from tests.api.trainings import training_job
from tests.promises import promise
from tests.support import sizes

SEED = "mpirt"
JOBS, WORKERS, OPERATIONS = sizes.of(merge=15, full=50), 8, sizes.of(merge=5, full=10)
LEAST, MOST = 3, 12

HOSTS_WITHIN = 30.0


@dataclass(frozen=True)
class ScaledJobs:
    """All jobs after everything that was asked for."""

    bed: Bed
    requesters: list[Requesters]
    told: list[Told]
    writes: list[Write]
    started: float
    """Seconds until all jobs ran and had their workers."""
    took: float
    """Seconds from then on."""

    @property
    def killed(self) -> set[str]:
        return {uid for each in self.requesters for uid in each.killed}


@pytest.fixture(scope="module")
def run(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScaledJobs]:
    way, folder = Straight(plane), tmp_path_factory.mktemp("random")
    with (
        beds(plane, cluster, folder, 1, replicas=1) as [bed],
        recording(way, bed.namespace.name) as recorder,
        ThreadPoolExecutor(JOBS) as pool,
    ):
        api = NamespaceApi(way, recorder, bed.namespace.name)
        names = [f"random-{number}" for number in range(JOBS)]
        requesters = [Requesters(api, name, Random(f"{SEED}-{name}"), LEAST, MOST) for name in names]
        begun = time.monotonic()
        for name in names:
            body = training_job(name, replicas=WORKERS, least=LEAST, most=MOST, restart="Always")
            way.create(api.path("trainingjobs"), body)
        list(pool.map(Requesters.start, requesters))
        all_run, before = time.monotonic(), len(bed.proxy.writes())
        list(pool.map(lambda each: each.run(OPERATIONS), requesters))
        took = time.monotonic() - all_run
        writes = [write for write in bed.proxy.writes()[before:] if is_for_job(write)]
        made = ScaledJobs(bed, requesters, recorder.told(), writes, all_run - begun, took)
        print(table(made))
        yield made


def test_every_scaler_that_is_left_has_an_outcome(run: ScaledJobs) -> None:
    phases = Counter(one["status"]["phase"] for each in run.requesters for one in each.scalers())

    assert phases.keys() == {"ScaleSucceeded", "ScaleFailed"}


def test_status_and_spec_and_pods_agree_on_the_workers(run: ScaledJobs) -> None:
    assert [each.job for each in run.requesters if not each.is_settled()] == []


def test_launchers_are_told_of_these_hosts(run: ScaledJobs) -> None:
    wanted = {each.job: [f"{name}:1" for name in each.status()["targetWorkers"]] for each in run.requesters}

    until(
        lambda: hosts(run.bed) == wanted, within=HOSTS_WITHIN, what="these hosts", instead=lambda: hosts(run.bed)
    )


@promise("No change leads to fewer workers than minReplicas or more than maxReplicas.", of="TrainingJob")
def test_no_job_ever_wants_fewer_or_more_workers_than_allowed(run: ScaledJobs) -> None:
    assert broken_limits(run.told, least=LEAST, most=MOST) == []


@promise("A number of a worker is never used twice in a job, and no pod is created twice.", of="TrainingJob")
def test_no_number_is_used_twice(run: ScaledJobs) -> None:
    assert numbers_used_twice(run.told) == []
    assert made_twice(run.bed.proxy.writes()) == []


@promise(
    "A ScaleIn removes exactly the workers that it names, or those with the highest numbers.", of="TrainingJob"
)
def test_a_scaler_means_the_workers_that_it_asks_for(run: ScaledJobs) -> None:
    assert wrong_choices(run.told) == []


@promise("A worker is deleted only after somebody has asked for it.", of="TrainingJob")
def test_no_worker_is_deleted_that_nobody_asked_to_leave(run: ScaledJobs) -> None:
    assert unasked_deletions(run.told, run.killed) == []


def test_all_changes_were_requested(run: ScaledJobs) -> None:
    assert sum(len(each.asked) for each in run.requesters) == JOBS * OPERATIONS


def hosts(bed: Bed) -> dict[str, list[str]]:
    """The hosts in all ConfigMaps, by the jobs."""
    found = bed.namespace.kubectl.get("configmaps", "--selector=training.kubeflow.org/job-name")
    return {each["metadata"]["name"].removesuffix("-config"): each["data"]["hostfile"].split() for each in found}


def table(run: ScaledJobs) -> str:
    """What it took, and what was asked for."""
    outcomes = Counter(one["status"]["phase"] for each in run.requesters for one in each.scalers())
    asked = Counter(kind for each in run.requesters for kind in each.asked)
    operations = asked.total()
    rows = [
        (f"seconds until {JOBS} jobs of {WORKERS} workers ran", f"{run.started:.0f}"),
        (f"seconds for {operations} operations", f"{run.took:.0f}"),
        ("writes per operation", f"{len(run.writes) / operations:.1f}"),
        *((kind, str(count)) for kind, count in [*asked.items(), *outcomes.items()]),
    ]
    return "\n".join(f"{what:<55}{figure:>8}" for what, figure in rows)
