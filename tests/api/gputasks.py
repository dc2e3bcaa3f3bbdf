"""GPUTasks on a plane of their own, whose nodes have GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.ground import Ground, Namespace
from testbed.kube import programs
from testbed.kube.kubectl import Kubectl
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
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


@dataclass(frozen=True)
class Task:
    """A GPUTask, and what tests ask about it."""

    namespace: Namespace
    name: str

    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = self.namespace.kubectl.get(TASKS, self.name)
        return found

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.body().get("status", {})
        return found

    def condition(self, kind: str = "Running") -> dict[str, str]:
        """One of its conditions; empty if it has none of that type."""
        return next((row for row in self.status().get("conditions", []) if row["type"] == kind), {})

    def wait_for(self, reason: str, *, kind: str = "Running") -> dict[str, str]:
        """Wait until one of its conditions has this reason."""
        return until(
            lambda: found if (found := self.condition(kind)).get("reason") == reason else {},
            within=WITHIN,
            what=f"{kind} of {self.name} to be {reason}",
            instead=self.body,
        )

    def wait_for_run(self, *, after: str = "", within: float = WITHIN) -> str:
        """Wait until its status says that it runs in a pod that is not the one of that uid; return the pod's."""
        status = self.wait_until(
            lambda one: one.get("phase") == "Running" and one.get("podUID") != after,
            f"{self.name} to run",
            within=within,
        )
        return str(status["podUID"])

    def wait_until(
        self, is_so: Callable[[dict[str, Any]], bool], what: str, *, within: float = WITHIN
    ) -> dict[str, Any]:
        """Wait until that is true of its status, and return that."""
        return until(
            lambda: found if is_so(found := self.status()) else {}, within=within, what=what, instead=self.body
        )

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

    def change(self, **spec: Any) -> None:
        """Edit its spec."""
        self.namespace.kubectl("patch", TASKS, self.name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

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
