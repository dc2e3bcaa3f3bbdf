"""
Jobs whose controller is killed at a chosen write, and one that is left in peace.

The write is carried out by the API server, its answer is kept back, and the process that waits for it gets
SIGKILL: it has changed the cluster, and nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, NEVER
from tests.api.apiproxy import Hold, Where, Write
from tests.api.beds import COMES_WITHIN, Bed, made_twice
from tests.api.controllers import job_name
from tests.api.states import State, has_workers, is_settled, lasting_difference, made_again, state, state_when

# In the templates of each job, which so are its own: those of an equal job would not be tried again.
OWN = "example.com/job"

LIFE = (
    "POST jobs (dry run)",
    "POST statefulsets (dry run)",
    "POST configmaps",
    "POST serviceaccounts",
    "POST services",
    "POST statefulsets",
    "POST jobs",
    "POST events MPIJobCreated",
    "PATCH mpijobs/status Created",
    # When all workers are there, and all of them are the job's own.
    "POST roles",
    "POST rolebindings",
    "POST events MPIJobRunning",
    "PATCH mpijobs/status Running",
    "POST events MPIJobSucceeded",
    "PATCH mpijobs/status Succeeded",
    "DELETE statefulsets",
    # Without workers neither the keeper, which takes room in etcd, nor the right to enter them is needed.
    "PATCH configmaps",
    "PATCH roles",
    "PATCH mpijobs/status Succeeded, its workers gone",
)
"""
All writes of an undisturbed job's life, in their order. The lease is no matter of a job's, and what is said again
(counts, while workers are slow to come) is left out. A plan that has taken two seconds reports what has happened
first, and goes on with its changes in the next turn.
"""

_LAUNCHER = "POST jobs"
_RIGHTS = ("POST roles", "POST rolebindings")

RUNNING = LIFE.index("PATCH mpijobs/status Running")
ENDED = LIFE.index("PATCH mpijobs/status Succeeded")


def words(write: Write) -> str:
    """The write as it stands in LIFE."""
    if write.kind == "events":
        return f"{write} {write.content['reason']}"
    if write.kind != "mpijobs/status":
        return str(write)
    status = write.content[-1]["value"]
    holding = [each["type"] for each in status["conditions"] if each["status"] == "True"][-1]
    is_empty = holding == "Succeeded" and status["replicaStatuses"]["Worker"]["active"] == 0
    return f"{write} {holding}{', its workers gone' if is_empty else ''}"


def in_order(life: Sequence[str]) -> tuple[list[str], list[str]]:
    """
    The changes of a life and its reports (events and status), each in their order: how they mix is free.

    So is whether the launcher or its rights come first, here the launcher: a plan that was cut before its Job may
    find the workers there when it goes on.
    """
    changes = [write for write in life if not is_report(write)]
    first_right = next((place for place, write in enumerate(changes) if write in _RIGHTS), len(changes))
    if _LAUNCHER in changes[first_right:]:
        changes.remove(_LAUNCHER)
        changes.insert(first_right, _LAUNCHER)
    return changes, list(filter(is_report, life))


def is_report(write: str) -> bool:
    """Whether it changes nothing, but reports what has happened: it is an event, or a status."""
    kind = kind_of(write)
    return kind == "POST events" or kind.endswith("/status")


@dataclass(frozen=True)
class Peace:
    """The states of a job that was left in peace, as soon as they are known."""

    running: Future[State] = field(default_factory=Future)
    ended: Future[State] = field(default_factory=Future)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Let those that wait for a state know if there will be none."""
        try:
            yield
        except BaseException as error:
            for told in (self.running, self.ended):
                if not told.done():
                    told.set_exception(error)
            raise


@dataclass(repr=False)
class Course:
    """One job's life, and what is to be said of it."""

    bed: Bed
    job: MpiJob
    peace: Peace
    all_is_told: bool
    """Whether Kubernetes could tell all that it did, or the API server was away."""
    while_running: str = ""
    """How it differed from the one in peace, when it ran."""

    def at_the_end(self) -> str:
        """How it differs from the one in peace, now that all is over."""
        return self._difference(self.peace.ended)

    def made_twice(self) -> list[str]:
        """Objects that the API server has made more than once, and pods that Kubernetes has."""
        return [*made_twice(self._writes()), *made_again(self.bed.namespace, self.job.name)]

    def runs(self) -> list[str]:
        """How the pods of its launcher have ended, each of which is an attempt."""
        return [pod["status"]["phase"] for pod in self.job.pods("launcher")]

    def life(self) -> list[str]:
        """What has been written for the job, in the words of LIFE. What was written again is said once."""
        return list(dict.fromkeys(words(write) for write in self._writes() if write.is_good))

    def live(self) -> None:
        """See the job through to its end."""
        self.run()
        self.while_running = self._difference(self.peace.running)
        self.let_end()
        self.end()

    def live_in_peace(self) -> None:
        """The same, for the job that others are compared with."""
        with self.peace.told():
            self.run()
            self.peace.running.set_result(state_when(self._state, is_settled, "all of it as it will stay"))
            self.let_end()
            self._wait_for(LIFE[-1])
            ended = state_when(self._state, lambda state: not has_workers(state), "no workers left")
            self.peace.ended.set_result(ended)

    def run(self) -> None:
        """Wait until it is said that the launcher runs."""
        self._wait_for(LIFE[RUNNING])

    def end(self) -> None:
        """Wait until it is said that the job has succeeded."""
        self._wait_for(LIFE[ENDED], LIFE[-1])

    def let_end(self) -> None:
        """Say the word that the launcher waits for."""
        launchers = f"--selector=job-name={self.job.name}-launcher"
        self.bed.namespace.kubectl("annotate", "pods", launchers, f"{ENDS}=0", "--overwrite")

    def _wait_for(self, *any_of: str) -> None:
        until(
            lambda: {*any_of} & {*self.life()},
            within=COMES_WITHIN,
            what=" or ".join(any_of),
            instead=lambda: f"{self.life()}: {self.job.body()}",
        )

    def _difference(self, peace: Future[State]) -> str:
        return lasting_difference(peace.result(COMES_WITHIN), self._state, all_is_told=self.all_is_told)

    def _state(self) -> State:
        spec = MPI_JOB.parse(self.job.body())
        found = state(self.bed.namespace, self.job.name)
        plain = (line.replace(spec.launcher_digest, "LAUNCHER") for line in found)
        return tuple(sorted(line.replace(spec.worker_digest, "WORKERS") for line in plain))

    def _writes(self) -> list[Write]:
        return self.bed.writes_for(self.job.name)


def start(bed: Bed, peace: Peace, name: str, *, all_is_told: bool = True) -> Course:
    """A job of one worker whose launcher waits for a word, so that nothing ends while no controller looks."""
    job = submit(
        bed.namespace,
        name,
        "busybox",
        ("true",),
        workers=1,
        annotations={"Launcher": {ENDS: NEVER, OWN: name}, "Worker": {OWN: name}},
        worker={"topologySpreadConstraints": []},
        runPolicy={"cleanPodPolicy": "Running"},
    )
    return Course(bed, job, peace, all_is_told)


def hold_up(bed: Bed, name: str, where: Where, target: str) -> Hold:
    """Hold up a write for the job of that name."""
    return bed.proxy.hold(where, is_write(name, target))


def is_write(name: str, target: str) -> Callable[[Write], bool]:
    """The rule for a write, in the words of LIFE, for the job of that name."""
    return lambda write: name in write.name and words(write) == target


def live_in_peace(bed: Bed, peace: Peace) -> Course:
    """The life that others are compared with."""
    course = start(bed, peace, job_name("crash"))
    course.live_in_peace()
    return course


def live_disturbed(bed: Bed, peace: Peace, target: str) -> Course:
    """A life in which the controller is killed at a write, wherever in it that comes."""
    name = job_name("crash")
    hold = bed.hold_to_kill(is_write(name, target))
    course = start(bed, peace, name)
    with ThreadPoolExecutor(1) as aside:
        killed = aside.submit(bed.kill_at, hold)
        course.live()
        killed.result()
    return course


def kill_parameters(kills: Iterable[Sequence[str]], *, each: int) -> list[Any]:
    """A case for each kill, whose last word is the write; in the merge tier `each` of every kind of write."""
    return [
        pytest.param(*words, marks=pytest.mark.sample(each, of=kind_of(words[-1])), id="-".join(words))
        for words in kills
    ]


def kind_of(write: str) -> str:
    """Its method and its resource."""
    method, resource, *_ = write.replace(",", "").split()
    return f"{method} {resource}"


def asked_kills(request: pytest.FixtureRequest, *parameters: str) -> set[tuple[str, ...]]:
    """The kills of the tests of this file that were selected, by the names of their parameters."""
    items = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    specs = [item.callspec.params for item in items]
    return {tuple(spec[name] for name in parameters) for spec in specs if spec.keys() >= set(parameters)}
