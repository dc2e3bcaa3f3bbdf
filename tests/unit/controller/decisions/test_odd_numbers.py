"""Whatever number, time or quantity somebody writes into an object, there is a plan for its job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mpirt.controller.model.actions import Plan
from mpirt.controller.model.roster import Source
from mpirt.controller.model.spec import Settings
from mpirt.controller.observed.nodes import Signal
from tests.unit.controller import pods
from tests.unit.controller.gputasks.taskworld import TaskWorld, gpu_task
from tests.unit.controller.jobs import Body, container, mpi_job, template
from tests.unit.controller.trainings import TrainingWorld, scaler, training_job
from tests.unit.controller.world import World

NUMBERS = (9_000_000_000_000, 2**63 - 1, -(2**63))
TIMES = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "yesterday")
DIGITS = ("9" * 5000, "9" * 10, "1e999999999", "1e-999999999", f"1e{'9' * 5000}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*")

# What nobody but the API server writes.
_ITS_OWN = frozenset({"ownerReferences", "labels"})

RESOURCES = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"nvidia.com/gpu": "1"}}


def pod(name: str, **main: Any) -> Body:
    """A template in which many fields are set that hold numbers."""
    one = container(name, resources=RESOURCES, ports=[{"containerPort": 2222}], **main)
    return template(
        one,
        terminationGracePeriodSeconds=30,
        activeDeadlineSeconds=3600,
        tolerations=[{"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
        overhead={"cpu": "100m"},
        priority=1,
    )


def a_new_job(**more: Any) -> World:
    """An MPIJob with all of that, and a gang."""
    policy = {
        "ttlSecondsAfterFinished": 60,
        "activeDeadlineSeconds": 3600,
        "backoffLimit": 3,
        "schedulingPolicy": {"minAvailable": 3, "scheduleTimeoutSeconds": 60},
    }
    worker = pod("worker", args=["/usr/sbin/sshd", "-p", "2222"], readinessProbe={"tcpSocket": {"port": "2222"}})
    job = mpi_job(launcher=pod("mpi", command=["mpirun"]), worker=worker, runPolicy=policy, **more)
    job["spec"]["slotsPerWorker"] = 2
    return World(job, settings=Settings(runtime_image="mpirt-runtime:1", gang="volcano"))


def mpi(**more: Any) -> World:
    """The same, running."""
    world = a_new_job(**more)
    world.start()
    return world


def a_job_that_loses_a_worker() -> World:
    world = mpi()
    dead = pods.restarted("worker", 137, "OOMKilled", at=18)
    going = pods.worker(1, containers=[dead], conditions=pods.given_up(20), deleted=50)
    going["metadata"]["deletionGracePeriodSeconds"] = 30
    world.workers_are(pods.worker(0), going)
    world.settle()
    world.worker_went(pods.worker(1, containers=[dead]))
    return world


def a_job_that_is_scaled_down() -> World:
    world = mpi(replicas=3, elastic={"minReplicas": 1, "maxReplicas": 5})
    digests = dict(world.get("StatefulSet")["spec"]["template"]["metadata"]["annotations"])
    made = [pods.worker(n, containers=[pods.running("worker")]) for n in range(3)]
    for body in made:
        body["metadata"]["annotations"] = dict(digests)
    world.workers_are(*made)
    world.settle()
    world.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 2
    world.settle()
    assert "mpirt.dev/draining-since" in world.objects["Pod", "train-worker-2"]["metadata"]["annotations"]
    return world


def a_job_that_starts_again() -> World:
    world = mpi()
    done = pods.ended("mpi", 0, "Completed", at=19)
    world.workers_are(pods.worker(0), pods.worker(1, containers=[pods.restarted("worker", 0, at=18)]))
    world.launcher_is(pods.launcher(phase="Succeeded", conditions={}, containers=[done]), succeeded=1)
    world.finish(succeeded=1)
    return world


def a_job_that_has_failed() -> World:
    world = mpi()
    done = pods.ended("mpi", 1, at=19)
    world.launcher_is(pods.launcher(phase="Failed", conditions={}, containers=[done]), failed=4)
    world.finish("Failed", reason="BackoffLimitExceeded", message="limit", failed=4)
    return world


def a_training_job_that_changes() -> World:
    launcher, worker = pod("launcher", command=["horovodrun"]), pod("worker")
    waits = {"job-supervisor.kube-ai.io/max-wait-time": "600"}
    job = training_job(replicas=4, restart="Always", launcher=launcher, worker=worker, annotations=waits)
    world = TrainingWorld(job)
    world.run()
    world.fails("elastic-worker-3")
    world.settle()
    world.pod("elastic-worker-1")["spec"]["nodeName"] = "node-9"
    world.nodes["node-9"] = Signal(Source.NODE_TAINT, "has the taint spot", 120)
    world.settle()
    world.scale_in(count=1)
    scaling = world.status["scaling"]
    assert {"change", "drains", "replaced", "replacedTime"} <= set(scaling)
    return world


def a_training_job_that_waits() -> World:
    waits = {"job-supervisor.kube-ai.io/max-wait-time": "600"}
    world = TrainingWorld(training_job(annotations=waits))
    world.settle()
    return world


def a_training_job_whose_node_is_about_to_go() -> World:
    world = TrainingWorld(training_job(launcher=pod("launcher"), worker=pod("worker")))
    world.run()
    world.nodes["node-1"] = Signal(Source.NODE_TAINT, "has the taint spot", 120)
    world.objects["ScaleIn", "in"] = scaler("ScaleIn", "in", {"toDelete": {"count": 1}, "timeout": 60}, created=1)
    world.objects["ScaleOut", "out"] = scaler("ScaleOut", "out", {"toAdd": {"count": 1}, "timeout": 6}, created=2)
    return world


def a_task_that_waits_for_its_next_pod() -> TaskWorld:
    resources = {"terminationGracePeriodSeconds": 30, "activeDeadlineSeconds": 3600}
    world = TaskWorld(gpu_task(template={"spec": resources}))
    for _ in range(3):
        world.later(600)
        world.start()
        world.is_to_go("PreemptionByScheduler")
        world.settle()
        world.goes()
    assert world.status["restarts"]
    return world


def a_task_that_loses_its_pod() -> World:
    world = a_task_that_waits_for_its_next_pod()
    world.later(600)
    world.start()
    world.is_to_go("DeletionByTaintManager")
    return world


def leaves(body: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, str | int, tuple[str | int, ...]]]:
    """The parent, the key and the path of what holds nothing else; of a list, in its first two only."""
    places = body.items() if isinstance(body, dict) else enumerate(body[:2])
    for key, value in places:
        if isinstance(value, dict | list):
            if key not in _ITS_OWN:
                yield from leaves(value, (*path, key))
        else:
            yield body, key, (*path, key)


def odd(value: object) -> tuple[object, ...]:
    """What somebody may have written instead."""
    if isinstance(value, int) and not isinstance(value, bool):
        return NUMBERS
    if not isinstance(value, str) or not value[:1].isdigit():
        return ()
    return TIMES if _TIME.fullmatch(value) else DIGITS


def problems(plan: Callable[[], Plan], what: str, body: Body) -> Iterator[str]:
    """What can't be planned with."""
    for parent, key, path in list(leaves(body)):
        value = parent[key]
        for other in odd(value):
            parent[key] = other
            try:
                plan()
            except Exception as error:  # noqa: BLE001  any is a defect
                yield f"{what}: {'.'.join(map(str, path))}={str(other)[:30]}: {type(error).__name__}: {error}"
            parent[key] = value


# The search is the same in each of them, and long.
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "world",
    [
        a_new_job,
        a_job_that_loses_a_worker,
        a_job_that_is_scaled_down,
        a_job_that_starts_again,
        a_job_that_has_failed,
        a_training_job_that_changes,
        a_training_job_that_waits,
        a_training_job_whose_node_is_about_to_go,
        a_task_that_waits_for_its_next_pod,
        a_task_that_loses_its_pod,
    ],
    ids=lambda build: build.__name__.replace("_", " "),
)
def test_a_plan_is_made(world: Callable[[], World]) -> None:
    made = world()
    bodies = [(f"{kind} {name}", body) for (kind, name), body in made.objects.items()]

    found = [told for what, body in [("job", made.job), *bodies] for told in problems(made.plan, what, body)]

    assert found == []
