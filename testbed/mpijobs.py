"""MPIJobs for tests, and what is asked about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.ground import Namespace
from testbed.jobs import Job
from testbed.kube.wait import until
from testbed.manifests import IDLE

ENDS_WITHIN = 180.0
# What Open MPI says at times of a child that has done by itself what its parent was about to do.
LATE = "Warning: setpgid("
# What mpirt-rsh says while workers are slow to come, as they are on a busy machine.
_WAITS = ("mpirt-rsh: waiting for ", "mpirt-rsh: no worker is waited for")
_IMPLEMENTATIONS = {"mpich": "MPICH"}


class MpiJob(Job):
    """One job in a cluster."""

    RESOURCE, WITHIN = "mpijobs.kubeflow.org", 120.0

    def wait_for(self, kind: str, *, within: float = ENDS_WITHIN) -> None:
        until(lambda: self.holds(kind), within=within, what=f"{kind} of {self.name}", instead=self.surroundings)

    def wait_for_end(self) -> None:
        """Wait until it has succeeded; a job that failed is told at once."""
        until(
            lambda: self.holds("Succeeded") or self.holds("Failed"),
            within=ENDS_WITHIN,
            what=f"{self.name} to end",
            instead=self.surroundings,
        )
        assert self.holds("Succeeded"), self.status()

    def surroundings(self) -> dict[str, Any]:
        """What a test that has waited in vain wants to know."""
        selector = f"--selector=training.kubeflow.org/job-name={self.name}"
        around: list[dict[str, Any]] = self.namespace.kubectl.get("statefulsets,jobs,pods", selector)
        told = self.namespace.kubectl("get", "events", "--sort-by=.lastTimestamp", "--no-headers", check=False)
        return {
            "status": self.status(),
            "around": {
                f"{one['kind']} {one['metadata']['name']}": (one["metadata"]["generation"], one["status"])
                if one["kind"] == "StatefulSet"
                else one["status"]
                for one in around
            },
            "events": [line for line in told.stdout.splitlines() if self.name in line][-10:],
        }

    def exists(self, what: str) -> bool:
        """Whether there is an object of this kind/name."""
        return bool(self.namespace.kubectl("get", what, "--ignore-not-found", "--output=name").stdout)

    def log(self) -> list[str]:
        """The lines of the launcher's main container, but for those about workers that are slow to come."""
        lines = self.namespace.kubectl("logs", f"job/{self.name}-launcher").stdout.splitlines()
        return [line for line in lines if LATE not in line and not line.startswith(_WAITS)]

    def launcher(self) -> str:
        """The launcher pod that runs."""
        [running] = [pod for pod in self.pods("launcher") if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        return str(running["metadata"]["name"])

    def hosts(self) -> list[str]:
        """Those in the hostfile."""
        data = self.namespace.kubectl.get("configmap", f"{self.name}-config")["data"]
        return [line.split()[0] for line in data["hostfile"].splitlines()]

    def pods(self, role: str) -> list[dict[str, Any]]:
        labels = f"training.kubeflow.org/job-name={self.name},training.kubeflow.org/job-role={role}"
        found: list[dict[str, Any]] = self.namespace.kubectl.get("pods", f"--selector={labels}")
        return found


def submit(
    namespace: Namespace,
    name: str,
    image: str,
    command: Sequence[str],
    *,
    workers: int = 2,
    worker: Mapping[str, Any] | None = None,
    launcher: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Mapping[str, str]] | None = None,
    **spec: Any,
) -> MpiJob:
    """
    Create a job with its workers spread over the nodes.

    `worker` and `launcher` have the last word on their pods' specs, `container` on all containers, `spec` on the
    job's; `annotations` are those of their pods, by the role.
    """
    namespace.kubectl.apply(
        manifest(
            name,
            namespace.ground.image(image),
            command,
            workers=workers,
            worker=worker or {},
            launcher=launcher or {},
            container=container or {},
            annotations=annotations,
            **{"mpiImplementation": _IMPLEMENTATIONS.get(image, "OpenMPI"), **spec},
        )
    )
    return MpiJob(namespace, name)


def manifest(
    name: str,
    image: str,
    command: Sequence[str],
    *,
    workers: int,
    worker: Mapping[str, Any],
    launcher: Mapping[str, Any],
    container: Mapping[str, Any],
    annotations: Mapping[str, Mapping[str, str]] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """The object."""

    def metadata(role: str) -> dict[str, Any]:
        found = (annotations or {}).get(role)
        return {"metadata": {"annotations": dict(found)}} if found else {}

    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {
            "matchLabels": {"training.kubeflow.org/job-name": name, "training.kubeflow.org/job-role": "worker"}
        },
    }
    common = {"image": image, "imagePullPolicy": "IfNotPresent", **container}
    main = {"name": "mpi", "command": list(command), **common}
    idle = {"name": "mpi", "command": ["/bin/sh", "-c", IDLE], **common}
    workers_spec = {
        "terminationGracePeriodSeconds": 5,
        "topologySpreadConstraints": [spread],
        "containers": [idle],
        **worker,
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 1,
            "mpiReplicaSpecs": {
                "Launcher": {
                    "replicas": 1,
                    "template": {**metadata("Launcher"), "spec": {"containers": [main], **launcher}},
                },
                "Worker": {"replicas": workers, "template": {**metadata("Worker"), "spec": workers_spec}},
            },
            **spec,
        },
    }
