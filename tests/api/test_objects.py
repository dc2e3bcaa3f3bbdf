"""
What builders build the API server takes, and as it keeps it nothing is found to be put right.

Kubernetes fills in defaults and rewrites what it is given: a controller that took one of its habits for an edit
would write for ever. That edits are found is in test_restored.py. The largest number of workers that the
controller allows is tried, too: the API server takes their names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mpirt.controller.decisions.drift import correction
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.dialects.training_job import TRAINING
from mpirt.controller.main import keeper_files
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.supporting import role, role_binding, service, service_account
from mpirt.controller.manifests.workers import stateful_set
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.objectnames import worker_name
from mpirt.controller.model.roster import Change, Roster, Source
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.observed.observe import read_live
from mpirt.controller.observed.slim import slim
from mpirt.controller.scaling.room import with_room
from mpirt.errors import SpecError
from testbed.ground import Namespace
from tests.promises import promise
from tests.unit.controller.jobs import NOON
from tests.unit.controller.trainings import training_job

Body = dict[str, Any]

SETTINGS = Settings(runtime_image="mpirt-test/runtime:dev", keepers=keeper_files())

# In the ways that Kubernetes rewrites: quantities, empty fields, fields that it doesn't know, defaults.
ODD = {
    "resources": {"limits": {"cpu": "0.1", "memory": "64000k"}, "requests": {"cpu": 0.05}},
    "env": [{"name": "EMPTY", "value": ""}],
    "args": [],
    "misspelt": True,
}


def job(namespace: Namespace, owner: Body) -> JobSpec:
    image = namespace.ground.image("busybox")
    idle = {"name": "main", "image": image, "command": ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]}
    template = {"metadata": {"creationTimestamp": None}, "spec": {"containers": [{**idle, **ODD}], "volumes": []}}
    replicas = {"Launcher": {"template": template}, "Worker": {"replicas": 1, "template": template}}
    metadata = {"name": "odd", "namespace": namespace.name, "uid": owner["metadata"]["uid"]}
    policy = {"schedulingPolicy": {"queue": "q"}}
    return MPI_JOB.parse({"metadata": metadata, "spec": {"mpiReplicaSpecs": replicas, "runPolicy": policy}})


def all_of(spec: JobSpec) -> dict[str, Body]:
    made = [
        config_map(spec, SETTINGS.keepers),
        service_account(spec),
        role(spec, [*spec.workers.names]),
        role_binding(spec),
        service(spec),
        stateful_set(spec, SETTINGS),
        launcher_job(spec, SETTINGS),
    ]
    return {manifest["kind"]: manifest for manifest in made}


@pytest.fixture
def wanted(namespace: Namespace) -> dict[str, Body]:
    """All objects of a job, as they are wanted; they are there."""
    # Stands for the job, so that what it owns is not taken for an orphan's.
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}}
    namespace.kubectl.apply(owner)
    made = all_of(job(namespace, namespace.kubectl.get("configmap", "odd")))
    for manifest in made.values():
        reference = manifest["metadata"]["ownerReferences"][0]
        reference.update(apiVersion="v1", kind="ConfigMap")
    everything = {"apiVersion": "v1", "kind": "List", "items": list(made.values())}
    # Clients look for misspelt fields; a controller's requests don't.
    namespace.kubectl("create", "--validate=false", "--filename=-", stdin=json.dumps(everything))
    return made


def test_objects_as_the_api_server_keeps_them_have_no_drift(namespace: Namespace, wanted: dict[str, Body]) -> None:
    kept = {kind: namespace.kubectl.get(kind, one["metadata"]["name"]) for kind, one in wanted.items()}

    drift = {kind: correction(one, read_live(kind, slim(kind, kept[kind]))) for kind, one in wanted.items()}
    assert drift == dict.fromkeys(wanted)


NAME = "a" * 44
WANTED = 10_000


def settings(padding: int = 0) -> Settings:
    """Those of an installation, with so many more bytes in the ConfigMap."""
    return Settings(runtime_image="", keepers={**keeper_files(), "padding": "AAAA" * (padding // 3)})


def parsed(namespace: Namespace, replicas: int, names: Sequence[str] = ()) -> JobSpec:
    """A job with that name and so many workers, or with these ones."""
    job = training_job(replicas=replicas, most=None)
    job["metadata"] |= {"name": NAME, "namespace": namespace.name}
    if names:
        job["status"] = {"targetWorkers": list(names), "scaling": {"highestNumber": 999_999}}
    return TRAINING.parse(job)


def most_of(namespace: Namespace, given: Settings) -> int:
    """How many workers there can be."""
    with pytest.raises(SpecError) as error:
        with_room(TRAINING, parsed(namespace, WANTED), given)
    return int(str(error.value).partition("at most ")[2].split()[0])


def longest(count: int) -> list[str]:
    """The names of so many workers, after many were replaced."""
    return [worker_name(NAME, 999_999 - number) for number in range(count)]


@promise(
    "The largest number of workers that a TrainingJob allows has room in ConfigMap and status.", of="TrainingJob"
)
def test_a_config_map_with_their_names_is_accepted_and_with_one_more_is_not(namespace: Namespace) -> None:
    # With this the ConfigMap is full before the status is.
    given = settings(padding=100_000)
    most = most_of(namespace, given)

    def created(count: int) -> str:
        body: dict[str, Any] = config_map(parsed(namespace, count, longest(count)), given.keepers)
        del body["metadata"]["ownerReferences"]
        return namespace.kubectl("create", "--filename=-", stdin=json.dumps(body), check=False).stderr

    assert "may not be more than 1048576 bytes" in created(most + 1)
    assert created(most) == ""


@promise(
    "The largest number of workers that a TrainingJob allows has room in ConfigMap and status.", of="TrainingJob"
)
def test_a_status_with_their_names_is_accepted_while_all_of_them_leave(namespace: Namespace) -> None:
    names = tuple(longest(most_of(namespace, settings())))
    job = training_job(replicas=1, most=None)
    job["metadata"] = {"name": NAME, "namespace": namespace.name}
    leaving = Roster(names, change=Change(Source.REPLICAS, NOON, leaving=names))
    status = TRAINING.write_status(JobStatus(roster=leaving, running=names), parsed(namespace, 1).key)
    namespace.kubectl.apply(job)
    patch = namespace.folder / "status.json"
    patch.write_text(json.dumps({"status": status}), encoding="utf-8")

    written = ("patch", f"trainingjob/{NAME}", "--subresource=status", "--type=merge", f"--patch-file={patch}")
    namespace.kubectl(*written)

    found = namespace.kubectl.get(f"trainingjob/{NAME}")["status"]
    assert len(found["scaling"]["change"]["leaving"]) == len(names)
