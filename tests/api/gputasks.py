"""GPUTasks on a plane of their own, whose nodes have GPUs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from testbed.ground import Ground, Namespace
from testbed.jobs import Job
from testbed.kube import programs
from testbed.kube.kubectl import Kubectl
from testbed.kube.paths import PROJECT
from testbed.plane import nodes, plane, shared
from testbed.plane.plane import Plane
from testbed.plane.stages import ENDS, REASON
from tests.api.controllers import job_name

TASKS = "gputasks.falldio.com"
GPU = "falldio.com/gpu"
"""The node label and the resource."""
MODEL = "rtx4090"

EXAMPLE = PROJECT / "examples/gputask/task.yaml"
PRIORITIES = PROJECT / "deploy/cluster/priority-classes.yaml"

# A pod in the way that no watch reports is looked for every 30 s.
WITHIN = 60.0


@contextmanager
def gpu_plane(folder: Path) -> Iterator[Plane]:
    """A plane with the PriorityClasses, and with many GPUs of one model on two nodes."""
    binaries = programs.ensure(shared.version())
    with plane.running(folder / "plane", binaries, names=("node-1",)) as made:
        made.kubectl("apply", f"--filename={PRIORITIES}")
        add_gpus(made.kubectl, MODEL, "gpu-1", "gpu-2", each=100)
        yield made


def add_gpus(kubectl: Kubectl, model: str, *names: str, each: int = 1) -> None:
    """Add nodes with so many GPUs of that model."""
    nodes.add(kubectl, names, labels={GPU: model}, room={GPU: str(each)})


class Task(Job):
    """A GPUTask, and what tests ask about it."""

    RESOURCE, WITHIN = TASKS, WITHIN
    wait_for = Job.wait_for_reason

    def wait_for_run(self, *, after: str = "", within: float = WITHIN) -> str:
        """Wait until its status says that it runs in a pod that is not the one of that uid; return the pod's."""
        status = self.wait_until(
            lambda one: one.get("phase") == "Running" and one.get("podUID") != after,
            f"{self.name} to run",
            within=within,
        )
        return str(status["podUID"])

    def pod(self) -> dict[str, Any]:
        """The pod of its name; empty if there is none."""
        said = self.namespace.kubectl("get", "pod", self.name, "--output=json", "--ignore-not-found").stdout
        found: dict[str, Any] = json.loads(said) if said else {}
        return found

    def uid(self) -> str:
        """The uid of that."""
        return str(self.pod()["metadata"]["uid"])

    def ends(self, code: int, reason: str = "") -> None:
        """Have its container end."""
        words = [f"{ENDS}={code}", *([f"{REASON}={reason}"] if reason else [])]
        self.namespace.kubectl("annotate", "pod", self.name, *words, "--overwrite")

    def events(self) -> list[str]:
        """The reasons of the events about it, in order."""
        selector = f"--field-selector=involvedObject.name={self.name},involvedObject.kind=GPUTask"
        found = self.namespace.kubectl.get("events", selector)
        ordered = sorted(found, key=lambda one: (one["firstTimestamp"], int(one["metadata"]["resourceVersion"])))
        return [one["reason"] for one in ordered]


def example() -> dict[str, Any]:
    """The task in examples/."""
    found: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return found


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    """The same with another name; `spec` goes over it."""
    found = example()
    return {**found, "metadata": {"name": name}, "spec": {**found["spec"], **spec}}


def submit(namespace: Namespace, prefix: str, **spec: Any) -> Task:
    """Create a task with a name of its own."""
    name = job_name(prefix)
    namespace.kubectl.apply(manifest(name, **spec))
    return Task(namespace, name)


def ground_of(own: Plane) -> Ground:
    return Ground(own.kubectl, is_ours=False)
