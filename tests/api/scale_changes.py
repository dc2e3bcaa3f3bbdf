"""
Changes of the workers 0, 1 and 2 of a TrainingJob that runs, and the writes that each of them takes, in words.

Owns: who asks for a change, how, and the job that it takes. A job whose worker leaves a node has one of its own.
Two writes of a change have the same words only if it makes no difference which of both it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from mpirt.controller.model.objectnames import NEEDED_KEY
from testbed.kube.kubectl import Kubectl
from testbed.manifests import rather_on
from testbed.plane import nodes
from tests.api.apiproxy import Write
from tests.support.trainings import Body, Training


def words(write: Write) -> str:
    """The write as it stands in a change."""
    detail = _DETAILS.get(str(write))
    return str(write) if detail is None else f"{write} {detail(write)}"


def _event(write: Write) -> str:
    is_of_job = write.content["involvedObject"]["kind"] == "TrainingJob"
    return f"{write.content['reason']} of the {'job' if is_of_job else 'scaler'}"


def _pod(write: Write) -> str:
    return "launcher" if "-launcher-" in write.name else _numbers([write.name])


def _hosts(write: Write) -> str:
    data = write.content[-1]["value"]
    hosts = [line.partition(":")[0] for line in data["hostfile"].split()]
    return f"hosts {_numbers(hosts)} of {data[NEEDED_KEY]}"


def _reachable(write: Write) -> str:
    [named] = [rule["resourceNames"] for rule in write.content[-1]["value"] if "resourceNames" in rule]
    return f"of {_numbers(named)}"


def _phase(write: Write) -> str:
    return str(write.content[-1]["value"]["phase"])


def _step(write: Write) -> str:
    scaling: Body = write.content[-1]["value"]["scaling"]
    said = ["pods to create"] if "pending" in scaling else []
    if scaling.get("change", {}).get("committed", False):
        said.append("committed")
    return ", ".join([_phase(write), *said, *map(_drain, scaling.get("drains", ()))])


def _drain(drain: Body) -> str:
    if drain.get("committed", False):
        return "leaves now"
    return "waits for its successor" if "after" in drain else "leaves"


def _numbers(workers: Iterable[str]) -> str:
    return " ".join(name.rpartition("-")[2] for name in workers)


_DETAILS: Mapping[str, Callable[[Write], str]] = {
    "POST events": _event,
    "POST pods": _pod,
    "PATCH pods": _pod,
    "DELETE pods": _pod,
    "PATCH configmaps": _hosts,
    "PATCH roles": _reachable,
    "PATCH trainingjobs/status": _step,
    "PATCH scaleins/status": _phase,
    "PATCH scaleouts/status": _phase,
}


# A controller that is killed comes back while the change has time, however busy the machine is.
PATIENCE = 900
TAINT = "aws-node-termination-handler/spot-itn"


@dataclass(frozen=True)
class Change:
    """A change of the workers 0, 1 and 2 of a job that runs."""

    ask: Callable[[Training], object]
    hosts: tuple[int, ...]
    """The workers in the end."""
    replicas: int
    highest: int
    """The highest number that is ever used."""
    writes: tuple[str, ...]
    """All writes that it takes, in their order."""
    job: Mapping[str, Any] = field(default_factory=dict)
    """What the job has besides three workers."""
    leaves_node: bool = False
    """Whether worker 0 is alone on a node that no other pod may use."""


SCALE_OUT = Change(
    ask=lambda job: job.scale_out(f"{job.name}-asks", 2, timeout=PATIENCE),
    hosts=(0, 1, 2, 3, 4),
    replicas=5,
    highest=4,
    writes=(
        "PATCH scaleouts",
        "POST events ScalingStart of the job",
        "PATCH trainingjobs/status Scaling, pods to create",
        "POST pods 3",
        "POST pods 4",
        "PATCH scaleouts/status Scaling",
        "PATCH roles of 0 1 2 3 4",
        "PATCH trainingjobs/status Scaling",
        "PATCH trainingjobs",
        "POST events ScalingOutSucceeded of the scaler",
        "PATCH scaleouts/status ScaleSucceeded",
        "POST events ScalingOutSucceeded of the job",
        "PATCH trainingjobs/status Running",
        "PATCH configmaps hosts 0 1 2 3 4 of 5",
        "PATCH pods 3",
        "PATCH pods 4",
        "PATCH pods launcher",
    ),
)
SCALE_IN = Change(
    ask=lambda job: job.scale_in(f"{job.name}-asks", toDelete={"podNames": [job.worker(1)]}, timeout=PATIENCE),
    hosts=(0, 2),
    replicas=2,
    highest=2,
    writes=(
        "PATCH scaleins",
        "POST events ScalingStart of the job",
        "PATCH trainingjobs/status Scaling",
        "PATCH configmaps hosts 0 2 of 3",
        "PATCH pods 1",
        "PATCH scaleins/status Scaling",
        "PATCH pods launcher",
        "PATCH trainingjobs/status Scaling, committed",
        "DELETE pods 1",
        "PATCH roles of 0 2",
        "PATCH trainingjobs",
        "POST events ScalingInSucceeded of the scaler",
        "PATCH scaleins/status ScaleSucceeded",
        "POST events ScalingInSucceeded of the job",
        "PATCH trainingjobs/status Running",
        "PATCH configmaps hosts 0 2 of 2",
    ),
)
SCALE_DOWN = Change(
    ask=lambda job: job.scale(1),
    hosts=(0,),
    replicas=1,
    highest=2,
    writes=(
        "POST events ScalingStart of the job",
        "PATCH trainingjobs/status Scaling",
        "PATCH configmaps hosts 0 of 3",
        "PATCH pods 1",
        "PATCH pods 2",
        "PATCH pods launcher",
        "PATCH trainingjobs/status Scaling, committed",
        "DELETE pods 1",
        "DELETE pods 2",
        "PATCH roles of 0",
        "POST events ScalingInSucceeded of the job",
        "PATCH trainingjobs/status Running",
        "PATCH configmaps hosts 0 of 1",
    ),
)
# The job can do without worker 0, which leaves while its successor is created.
BESIDE = Change(
    ask=lambda job: _on_own_node(job)("taint", "node", node_of(job.name), f"{TAINT}=:NoSchedule"),
    hosts=(1, 2, 3),
    replicas=3,
    highest=3,
    writes=(
        "POST events NodeTaint of the job",
        "PATCH trainingjobs/status Running, pods to create, leaves",
        "PATCH configmaps hosts 1 2 3 of 3",
        "POST pods 3",
        "PATCH pods 0",
        "PATCH roles of 0 1 2 3",
        "PATCH pods launcher",
        "PATCH trainingjobs/status Running, leaves",
        "PATCH trainingjobs/status Running, leaves now",
        "DELETE pods 0",
        "PATCH roles of 1 2 3",
        "PATCH trainingjobs/status Running",
    ),
    job={"least": 1},
    leaves_node=True,
)
# It can't: the worker stays a host until its successor is Ready.
AFTER = replace(
    BESIDE,
    writes=(
        "POST events NodeTaint of the job",
        "PATCH trainingjobs/status Running, pods to create, waits for its successor",
        "PATCH configmaps hosts 1 2 3 0 of 3",
        "POST pods 3",
        "PATCH roles of 0 1 2 3",
        "PATCH pods launcher",
        "PATCH trainingjobs/status Running, waits for its successor",
        "PATCH trainingjobs/status Running, leaves",
        "PATCH configmaps hosts 1 2 3 of 3",
        "PATCH pods 0",
        "PATCH trainingjobs/status Running, leaves now",
        "DELETE pods 0",
        "PATCH roles of 1 2 3",
        "PATCH trainingjobs/status Running",
    ),
    job={"least": 3},
)
# It can do without, and says that workers leave such nodes.
CORDONED = replace(
    BESIDE,
    ask=lambda job: _on_own_node(job)("cordon", node_of(job.name)),
    writes=("POST events NodeCordoned of the job", *BESIDE.writes[1:]),
    job={"least": 1, "on_job": {"mpirt.dev/leave-cordoned-nodes": "true"}},
)
CHANGES = {
    "ScaleOut": SCALE_OUT,
    "ScaleIn by name": SCALE_IN,
    "kubectl scale": SCALE_DOWN,
    "node that goes": BESIDE,
    "node that goes, no worker to spare": AFTER,
}
# The same but for its event.
IN_PEACE_ONLY = {"cordoned node": CORDONED}


@contextmanager
def place(kubectl: Kubectl, change: Change, job: str) -> Iterator[Mapping[str, Any]]:
    """What the job of that name has besides three workers; its node, if it has one, is there during the block."""
    if not change.leaves_node:
        yield change.job
        return
    node = node_of(job)
    # Workers are scheduled in the order of their numbers, and only the first of them finds room.
    nodes.add(kubectl, [node], alone=True, pods=1)
    try:
        yield {**change.job, "worker": {**rather_on(node), **nodes.tolerating(node)}}
    finally:
        nodes.remove(kubectl, node)


def node_of(job: str) -> str:
    return f"{job}-node"


def _on_own_node(job: Training) -> Kubectl:
    """An administrator, after a look at who is on the job's own node."""
    there = [pod["metadata"]["name"] for pod in job.pods() if pod["spec"]["nodeName"] == node_of(job.name)]
    assert there == [job.worker(0)], f"on {node_of(job.name)} are {there}"
    return job.namespace.ground.kubectl
