"""
A node goes away under a job whose ranks run on both: with a worker of it, or with its launcher.

All jobs lose the same node at the same moment: Kubernetes takes 40 s to give a node up, and the controller ten
more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.controller import losing
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.controller.mpijobs import MpiJob
from tests.e2e.controller.stories import Story, condition, held, story
from tests.e2e.controller.times import Times
from tests.kube import cluster, faults
from tests.kube.wait import until

LOST, KEPT = "node-2", "node-1"
RETRIES = 2
# Five minutes, where nobody says otherwise.
TOLERATED = 5
STARTS_WITHIN = 60.0

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600), pytest.mark.usefixtures("own_cluster")]


def on(node: str) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def rather_on(node: str) -> dict[str, Any]:
    """There as long as there is such a node, else anywhere."""
    there = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": there}]
            }
        }
    }


def rather_apart(job: str) -> dict[str, Any]:
    """Workers on both nodes as long as there are two; what had to hold would leave one of them without a place."""
    labels = {"training.kubeflow.org/job-name": job, "training.kubeflow.org/job-role": "worker"}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    return {
        "topologySpreadConstraints": [],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
            }
        },
    }


@dataclass(frozen=True)
class Lives:
    """The jobs that lost a node, and when they did."""

    patient: Story
    """A worker was there; the launcher may be tried again."""
    impatient: Story
    """The same, but it may not."""
    led: Story
    """The launcher was there."""
    resumed: Story
    """A worker was there; it is suspended and resumed after that."""
    begun: Story
    """A worker was there, which had not started yet."""
    lost_pods: Mapping[str, str]
    """By the job's name, the pod that was lost."""
    at: float


@pytest.fixture(scope="module")
def lives(controller: Deployed) -> Iterator[Lives]:
    """Five jobs, whose node is lost when the ranks of four of them run."""
    names = [job_name("node") for _ in range(5)]
    made = [
        spread(controller, names[0], retries=RETRIES),
        spread(controller, names[1], retries=0),
        losing.start(
            controller.namespace, names[2], retries=RETRIES, worker={"topologySpreadConstraints": [], **on(KEPT)},
            launcher=rather_on(LOST),
        ),
        spread(controller, names[3], retries=RETRIES),
        spread(controller, names[4], retries=0, **starting_on(LOST, controller.namespace.ground.image("busybox"))),
    ]  # fmt: skip
    with ExitStack() as told, ThreadPoolExecutor(len(made)) as side_by_side:
        stories = [told.enter_context(story(job)) for job in made]
        patient, impatient, led, resumed, begun = stories
        list(side_by_side.map(run, stories[:-1]))
        until(lambda: is_starting(LOST, begun.job), within=STARTS_WITHIN, what="a worker to start there")
        lost_pods = {job.name: pod_on(LOST, job) for job in made}
        faults.node_lost(faults.node_named(LOST))
        at = time.monotonic()
        try:
            suspend_and_resume(resumed)
            yield Lives(patient, impatient, led, resumed, begun, lost_pods, at)
        finally:
            cluster.up()
    for job in made:
        controller.namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")


def spread(controller: Deployed, name: str, *, retries: int, **worker: Any) -> MpiJob:
    """A job that has a worker on each node, and its launcher on the one that is kept."""
    workers = {**rather_apart(name), **worker}
    return losing.start(controller.namespace, name, retries=retries, worker=workers, launcher=on(KEPT))


def starting_on(node: str, image: str) -> dict[str, Any]:
    """Pods that never come further than that on this node, and don't tolerate for long that it is away."""
    first = {
        "name": "first",
        "image": image,
        "command": ["sh", "-c", f'[ "$NODE" != {node} ] || sleep 3600'],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    }
    taints = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    tolerated = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED} for key in taints
    ]
    return {"initContainers": [first], "tolerations": tolerated, "terminationGracePeriodSeconds": 1}


def is_starting(node: str, job: MpiJob) -> bool:
    """Whether a worker runs its init container there."""
    return any(
        pod["spec"].get("nodeName") == node and "running" in status["state"]
        for pod in job.pods("worker")
        for status in pod["status"].get("initContainerStatuses", ())
    )


def run(one: Story) -> None:
    one.until("Running")
    losing.wait_until_ranks_run(one.job)


def suspend_and_resume(one: Story) -> None:
    one.job.change(runPolicy={"suspend": True})
    one.until("Suspended")
    one.job.change(runPolicy={"suspend": False})


def pod_on(node: str, job: MpiJob) -> str:
    [pod] = [pod for role in ("worker", "launcher") for pod in job.pods(role) if pod["spec"]["nodeName"] == node]
    return str(pod["metadata"]["name"])


def test_a_job_that_may_not_try_again_fails_with_worker_and_node(lives: Lives, times: Times) -> None:
    end = lives.impatient.end()

    print(lives.impatient.lines())
    times.add("worker's node lost, no retries: Failed", end.at - lives.at)
    assert condition(end, "Failed")["reason"].startswith("BackoffLimitExceeded")
    assert re.search(f"node {LOST} of pod {lives.lost_pods[lives.impatient.job.name]}", held(end)["Failed"])
    assert lives.impatient.events("MPIJobRestarting") == []
    [event] = lives.impatient.events("BackoffLimitExceeded")
    assert f"node {LOST} of pod" in event.message


def test_one_that_may_gets_another_worker_elsewhere_and_succeeds(lives: Lives, times: Times) -> None:
    one = lives.patient
    end, pod = one.end(), lives.lost_pods[one.job.name]

    print(one.lines())
    times.add("worker's node lost: Succeeded", end.at - lives.at)
    assert "Succeeded" in held(end)
    # mpirt-rsh knows it after 14 s, Kubernetes after 40, and 30 s later the worker is made again. A launcher that
    # begins before that waits for it, and may have to give up: one restart more, of those that the job may have.
    causes = [event.message for event in one.events("MPIJobRestarting")]
    assert 1 <= len(causes) <= RETRIES
    assert f"mpirt-rsh: node {LOST} of pod {pod} has not answered" in causes[0]
    assert f"{pod} was lost with its node {LOST}" in one.lines()
    assert {f"{one.job.name}-worker-{n} runs again" for n in (0, 1)} <= set(losing.said(one.job))


def test_a_job_whose_launcher_was_there_gets_another_one_elsewhere_and_succeeds(
    lives: Lives, times: Times
) -> None:
    one = lives.led
    end, pod = one.end(), lives.lost_pods[one.job.name]

    print(one.lines())
    times.add("launcher's node lost: Succeeded", end.at - lives.at)
    assert "Succeeded" in held(end)
    assert one.messages("Restarting")[-1] == f"launcher pod {pod} was lost with its node {LOST}"
    assert [event.message for event in one.events("MPIJobRestarting")] == [one.messages("Restarting")[-1]]
    assert {f"{one.job.name}-worker-{n} runs again" for n in (0, 1)} <= set(losing.said(one.job))


def test_one_that_is_suspended_and_resumed_gets_its_worker_elsewhere(lives: Lives, times: Times) -> None:
    one = lives.resumed
    again = one.until("Running", after=one.until("Suspended").at)

    print(one.lines())
    times.add("worker's node lost, suspended, resumed: Running", again.at - lives.at)
    assert {pod["spec"]["nodeName"] for pod in one.job.pods("worker")} == {KEPT}


def test_one_whose_worker_had_not_started_there_gets_it_elsewhere(lives: Lives, times: Times) -> None:
    one = lives.begun
    started = one.until("Running")

    print(one.lines())
    times.add("starting worker's node lost: Running", started.at - lives.at)
    losing.wait_until_ranks_run(one.job)
    assert {pod["spec"]["nodeName"] for pod in one.job.pods("worker")} == {KEPT}
    assert f"{lives.lost_pods[one.job.name]} is being deleted on node {LOST}" in one.lines()
