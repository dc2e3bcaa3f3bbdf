"""GPUTasks, and a cluster in which they are carried out."""

from __future__ import annotations

from typing import Any

from mpirt.controller.gputasks.decide import GPU_TASKS
from mpirt.controller.model.actions import Plan
from mpirt.controller.observed.observe import Circumstances
from mpirt.controller.observed.slim import slim
from tests.unit.controller.jobs import Body, at, time
from tests.unit.controller.pods import ended, running
from tests.unit.controller.world import World

CHECKPOINTABLE = {"mpirt.dev/checkpointable": "true"}

UID = "uid-of-task"
FIELDS: Body = {
    "memory": "16Gi",
    "cpu": "8",
    "gpu": "rtx4090",
    "gpu-amount": "1",
    "priority": "gpu-low-priority",
}
"""The seed's example, with a quantity that is one."""

NO_NODE = "0/4 nodes are available: 4 Insufficient falldio.com/gpu"


def gpu_task(**spec: Any) -> Body:
    """The seed's task; `spec` goes over it."""
    return named_task("train", **spec)


def named_task(name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Body:
    """The same with another name, or annotations."""
    return {
        "apiVersion": "falldio.com/v1",
        "kind": "GPUTask",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": UID,
            "generation": 1,
            "creationTimestamp": time(0),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {**FIELDS, **spec},
    }


class TaskWorld(World):
    """One GPUTask. What becomes of its pod, a test says."""

    def __init__(self, task: Body | None = None) -> None:
        super().__init__(task or gpu_task())

    def plan(self) -> Plan:
        """What would be done now."""
        cached: dict[str, list[Body]] = {}
        for (kind, _), body in self.objects.items():
            cached.setdefault(kind, []).append(slim(kind, body))
        heard = None if self.heard is None else at(self.heard)
        around = Circumstances(self.settings, self.now, departed=self.departed, nodes=self.nodes, heard=heard)
        return GPU_TASKS.decide(self.job, cached, self.rejections, around)

    # -- the pod --------------------------------------------------------------------------------------------------

    @property
    def pod(self) -> Body:
        return self.get("Pod")

    def has_pod(self) -> bool:
        return any(kind == "Pod" for kind, _ in self.objects)

    def pod_is(self, phase: str, *, node: str = "", reason: str = "", message: str = "", **more: Any) -> Body:
        """The pod has come so far."""
        body = self.pod
        body["metadata"].setdefault("creationTimestamp", time(self.seconds))
        body["spec"]["nodeName"] = node
        body["status"] = {"phase": phase, "reason": reason, "message": message, **more}
        return body

    def unscheduled(self, message: str = NO_NODE) -> None:
        """The scheduler finds no node for it."""
        row = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self.pod_is("Pending", conditions=[row])

    def runs(self, node: str = "node-1") -> None:
        """It runs there."""
        rows = [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}]
        containers = [running("gpu-task", since=self.seconds)]
        self.pod_is("Running", node=node, conditions=rows, containerStatuses=containers)

    def start(self, **_: Any) -> None:
        """From nothing to a task that runs."""
        self.settle()
        self.seconds += 5
        self.runs()
        self.settle()
        self.seconds += 60

    def ends(self, code: int, reason: str = "", *, message: str = "") -> None:
        """Its container ends by itself, or on request."""
        why = reason or ("Completed" if code == 0 else "Error")
        container = ended("gpu-task", code, why, message=message, at=self.seconds)
        status = self.pod["status"]
        status |= {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [container]}
        status["conditions"] = [row for row in status["conditions"] if row["type"] == "DisruptionTarget"]

    def is_to_go(self, disruption: str = "", *, grace: int = 30) -> None:
        """It is deleted: by a person, or for this reason by Kubernetes."""
        metadata = self.pod["metadata"]
        metadata |= {"deletionTimestamp": time(self.seconds + grace), "deletionGracePeriodSeconds": grace}
        if disruption:
            row = {"type": "DisruptionTarget", "status": "True", "reason": disruption}
            self.pod["status"].setdefault("conditions", []).append(row)

    def goes(self) -> None:
        """It is gone."""
        self.departed.append((slim("Pod", self.objects.pop(("Pod", "train"))), self.now))

    def forget(self) -> None:
        """So much time passes that no pod is remembered."""
        self.seconds += 31
        self.departed.clear()

    # -- its status ---------------------------------------------------------------------------------------------

    @property
    def status(self) -> Body:
        found: Body = self.job.get("status", {})
        return found

    def why(self) -> tuple[str, str]:
        """Phase, and the reason why it runs or doesn't."""
        return self.status["phase"], self.condition("Running")[1]

    def change(self, **spec: Any) -> None:
        """Its user edits it."""
        super().change(**spec)
        self.job["metadata"]["generation"] += 1
