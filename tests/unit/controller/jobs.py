"""MPIJobs and what stands around them, as the API server has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.model.reading import write_time
from mpirt.controller.model.spec import JobSpec, Settings

Body = dict[str, Any]

NOON = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
SETTINGS = Settings(runtime_image="mpirt-runtime:1")
UID = "uid-of-train"
REVISION = "train-worker-abc"


def at(seconds: float) -> datetime:
    """So long after noon."""
    return NOON + timedelta(seconds=seconds)


def time(seconds: float) -> str:
    """The same, as Kubernetes writes it."""
    return write_time(at(seconds))


def container(name: str, **fields: Any) -> Body:
    return {"name": name, "image": "mpi:4", **fields}


def template(*containers: Body, metadata: Mapping[str, Any] | None = None, **spec: Any) -> Body:
    return {"metadata": dict(metadata or {}), "spec": {"containers": list(containers), **spec}}


def mpi_job(
    *,
    launcher: Body | None = None,
    worker: Body | None = None,
    replicas: int = 2,
    name: str = "train",
    **spec: Any,
) -> Body:
    """
    A job of one launcher and two workers; `spec` goes over what that needs.

    Its launcher comes when the workers are Ready: most tests are about one step after the other.
    """
    main = launcher or template(container("mpi", command=["mpirun", "-n", "2", "/pi"]))
    work = worker or template(container("worker", command=["sleep", "infinity"]))
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": UID,
            "generation": 1,
            "creationTimestamp": time(0),
        },
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": main},
                "Worker": {"replicas": replicas, "template": work},
            },
            "launcherCreationPolicy": "WaitForWorkersReady",
            **spec,
        },
    }


def parsed(**job: Any) -> JobSpec:
    """The spec of such a job."""
    return MPI_JOB.parse(mpi_job(**job))
