"""
Workers as a job has them: the controller's own builders make the objects, with the keeper in /etc/mpi.

No controller runs and there is no job object, so the objects have no owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from images import build
from mpirt import keeper
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.main import keeper_files
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.workers import stateful_set
from mpirt.controller.model.objectnames import worker_names
from mpirt.controller.model.spec import JobSpec, Settings
from testbed.ground import Namespace
from testbed.manifests import Manifest


def start(
    namespace: Namespace,
    count: int,
    image: str,
    *,
    name: str = "job",
    container: Mapping[str, Any] | None = None,
    keepers: Mapping[str, str] | None = None,
    **spec: Any,
) -> list[str]:
    """
    Start so many workers and wait until all are Ready.

    `container` and `spec` hold fields of the main container and of the pods' spec, as a user's template has them.
    `keepers` are others than those that are installed.
    """
    main = {"name": "main", "image": namespace.ground.image(image), "imagePullPolicy": "IfNotPresent"}
    template = {"terminationGracePeriodSeconds": 1, **spec, "containers": [{**main, **(container or {})}]}
    job = _job(namespace, name, count, template)
    keepers = keepers or _keeper_of_this_machine()
    workers = stateful_set(job, Settings(runtime_image="", keepers=keepers))
    namespace.kubectl.apply(_unowned(config_map(job, keepers)), _unowned(workers))
    namespace.wait_until_all_ready(f"statefulset/{workers['metadata']['name']}")
    return list(worker_names(name, count))


def _keeper_of_this_machine() -> Mapping[str, str]:
    """One of the five that the controller writes: kubectl keeps a copy of what it applies, of 256 KiB at most."""
    name = keeper.file_name(build.architecture())
    files = keeper_files()
    assert name in files, f"there is no {name} in mpirt/keeper; run: make programs"
    return {name: files[name]}


def _job(namespace: Namespace, name: str, count: int, worker: Manifest) -> JobSpec:
    launcher = {"containers": worker["containers"]}
    replicas = {
        "Launcher": {"template": {"spec": launcher}},
        "Worker": {"replicas": count, "template": {"spec": worker}},
    }
    return MPI_JOB.parse(
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": name, "namespace": namespace.name, "uid": "none"},
            "spec": {"mpiReplicaSpecs": replicas},
        }
    )


def _unowned(manifest: Manifest) -> Manifest:
    metadata = {key: text for key, text in manifest["metadata"].items() if key != "ownerReferences"}
    return {**manifest, "metadata": metadata}
