"""TrainJobs of Kubeflow Trainer by the runtime of examples/trainjob, and what is asked about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from testbed.ground import Namespace
from testbed.kube.kubectl import Manifest
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
from testbed.mpijobs import LATE

EXAMPLE = PROJECT / "examples" / "trainjob"
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""The label with the number of times that a pod's JobSet was restarted."""

_JOBSET = "jobset.sigs.k8s.io/jobset-name"
_TRAINJOBS = "trainjobs.trainer.kubeflow.org"
# Several times what it takes where others keep the processors busy.
_WITHIN = 180.0


@dataclass(frozen=True)
class TrainJob:
    """One job in a cluster."""

    namespace: Namespace
    name: str

    @property
    def hosts(self) -> list[str]:
        """The host names of its three nodes."""
        return [f"{self.name}-launcher-0-0", f"{self.name}-node-0-0", f"{self.name}-node-0-1"]

    def ends(self) -> str:
        """Wait for its end, and return the condition that says how: Complete or Failed."""
        what = f"the end of {self.name}"
        [condition] = until(self._ends, within=_WITHIN, what=what, instead=self.surroundings)
        print(condition, self.log())
        return str(condition["type"])

    def wait_until_said(self, word: str, *, times: int) -> None:
        """Wait until the launcher has said so in that many lines."""
        until(
            lambda: sum(word in line for line in self.log().splitlines()) >= times,
            within=_WITHIN,
            what=f"{times} lines of {self.name} with {word!r}",
            instead=self.surroundings,
        )

    def log(self) -> str:
        """What the launcher has said so far."""
        words = ("logs", f"job/{self.name}-launcher-0", "--container=node")
        return self.namespace.kubectl(*words, check=False).stdout

    def lines(self) -> list[str]:
        """The lines of its log, sorted: those of the ranks come in any order."""
        return sorted(line for line in self.log().splitlines() if LATE not in line)

    def node(self, index: int) -> str:
        """The pod of that node."""
        labels = (
            f"batch.kubernetes.io/job-name={self.name}-node-0,batch.kubernetes.io/job-completion-index={index}"
        )
        [pod] = self.namespace.kubectl.get("pods", f"--selector={labels}")
        return str(pod["metadata"]["name"])

    def exit_code(self) -> int:
        """The code with which its launcher has ended."""
        labels = f"batch.kubernetes.io/job-name={self.name}-launcher-0"
        [pod] = self.namespace.kubectl.get("pods", f"--selector={labels}")
        [status] = pod["status"]["containerStatuses"]
        return int(status["state"]["terminated"]["exitCode"])

    def surroundings(self) -> dict[str, Any]:
        """What a test that has waited in vain wants to know."""
        kubectl = self.namespace.kubectl
        around = kubectl.get("jobsets.jobset.x-k8s.io,jobs,pods", f"--selector={_JOBSET}={self.name}")
        events = kubectl("get", "events", "--sort-by=.lastTimestamp", "--no-headers", check=False).stdout
        return {
            "status": kubectl.get(_TRAINJOBS, self.name).get("status"),
            "around": {f"{one['kind']} {one['metadata']['name']}": one.get("status") for one in around},
            "log": self.log(),
            "events": [line for line in events.splitlines() if self.name in line][-10:],
        }

    def _ends(self) -> list[dict[str, Any]]:
        conditions = self.namespace.kubectl.get(_TRAINJOBS, self.name).get("status", {}).get("conditions", ())
        return [each for each in conditions if each["type"] in {"Complete", "Failed"} and each["status"] == "True"]


def allow(namespace: Namespace) -> None:
    """Give the launchers of the namespace the example's permissions."""
    namespace.kubectl("apply", f"--filename={EXAMPLE / 'access.yaml'}")


def add_runtime(namespace: Namespace, name: str, image: str, **spec: Any) -> str:
    """Add the example's runtime under another name, with a test image; `spec` is the JobSet's. Return its name."""
    made = _example("runtime.yaml")
    made["metadata"]["name"] = name
    jobset = made["spec"]["template"]["spec"]
    for each in jobset["replicatedJobs"]:
        pod = each["template"]["spec"]["template"]["spec"]
        for container in pod.get("initContainers", ()):
            container["image"] = namespace.ground.image("runtime")
        for container in pod["containers"]:
            container["image"] = namespace.ground.image(image)
    jobset |= spec
    namespace.ground.kubectl.apply(made)
    return name


def submit(namespace: Namespace, name: str, runtime: str, file: str, **trainer: Any) -> TrainJob:
    """Create the job of a file of the example by that runtime; `trainer` has the last word on that field."""
    made = _example(file)
    made["metadata"]["name"] = name
    made["spec"]["runtimeRef"]["name"] = runtime
    made["spec"]["trainer"] |= trainer
    namespace.kubectl.apply(made)
    return TrainJob(namespace, name)


def _example(file: str) -> Manifest:
    found: Manifest = yaml.safe_load((EXAMPLE / file).read_text(encoding="utf-8"))
    return found
