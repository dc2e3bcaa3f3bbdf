"""
A GPUTask comes to the same end, and no pod of it is made twice, at whichever write its controller is killed.

The write is carried out, its answer is kept back, and the process that waits for it gets SIGKILL. In its life the
task is changed while it waits, is evicted while it runs, and succeeds: it has three pods.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.api.apiproxy import Write
from tests.api.beds import Bed, FreeBeds, beds
from tests.api.controllers import job_name
from tests.api.crashes import asked_kills, kill_parameters
from tests.api.gputasks import Task, gpu_plane, ground_of, manifest
from tests.promises import promise

# All lives are begun at once, and the first test waits for the first of them.
pytestmark = pytest.mark.timeout(1800)

SIDE_BY_SIDE = 6
PEACE = "no kill"
PODS = 3

LIFE = (
    "POST pods",
    "POST events GPUTaskPodCreated",
    "POST events GPUTaskUnschedulable",
    "PATCH status GPUTaskUnschedulable",
    "PATCH status GPUTaskPending",
    "DELETE pods",
    "POST pods, again",
    "POST events GPUTaskRunning",
    "PATCH status GPUTaskRunning",
    "POST events GPUTaskEvicted",
    "PATCH status GPUTaskEvicted",
    "DELETE pods, again",
    "POST pods, again, again",
    "POST events GPUTaskRunning, again",
    "PATCH status GPUTaskRunning, again",
    "POST events GPUTaskSucceeded",
    "PATCH status GPUTaskSucceeded",
)
"""All writes of an undisturbed task's life, in their order."""

HELD_BACK = {"spec": {"schedulingGates": [{"name": "mpirt-test/held-back"}]}}
"""A template whose pod is known to be unschedulable as soon as it is there."""


def words(writes: Iterable[Write]) -> list[str]:
    """What a task's writes are called in LIFE. They are given in their order."""
    before: Counter[str] = Counter()

    def word(write: Write) -> str:
        found = f"{write.method} {write.kind}"
        if write.kind == "events":
            found = f"POST events {write.content['reason']}"
        elif write.kind == "gputasks/status":
            found = f"PATCH status {write.content[-1]['value']['conditions'][0]['reason']}"
        before[found] += 1
        return found + ", again" * (before[found] - 1)

    return [word(write) for write in writes]


def done(writes: Iterable[Write]) -> list[Write]:
    """Those that the API server has carried out. Others are tried again when the machine is busy."""
    return [write for write in writes if write.is_good]


@dataclass(frozen=True)
class Course:
    """One task's life, and what is to be said of it."""

    bed: Bed
    task: Task
    status: dict[str, Any]
    events: list[str]

    def writes(self) -> list[Write]:
        return self.bed.writes_for(self.task.name)

    def life(self) -> list[str]:
        return words(done(self.writes()))

    def pods_made(self) -> int:
        """How many pods came into being."""
        return len([write for write in self.writes() if write.kind == "pods" and write.made_it])

    def outcome(self) -> dict[str, Any]:
        """What its status says in the end, without what differs from one task to another."""
        kept = {name: self.status[name] for name in ("phase", "restarts", "observedGeneration")}
        return kept | {"conditions": [(row["type"], row["reason"]) for row in self.status["conditions"]]}


KILLS = kill_parameters([(write,) for write in LIFE], each=2)
Courses = dict[str, Future[Course]]


@pytest.fixture(scope="module")
def courses(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Courses]:
    """A task's life for every kill that is asked for, and one without. One that goes wrong fails its own tests."""
    folder = tmp_path_factory.mktemp("gputask-crashes")
    with (
        gpu_plane(folder) as own,
        beds(own, ground_of(own), folder, SIDE_BY_SIDE, replicas=1, has_lease=False) as made,
        ThreadPoolExecutor(SIDE_BY_SIDE) as pool,
    ):
        free = FreeBeds(made)
        targets = [target for (target,) in asked_kills(request, "target")]
        yield {target: pool.submit(live, free, target) for target in (PEACE, *targets)}


def live(free: FreeBeds, target: str) -> Course:
    """A life in which the controller is killed at a write; in that called PEACE, at none."""
    name = job_name("crash")
    with free.one() as bed, ThreadPoolExecutor(1) as aside:

        def is_it(write: Write) -> bool:
            return name in write.name and words([*done(bed.writes_for(name)), write])[-1] == target

        hold = bed.hold_to_kill(is_it)
        try:
            killed = aside.submit(bed.kill_at, hold) if target != PEACE else None
            course = see_through(bed, name)
            if killed is not None:
                killed.result()
            return course
        finally:
            hold.release()


def see_through(bed: Bed, name: str) -> Course:
    """Have the task wait, be changed, run, be evicted, run again and succeed."""
    bed.namespace.kubectl.apply(manifest(name, template=HELD_BACK))
    task = Task(bed.namespace, name)
    task.wait_for("GPUTaskUnschedulable")
    task.change(template=None)
    before = task.wait_for_run()
    evict(task)
    task.wait_for_run(after=before)
    task.ends(0)
    task.wait_for("GPUTaskSucceeded", kind="Succeeded")
    return Course(bed, task, task.status(), task.events())


def evict(task: Task) -> None:
    """Have its node evict its pod, which stays."""
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    patch = json.dumps({"status": status})
    task.namespace.kubectl("patch", "pod", task.name, "--subresource=status", "--type=merge", f"--patch={patch}")


@promise(
    "A GPUTask whose pod is taken from it runs again: displaced, evicted, deleted, or node lost.", of="GPUTask"
)
def test_the_life_of_a_task_is_these_writes(courses: Courses) -> None:
    assert tuple(courses[PEACE].result().life()) == LIFE


@promise(
    "A controller that is killed at any write leaves no trace: the next one reaches the same end.",
    of="mpirt-controller",
)
@pytest.mark.parametrize("target", KILLS)
def test_a_task_whose_controller_was_killed_comes_to_the_same_end_and_no_pod_is_made_twice(
    courses: Courses, target: str
) -> None:
    course, peace = courses[target].result(), courses[PEACE].result()

    assert course.outcome() == peace.outcome()
    assert course.events == peace.events
    assert course.pods_made() == PODS
