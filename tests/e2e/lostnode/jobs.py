"""The jobs that lose a node: with a worker of theirs on it, or with their launcher."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from testbed.kube.wait import until
from testbed.manifests import on, rather_on
from testbed.mpijobs import MpiJob
from tests.e2e.controller import losing
from tests.e2e.controller.deployed import Deployed, job_name
from tests.support.stories import Story, story

LOST, KEPT = "node-2", "node-1"
RETRIES = 2

# A minute by default.
_TOLERATED = 5
_STARTS_WITHIN = 60.0


@dataclass(frozen=True)
class Victim:
    """A job, and which of its pods is on the node that is lost."""

    story: Story
    pod: str


@dataclass(frozen=True)
class Victims:
    """All of them."""

    patient: Victim
    """A worker is there; the launcher may be tried again."""
    impatient: Victim
    """The same, but it may not."""
    led: Victim
    """The launcher is there."""
    resumed: Victim
    """A worker is there; it is suspended and resumed after that."""
    begun: Victim
    """A worker is there, which has not started yet."""


@contextmanager
def running(controller: Deployed) -> Iterator[Victims]:
    """All of them, when the ranks of all but the last one run."""
    image = controller.namespace.ground.image("busybox")
    names = [job_name("node") for _ in range(5)]
    made = [
        _spread(controller, names[0], retries=RETRIES),
        _spread(controller, names[1], retries=0),
        losing.start(
            controller.namespace, names[2], retries=RETRIES, worker={"topologySpreadConstraints": [], **on(KEPT)},
            launcher=rather_on(LOST),
        ),
        _spread(controller, names[3], retries=RETRIES),
        _spread(controller, names[4], retries=0, **_starting_on(LOST, image)),
    ]  # fmt: skip
    with ExitStack() as told, ThreadPoolExecutor(len(made)) as side_by_side:
        stories = [told.enter_context(story(job)) for job in made]
        list(side_by_side.map(_run, stories[:-1]))
        until(lambda: _is_starting(LOST, made[-1]), within=_STARTS_WITHIN, what="a worker to start there")
        patient, impatient, led, resumed, begun = [Victim(one, _pod_on(LOST, one.job)) for one in stories]
        yield Victims(patient, impatient, led, resumed, begun)
    for job in made:
        controller.namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")


def impatient() -> dict[str, Any]:
    """What of a pod's spec has it leave a lost node soon."""
    taints = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    tolerated = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED}
        for key in taints
    ]
    return {"tolerations": tolerated, "terminationGracePeriodSeconds": 1}


def suspend_and_resume(one: Story) -> None:
    one.job.change(runPolicy={"suspend": True})
    one.until("Suspended")
    one.job.change(runPolicy={"suspend": False})


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


def _spread(controller: Deployed, name: str, *, retries: int, **worker: Any) -> MpiJob:
    """A job that has a worker on each node, and its launcher on the one that is kept."""
    workers = {**rather_apart(name), **worker}
    return losing.start(controller.namespace, name, retries=retries, worker=workers, launcher=on(KEPT))


def _starting_on(node: str, image: str) -> dict[str, Any]:
    """Pods that never come further than that on this node, and don't tolerate for long that it is away."""
    first = {
        "name": "first",
        "image": image,
        "command": ["sh", "-c", f'[ "$NODE" != {node} ] || sleep 3600'],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    }
    return {"initContainers": [first], **impatient()}


def _is_starting(node: str, job: MpiJob) -> bool:
    """Whether a worker runs its init container there."""
    return any(
        pod["spec"].get("nodeName") == node and "running" in status["state"]
        for pod in job.pods("worker")
        for status in pod["status"].get("initContainerStatuses", ())
    )


def _run(one: Story) -> None:
    one.until("Running")
    losing.wait_until_ranks_run(one.job)


def _pod_on(node: str, job: MpiJob) -> str:
    [pod] = [pod for role in ("worker", "launcher") for pod in job.pods(role) if pod["spec"]["nodeName"] == node]
    return str(pod["metadata"]["name"])
