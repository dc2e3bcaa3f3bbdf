"""
What builders build the API server takes, and as it keeps it nothing is found to be put right.

Kubernetes fills in defaults and rewrites what it is given. Where one of its habits were taken for somebody's edit,
a controller would write for ever; where an edit were taken for a habit, it would stay. Only a real API server
knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from mpirt.controller.model.actions import Patch
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.objectnames import object_name, worker_name
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
    body = {
        "metadata": {
            "name": owner["metadata"]["name"],
            "namespace": namespace.name,
            "uid": owner["metadata"]["uid"],
        },
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"template": template},
                "Worker": {"replicas": 1, "template": template},
            },
            "runPolicy": {"schedulingPolicy": {"queue": "q"}},
        },
    }
    return MPI_JOB.parse(body)


def all_of(spec: JobSpec) -> dict[str, Body]:
    made = [
        config_map(spec, SETTINGS.keepers),
        service_account(spec),
        role(spec, [*spec.workers.names]),
        role_binding(spec),
        service(spec),
        stateful_set(spec, SETTINGS),
        launcher_job(spec, SETTINGS, held=True),
    ]
    return {manifest["kind"]: manifest for manifest in made}


def put_right(namespace: Namespace, wanted: Body) -> list[Any]:
    """Correct what is there as often as there is something to correct; the paths that were written."""
    kind, name = wanted["kind"], wanted["metadata"]["name"]
    written: list[Any] = []
    for _ in range(3):
        action = correction(wanted, read_live(kind, slim(kind, namespace.kubectl.get(kind, name))))
        if action is None:
            return written
        assert isinstance(action, Patch)
        patch = json.dumps(list(action.operations))
        namespace.kubectl("patch", kind, name, "--type=json", f"--patch={patch}")
        written.append([operation["path"] for operation in action.operations[1:]])
    raise AssertionError(f"still something to put right: {written}")


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
    assert {kind: put_right(namespace, manifest) for kind, manifest in wanted.items()} == {
        kind: [] for kind in wanted
    }


def edit(*words: str) -> Callable[[Namespace], None]:
    return lambda namespace: (namespace.kubectl(*words), None)[1]


def patch(kind: str, *operations: Body) -> Callable[[Namespace], None]:
    return edit("patch", kind, object_name(kind, "odd"), "--type=json", f"--patch={json.dumps(list(operations))}")


EDITS: list[tuple[str, str, Callable[[Namespace], None]]] = [
    ("a hostfile", "ConfigMap", patch("ConfigMap", {"op": "add", "path": "/data/hostfile", "value": "x"})),
    ("a file more", "ConfigMap", patch("ConfigMap", {"op": "add", "path": "/data/more", "value": "x"})),
    ("another keeper", "ConfigMap", patch("ConfigMap", {
        "op": "add", "path": "/binaryData/keeper-1-amd64", "value": "AAAA"})),
    ("no keeper", "ConfigMap", patch("ConfigMap", {"op": "remove", "path": "/binaryData"})),
    ("a label gone", "ServiceAccount", edit("label", "serviceaccount", "odd-launcher", "app-")),
    ("a rule more", "Role", patch("Role", {"op": "add", "path": "/rules/-", "value": {
        "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}})),
    ("somebody else bound", "RoleBinding", patch("RoleBinding", {"op": "add", "path": "/subjects/-", "value": {
        "kind": "ServiceAccount", "name": "default", "namespace": "default"}})),
    ("a port", "Service", patch("Service", {"op": "add", "path": "/spec/ports", "value": [{"port": 22}]})),
    ("other pods", "Service", patch("Service", {"op": "add", "path": "/spec/selector/more", "value": "x"})),
    ("workers scaled", "StatefulSet", edit("scale", "statefulset", "odd-worker", "--replicas=2")),
    ("a variable more", "StatefulSet", edit("set", "env", "statefulset/odd-worker", "MORE=1")),
    ("another image", "StatefulSet", edit("set", "image", "statefulset/odd-worker", "main=other")),
    ("workers that roll no more", "StatefulSet", patch("StatefulSet", {
        "op": "add", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}})),
    ("no annotation of ours", "StatefulSet", edit("annotate", "statefulset", "odd-worker", "mpirt.dev/template-")),
    ("the launcher let go", "Job", patch("Job", {"op": "add", "path": "/spec/parallelism", "value": 1})),
    ("a deadline", "Job", patch("Job", {"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 3600})),
    ("no retries", "Job", patch("Job", {"op": "add", "path": "/spec/backoffLimit", "value": 0})),
]  # fmt: skip


@pytest.mark.one_in(3)
def test_an_edit_by_hand_is_found_and_reverted(namespace: Namespace, wanted: dict[str, Body]) -> None:
    """One after the other on the same objects: each has to be found, and to be gone after at most two writes."""
    for name, kind, change in EDITS:
        before = ours(namespace, kind)
        change(namespace)
        assert ours(namespace, kind) != before, name

        written = put_right(namespace, wanted[kind])

        assert 1 <= len(written) <= 2, name
        assert ours(namespace, kind) == before, name


def ours(namespace: Namespace, kind: str) -> Body:
    """Of an object what people write, less our note of its generation and what Kubernetes adds."""
    body = namespace.kubectl.get(kind, object_name(kind, "odd"))
    annotations = dict(body["metadata"].get("annotations", {}))
    annotations.pop("mpirt.dev/generation", None)
    kept = {name: value for name, value in body.items() if name not in ("metadata", "secrets", "status")}
    return {**kept, "labels": body["metadata"]["labels"], "annotations": annotations}


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
