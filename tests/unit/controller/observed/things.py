"""Objects of two jobs."""

from __future__ import annotations

from typing import Any

from mpirt.controller.model.spec import JobKey

KEY = JobKey("MPIJob", "ml", "train")
OTHER = JobKey("MPIJob", "ml", "other")


def thing(name: str = "train-config", version: str = "5", *, job: str = "train", uid: str = "u") -> dict[str, Any]:
    labels = {"training.kubeflow.org/job-name": job} if job else {}
    return {
        "metadata": {"namespace": "ml", "name": name, "uid": uid, "resourceVersion": version, "labels": labels}
    }


def pod(uid: str = "first", version: str = "5", *, phase: str = "Running") -> dict[str, Any]:
    return {**thing("train-worker-1", version, uid=uid), "spec": {}, "status": {"phase": phase}}
