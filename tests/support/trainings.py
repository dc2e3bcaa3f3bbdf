"""TrainingJobs: how they are made for a plane without nodes, and how one sees what has become of any."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.ground import Namespace
from testbed.jobs import Job
from testbed.kube.wait import until
from testbed.plane.stages import ENDS, NEVER

Body = dict[str, Any]

API_VERSION = "kai.alibabacloud.com/v1alpha1"
GROUP = f"/apis/{API_VERSION}"
CRDS = tuple(f"{plural}.kai.alibabacloud.com" for plural in ("trainingjobs", "scaleins", "scaleouts"))
PLURALS = {"ScaleIn": "scaleins", "ScaleOut": "scaleouts"}

WITHIN = 90.0
"""Several times what anything takes."""


class Training(Job):
    """One TrainingJob in a cluster."""

    RESOURCE, WITHIN = CRDS[0], WITHIN

    def replicas(self) -> int:
        return int(self.body()["spec"]["etReplicaSpecs"]["worker"]["replicas"])

    def pods(self, role: str = "worker") -> list[Body]:
        found: list[Body] = self.namespace.kubectl.get("pods", f"--selector={self.labels(role)}")
        return found

    def labels(self, role: str = "worker") -> str:
        """The selector by which Arena finds its pods."""
        return f"training-job-name={self.name},training-job-role={role}"

    def workers(self) -> list[str]:
        """The workers' pods that are there and not on their way out."""
        return sorted(pod["metadata"]["name"] for pod in self.pods() if "deletionTimestamp" not in pod["metadata"])

    def hosts(self) -> list[str]:
        """The hosts in the ConfigMap."""
        return str(self.namespace.kubectl.get("configmap", f"{self.name}-config")["data"]["hostfile"]).split()

    def wait_for(self, phase: str) -> None:
        self.wait_until(lambda status: status.get("phase") == phase, phase)

    def scale(self, replicas: int) -> None:
        """As people do it."""
        self.namespace.kubectl("scale", f"{CRDS[0]}/{self.name}", f"--replicas={replicas}")

    def suspend(self) -> None:
        """As Arena does it."""
        self.namespace.kubectl("annotate", CRDS[0], self.name, "job-supervisor.kube-ai.io/job-suspended=true")

    def scale_in(self, name: str, **spec: Any) -> Scaler:
        return self._scaler("ScaleIn", name, spec)

    def scale_out(self, name: str, count: int, **spec: Any) -> Scaler:
        return self._scaler("ScaleOut", name, {"toAdd": {"count": count}, **spec})

    def let_end(self) -> None:
        """The launcher succeeds."""
        self.namespace.kubectl(
            "annotate", "pods", f"--selector={self.labels('launcher')}", f"{ENDS}=0", "--overwrite"
        )

    def surroundings(self) -> Body:
        """What a test that has waited in vain wants to know."""
        scalers = self.namespace.kubectl.get(",".join(CRDS[1:]))
        return {
            "status": self.status(),
            "pods": {pod["metadata"]["name"]: pod["status"].get("phase") for pod in self.pods()},
            "scalers": {each["metadata"]["name"]: each.get("status") for each in scalers},
        }

    def _scaler(self, kind: str, name: str, spec: Mapping[str, Any]) -> Scaler:
        self.namespace.kubectl("create", "--filename=-", stdin=json.dumps(scaler(kind, name, self.name, spec)))
        return Scaler(self, kind, name)


@dataclass(frozen=True)
class Scaler:
    """A ScaleIn or ScaleOut in a cluster."""

    job: Training
    kind: str
    name: str

    def status(self) -> Body:
        found: Body = self.job.namespace.kubectl.get(f"{PLURALS[self.kind]}.kai.alibabacloud.com", self.name)
        return dict(found.get("status", {}))

    def outcome(self, *, within: float = WITHIN) -> tuple[str, str]:
        """The phase in which it ends, and the message."""

        def ended() -> tuple[str, str] | None:
            status = self.status()
            if status.get("phase") not in ("ScaleSucceeded", "ScaleFailed"):
                return None
            return status["phase"], status["conditions"][-1]["message"]

        found = until(ended, within=within, what=f"the outcome of {self.name}", instead=self.job.surroundings)
        assert found is not None
        return found


def scaler(kind: str, name: str, job: str, spec: Mapping[str, Any]) -> Body:
    """A ScaleIn or ScaleOut of that job."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"name": job}, **spec},
    }


def training_job(
    name: str,
    *,
    replicas: int,
    least: int = 1,
    most: int = 9,
    restart: str = "Never",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    on_job: Mapping[str, str] | None = None,
    worker: Mapping[str, Any] | None = None,
    launcher: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Body:
    """
    A TrainingJob whose launcher runs until it is told to end.

    `labels` and `annotations` are those of its pods' templates, `on_job` annotations of its own. `worker` and
    `launcher` have the last word on their pods' specs, and `spec` on the job's.
    """
    limits = {"replicas": replicas, "minReplicas": least, "maxReplicas": most, "restartPolicy": restart}
    metadata = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    stays = {**metadata, "annotations": {**metadata["annotations"], ENDS: NEVER}}
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": name, "annotations": dict(on_job or {})},
        "spec": {
            "etReplicaSpecs": {
                "launcher": {"template": {"metadata": stays, "spec": _pod(launcher or {}, "horovodrun")}},
                "worker": {"template": {"metadata": metadata, "spec": _pod(worker or {})}, **limits},
            },
            **spec,
        },
    }


def submit(namespace: Namespace, name: str, **fields: Any) -> Training:
    """Create the job; returns at once."""
    namespace.kubectl("create", "--filename=-", stdin=json.dumps(training_job(name, **fields)))
    return Training(namespace, name)


def _pod(spec: Mapping[str, Any], *command: str) -> Body:
    container = {"name": "et", "image": "none", **({"command": list(command)} if command else {})}
    return {"containers": [container], **spec}
