"""
Many elastic jobs whose workers are changed at random, by everybody who may, in all ways at once: everything that
was asked for comes to an end, all agree on the workers then, and no limit was ever broken on the way.

Who asks next waits for events at most, never for a time, so a seed gives the same requests, while what they meet
differs from run to run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from random import Random
from typing import Any

import pytest

from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.plane.plane import Plane
from tests.api.apiproxy import Write
from tests.api.beds import Bed, beds, is_for_job, made_twice
from tests.api.recorder import Recorder, Told, is_worker, recording
from tests.api.scaling_laws import broken_limits, numbers_used_twice, unasked_deletions, wrong_choices
from tests.api.straight import Denied, Straight
from tests.promises import promise
from tests.support import sizes
from tests.support.trainings import GROUP, PLURALS, Body, scaler, training_job

# All jobs live before the first test, and each wait has its own limit.
pytestmark = pytest.mark.timeout(1800)

# Several times what the longest way takes: workers that died are replaced after a while, which grows.
WITHIN = 300.0
OVER = ("ScaleSucceeded", "ScaleFailed")

# How often the next one asks only when the one before has got an outcome.
_WAITS = 0.4
# How often a ScaleIn names an unknown worker beside others.
_UNKNOWN = 0.3
# A third worker that dies would be replaced a minute later only.
_MOST_DEATHS = 2


class Kind(StrEnum):
    """What may be asked for."""

    IN_BY_COUNT = "ScaleIn by count"
    IN_BY_NAME = "ScaleIn by name"
    IN_OF_NOBODY = "ScaleIn of an unknown or earlier worker"
    IN_OF_DEAD = "ScaleIn of a dead worker"
    OUT = "ScaleOut"
    SCALE = "kubectl scale"
    WITHDRAWN = "scaler that is deleted"
    DEATH = "worker that is deleted"


_WEIGHTS = {
    Kind.IN_BY_COUNT: 4,
    Kind.IN_BY_NAME: 4,
    Kind.IN_OF_NOBODY: 2,
    Kind.IN_OF_DEAD: 1,
    Kind.OUT: 6,
    Kind.SCALE: 4,
    Kind.WITHDRAWN: 3,
    Kind.DEATH: 1,
}


def is_over(body: Body | None) -> bool:
    """Whether a scaler has an outcome."""
    return body is not None and body.get("status", {}).get("phase") in OVER


@dataclass(frozen=True)
class NamespaceApi:
    """Where it all happens."""

    way: Straight
    recorder: Recorder
    namespace: str

    def path(self, plural: str, name: str = "", *, group: str = GROUP) -> str:
        return f"{group}/namespaces/{self.namespace}/{plural}{f'/{name}' if name else ''}"


@dataclass
class Requesters:
    """Those who ask for something of one job."""

    api: NamespaceApi
    job: str
    chance: Random
    least: int
    most: int
    asked: list[Kind] = field(default_factory=list)
    killed: set[str] = field(default_factory=set)
    """The uids of the workers that they have deleted themselves."""
    _written: dict[str, int] = field(default_factory=dict)
    """The version of their last write of each kind."""

    def start(self) -> None:
        """Wait until the job runs."""
        self._wait(lambda: bool(self.status().get("phase") == "Running"), "Running")

    def run(self, operations: int) -> None:
        """Ask for so much, and see to it that all of it comes to an end."""
        for number in range(operations):
            kind = self._next()
            self.asked.append(kind)
            asked = self._ask(kind, f"{self.job}-{number}")
            if asked and self.chance.random() < _WAITS:
                self._wait(partial(self._is_through, *asked), f"an outcome of {asked[1]}")
        # One change is made after the other, and each of them has its time.
        self._wait(self._is_told, "news of the last writes")
        for one in self.scalers():
            kind, name = one["kind"], one["metadata"]["name"]
            self._wait(partial(self._is_through_or_gone, kind, name), f"an outcome of {name}")
        # Before the last writes are received, all may look settled.
        self._wait(lambda: self._is_told() and self.is_settled(), "the end of all changes")

    def status(self) -> Body:
        found: Body = (self.api.recorder.now("TrainingJob", self.job) or {}).get("status", {})
        return found

    def is_settled(self) -> bool:
        """Whether nothing is left to be done, and everybody agrees on the workers."""
        body = self.api.recorder.now("TrainingJob", self.job)
        assert body is not None
        wanted, scaling = body["status"]["targetWorkers"], body["status"]["scaling"]
        return (
            all(map(is_over, self.scalers()))
            and not scaling.keys() & {"change", "pending"}
            and body["spec"]["etReplicaSpecs"]["worker"]["replicas"] == scaling["replicas"] == len(wanted)
            and sorted(pod["metadata"]["name"] for pod in self._pods()) == sorted(wanted)
            and all(map(_is_alive, self._pods()))
        )

    def scalers(self) -> list[Body]:
        return [one for kind in PLURALS for one in self.api.recorder.all_of(kind, self.job)]

    # -- what is asked for ----------------------------------------------------------------------------------------

    def _next(self) -> Kind:
        deadly = {Kind.DEATH, Kind.IN_OF_DEAD}
        has_died = sum(kind in deadly for kind in self.asked) >= _MOST_DEATHS
        allowed = [kind for kind in Kind if not (has_died and kind in deadly)]
        return self.chance.choices(allowed, [_WEIGHTS[kind] for kind in allowed])[0]

    def _ask(self, kind: Kind, name: str) -> tuple[str, str] | None:
        """Ask for it; returns the scaler that was made, if one was."""
        match kind:
            case Kind.IN_BY_COUNT:
                return self._scale_in(name, count=self.chance.randint(1, 3))
            case Kind.IN_BY_NAME | Kind.IN_OF_NOBODY | Kind.IN_OF_DEAD:
                return self._scale_in(name, podNames=self._named(kind))
            case Kind.OUT:
                return self._scaler("ScaleOut", name, toAdd={"count": self.chance.randint(1, 3)})
            case Kind.SCALE:
                replicas = self.chance.randint(self.least, self.most)
                self._note(
                    "TrainingJob", self.api.way.patch(f"{self._own()}/scale", {"spec": {"replicas": replicas}})
                )
            case Kind.WITHDRAWN:
                self._withdraw(name)
            case Kind.DEATH:
                self._kill()
        return None

    def _named(self, kind: Kind) -> list[str]:
        if kind is Kind.IN_OF_DEAD:
            return [self._kill()]
        if kind is Kind.IN_OF_NOBODY:
            return [self._nobody()]
        workers = self.status()["targetWorkers"]
        chosen = self.chance.sample(workers, self.chance.randint(1, 2))
        return [*chosen, self._nobody()] if self.chance.random() < _UNKNOWN else chosen

    def _scale_in(self, name: str, **to_delete: Any) -> tuple[str, str]:
        return self._scaler("ScaleIn", name, toDelete=to_delete)

    def _scaler(self, kind: str, name: str, **spec: Any) -> tuple[str, str]:
        self._note(kind, self.api.way.create(self.api.path(PLURALS[kind]), scaler(kind, name, self.job, spec)))
        return kind, name

    def _withdraw(self, name: str) -> None:
        """Ask for a change and delete what asked for it as soon as that is begun, or over."""
        kind = self.chance.choice(list(PLURALS))
        what: Mapping[str, Any] = {"count": self.chance.randint(1, 2)}
        self._scaler(kind, name, **{"toDelete" if kind == "ScaleIn" else "toAdd": what})
        self._wait(lambda: self._is_begun(kind, name), f"{name} to begin")
        self.api.way.delete(self.api.path(PLURALS[kind], name))

    def _kill(self) -> str:
        """Delete a worker's pod; returns its name."""
        pod = self.chance.choice(self._pods())
        self.killed.add(pod["metadata"]["uid"])
        name = str(pod["metadata"]["name"])
        with suppress(Denied):
            self._note("Pod", self.api.way.delete(self.api.path("pods", name, group="/api/v1")))
        return name

    def _note(self, kind: str, answer: Body) -> None:
        """Remember a write by its answer; that of a deletion may be a Status without a version."""
        if version := answer["metadata"].get("resourceVersion"):
            self._written[kind] = int(version)

    def _is_told(self) -> bool:
        return all(self.api.recorder.has_come_to(*write) for write in self._written.items())

    def _nobody(self) -> str:
        """A name that no worker has, or has any more."""
        numbers = {name.rpartition("-")[2] for name in self.status()["targetWorkers"]}
        earlier = [str(number) for number in range(self.most) if str(number) not in numbers]
        return f"{self.job}-worker-{self.chance.choice([*earlier, '9999'])}"

    # -- what is seen ---------------------------------------------------------------------------------------------

    def _own(self) -> str:
        return self.api.path("trainingjobs", self.job)

    def _pods(self) -> list[Body]:
        return [pod for pod in self.api.recorder.all_of("Pod", self.job) if is_worker(pod)]

    def _is_begun(self, kind: str, name: str) -> bool:
        body = self.api.recorder.now(kind, name)
        return is_over(body) or (body is not None and body.get("status", {}).get("phase") == "Scaling")

    def _is_through(self, kind: str, name: str) -> bool:
        return is_over(self.api.recorder.now(kind, name))

    def _is_through_or_gone(self, kind: str, name: str) -> bool:
        body = self.api.recorder.now(kind, name)
        return body is None or is_over(body)

    def _wait(self, question: Callable[[], bool], what: str) -> None:
        self.api.recorder.wait(
            self.job, question, within=WITHIN, what=f"{what} of {self.job}", instead=self._around
        )

    def _around(self) -> Body:
        return {
            "status": self.status(),
            "scalers": {one["metadata"]["name"]: one.get("status") for one in self.scalers()},
            "pods": {pod["metadata"]["name"]: pod["status"].get("phase") for pod in self._pods()},
        }


def _is_alive(pod: Body) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Running"


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


def test_all_changes_were_requested_and_have_an_outcome_and_all_agree_on_the_workers(run: ScaledJobs) -> None:
    phases = Counter(one["status"]["phase"] for each in run.requesters for one in each.scalers())
    wanted = {each.job: [f"{name}:1" for name in each.status()["targetWorkers"]] for each in run.requesters}

    assert sum(len(each.asked) for each in run.requesters) == JOBS * OPERATIONS
    assert phases.keys() == {"ScaleSucceeded", "ScaleFailed"}
    assert [each.job for each in run.requesters if not each.is_settled()] == []
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
