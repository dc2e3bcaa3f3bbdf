"""
Objects with values that are nested deeply, as any tenant may send them.

Owns: how such an object is written, and the CRDs of others, which keep fields that they don't know. They are sent
as text: no JSON library in between, which might have limits of its own.
"""

from __future__ import annotations

import json
import os
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mpirt.controller.model.objectnames import OPERATOR
from testbed.ground import Ground, Namespace
from testbed.kube.paths import PROJECT
from testbed.kube.programs import newpython
from testbed.kube.wait import until
from testbed.mpijobs import submit
from testbed.plane.plane import Plane
from tests.api import controllers
from tests.api.controllers import Controller, job_name
from tests.promises import promise
from tests.unit.controller.schemas import crd

Body = dict[str, Any]

_MPI_JOB = "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs"
_KAI_VERSION = "kai.alibabacloud.com/v1alpha1"
_KAI = f"/apis/{_KAI_VERSION}/namespaces/{{}}"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_HOLE = "@@"


@dataclass(frozen=True)
class Field:
    """A field of an object in which a tenant may try to put anything."""

    name: str
    """How names of such objects begin."""
    path: str
    """The URL path of the object's kind, with a gap for the namespace."""
    body: Callable[[object], Body]
    """Returns the object with that value in the field."""
    member: str = "a"
    """What fields are called there."""

    def at(self, namespace: str) -> str:
        """Return the URL path of all objects of the kind in that namespace."""
        return self.path.format(namespace)

    def object_name(self, levels: int) -> str:
        return f"{self.name}-{levels}"

    def written(self, namespace: str, levels: int) -> str:
        """Return the object as JSON, with so many levels in the field."""
        body = self.body(_HOLE)
        metadata = {**body["metadata"], "name": self.object_name(levels), "namespace": namespace}
        nested = f'{{"{self.member}":' * (levels - 1) + "{}" + "}" * (levels - 1)
        return json.dumps({**body, "metadata": metadata}).replace(f'"{_HOLE}"', nested)


def _object(api_version: str, kind: str, spec: Body, **more: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec, **more}


def _pods(value: object) -> Body:
    spec: Body = {"containers": [{"name": "main", "image": "busybox"}]}
    return {"template": {"spec": spec if value is None else {**spec, "unknown": value}}}


def _job(value: object = None, **more: Any) -> Body:
    replicas = {"Launcher": _pods(value), "Worker": {"replicas": 1, **_pods(None)}}
    return _object("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": replicas}, **more)


def _training(value: object) -> Body:
    replicas = {"launcher": _pods(value), "worker": {"replicas": 1, **_pods(None)}}
    return _object(_KAI_VERSION, "TrainingJob", {"etReplicaSpecs": replicas})


def _task(value: object) -> Body:
    template = {"spec": {"unknown": value}}
    return _object("falldio.com/v1", "GPUTask", {"image": "busybox", "template": template})


def _scale_in(value: object) -> Body:
    variables = [{"name": "A", "unknown": value}]
    return _object(_KAI_VERSION, "ScaleIn", {"selector": {"name": "none"}, "env": variables})


def _scale_out(value: object) -> Body:
    return _scale_in(value) | {"kind": "ScaleOut"}


def _managed(body: Body, value: object, **metadata: Any) -> Body:
    entry = {
        "manager": "tenant",
        "operation": "Update",
        "apiVersion": body["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": value},
    }
    return {**body, "metadata": {**metadata, "managedFields": [entry]}}


def _config_map(value: object) -> Body:
    # The controller watches all objects with these labels.
    return _managed({"apiVersion": "v1", "kind": "ConfigMap"}, value, labels=dict(OPERATOR))


PODS = Field("pods", _MPI_JOB, _job)
FIELDS = (
    PODS,
    Field("managed", _MPI_JOB, lambda value: _managed(_job(), value), member="f:a"),
    Field("training", f"{_KAI}/trainingjobs", _training),
    Field("task", "/apis/falldio.com/v1/namespaces/{}/gputasks", _task),
    Field("scale-in", f"{_KAI}/scaleins", _scale_in),
    Field("scale-out", f"{_KAI}/scaleouts", _scale_out),
    Field("config-map", "/api/v1/namespaces/{}/configmaps", _config_map, member="f:a"),
)
"""Of every kind that tenants create; and a ConfigMap, which they may give the labels of the controller's own."""
STATUS = Field("status", _MPI_JOB, lambda value: _job(status={"unknown": value}))


def open_crds() -> list[Body]:
    """Our CRDs as others have theirs: with pods and variables of which nothing is known."""
    names = [path.stem for path in (PROJECT / "crds").glob("*.*.yaml")]
    return [_opened(crd(name)) for name in names]


def _opened(node: Any) -> Any:
    if isinstance(node, list):
        return [_opened(each) for each in node]
    if not isinstance(node, dict):
        return node
    fields = node.get("properties", {})
    if "containers" in fields or "valueFrom" in fields:
        return _OPEN
    return {name: _opened(below) for name, below in node.items()}


# Python 3.11 gives up at 1,000; the API server stores 9,990 in an unknown field, and can't read that any more.
DEPTHS = (500, 1_100, 9_900, 9_988, 9_990)
SERVED = DEPTHS[:-1]
WITHIN = 60.0
_AT_ONCE = 8
POSTED_WITHIN = 120.0
# What kubectl says then.
_TIMED_OUT, _IS_THERE = "Error from server (Timeout)", "Error from server (AlreadyExists)"
# From a job's creation to its first object.
BEGINS_WITHIN = 5.0


@dataclass(frozen=True)
class Python:
    """A Python that runs the controller."""

    program: Sequence[str] = (controllers.PROGRAM,)
    environment: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture(params=["this Python", f"Python {newpython.VERSION}"])
def python(request: pytest.FixtureRequest) -> Python:
    """This one, which is the oldest that is supported where Debian bookworm runs the tests, and a newer one."""
    if request.param == "this Python":
        return Python()
    new = newpython.ensure()
    # From 3.13 on, certificates must have extensions that the plane's lack.
    start = (
        "import ssl, sys; ssl.VERIFY_X509_STRICT = ssl.VerifyFlags(0); "
        "from mpirt.controller.main import main; sys.exit(main())"
    )
    # The last one only tells the version of mpirt.
    path = os.pathsep.join([str(new.packages), str(PROJECT), sysconfig.get_path("purelib")])
    return Python((str(new.program), "-c", start), {"PYTHONPATH": path})


@pytest.fixture
def controller(own: Plane, python: Python, tmp_path: Path) -> Iterator[Controller]:
    """A controller, not started yet, that this Python runs."""
    ground = Ground(own.kubectl, is_ours=False)
    made = controllers.start(own, ground, tmp_path, program=python.program, environment=python.environment)
    yield made
    made.remove()


@pytest.fixture
def opened(own: Plane) -> Iterator[None]:
    """CRDs that keep unknown fields in pods."""
    own.kubectl("replace", "--filename=-", stdin=as_list(open_crds()))
    until(lambda: keeps_unknown_fields(own), within=WITHIN, what="CRDs that keep unknown fields")
    yield
    own.kubectl("replace", "--kustomize", str(PROJECT / "crds"))
    until(lambda: not keeps_unknown_fields(own), within=WITHIN, what="CRDs that drop unknown fields")


@promise(
    "A tenant can't stop the jobs of others, whatever objects they create in their own namespace.", of="safety"
)
@pytest.mark.sample(1)
def test_with_our_crds_nothing_is_kept_and_the_jobs_of_others_run(controller: Controller) -> None:
    namespace = controller.namespace
    controller.wait_until_ready()

    refused = post_all(namespace, [(field, levels) for field in FIELDS for levels in DEPTHS])

    assert refused == {}
    assert [field.name for field in FIELDS if '"unknown"' in stored(namespace, field)] == []
    runs_beside(controller)
    delete_all(namespace)


@promise("With CRDs that keep all fields, an object nested too deeply to read harms itself only.", of="safety")
@pytest.mark.sample(1)
def test_with_crds_that_keep_all_fields_such_a_job_harms_itself_only(opened: None, controller: Controller) -> None:
    namespace = controller.namespace
    controller.wait_until_ready()

    # Each costs the API server seconds, in which it lists the fields: side by side they would delay each other.
    others = [(field, 1_100) for field in FIELDS if field is not PODS]
    refused = post_all(namespace, [*((PODS, levels) for levels in SERVED), *others], at_once=1)

    assert refused == {}
    assert stored(namespace, PODS).count('"unknown"') == len(SERVED)
    runs_beside(controller)
    delete_all(namespace)


def test_with_our_crds_nothing_is_kept_in_a_status(namespace: Namespace) -> None:
    """By a tenant who may write it."""
    assert post(namespace, STATUS, DEPTHS[0]) == ""
    path = f"{STATUS.at(namespace.name)}/{STATUS.object_name(DEPTHS[0])}"

    for levels in DEPTHS:
        version = json.loads(namespace.kubectl("get", f"--raw={path}").stdout)["metadata"]["resourceVersion"]
        text = STATUS.written(namespace.name, levels)
        text = text.replace(STATUS.object_name(levels), STATUS.object_name(DEPTHS[0]))
        text = text.replace('"metadata": {', f'"metadata": {{"resourceVersion": "{version}", ')
        namespace.kubectl("replace", f"--raw={path}/status", "--filename=-", stdin=text)

    assert "unknown" not in stored(namespace, STATUS)


def post_all(
    namespace: Namespace, objects: Sequence[tuple[Field, int]], *, at_once: int = _AT_ONCE
) -> dict[str, str]:
    """Send them. Return those that are refused, and why."""
    with ThreadPoolExecutor(at_once) as pool:
        said = list(pool.map(lambda one: post(namespace, *one), objects))
    named = {field.object_name(levels): why for (field, levels), why in zip(objects, said, strict=True)}
    return {name: why for name, why in named.items() if why}


def post(namespace: Namespace, field: Field, levels: int) -> str:
    """
    Send an object with so many levels. Return why it is refused; empty if it is created.

    It is sent again when the API server has run out of time, of which it gives itself half a minute for a request.
    """
    path, text = field.at(namespace.name), field.written(namespace.name, levels)
    said: list[str] = []

    def is_answered() -> bool:
        sent = namespace.kubectl("create", f"--raw={path}", "--filename=-", stdin=text, check=False)
        said.append("" if sent.returncode == 0 else sent.stderr)
        return _TIMED_OUT not in said[-1]

    what = f"an answer for {field.object_name(levels)}"
    until(is_answered, within=POSTED_WITHIN, what=what, instead=lambda: said[-1])
    # It may have been created although there was no time left to say so.
    is_there = len(said) > 1 and _IS_THERE in said[-1]
    return "" if is_there else said[-1]


def stored(namespace: Namespace, field: Field) -> str:
    """All objects of that kind, as the API server writes them."""
    return namespace.kubectl("get", f"--raw={field.at(namespace.name)}").stdout


def delete_all(namespace: Namespace) -> None:
    """Delete them one by one: kubectl itself can't read a list of them."""
    paths = [f"{field.at(namespace.name)}/{field.object_name(levels)}" for field in FIELDS for levels in DEPTHS]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda path: namespace.kubectl("delete", f"--raw={path}", check=False), paths))


def runs_beside(controller: Controller) -> None:
    """Assert that jobs run, with such objects in the controller's watches and, after a restart, in its lists."""
    [replica] = controller.replicas
    begins_and_runs(controller.namespace)
    replica.end()
    replica.start()
    controller.wait_until_ready()
    begins_and_runs(controller.namespace)

    assert (replica.page("/readyz"), [line for line in replica.log() if line["level"] == "error"]) == ("ok\n", [])
    # The one end is the one that was asked for.
    assert len(replica.ends) == 1


def begins_and_runs(namespace: Namespace) -> None:
    job = submit(namespace, job_name("other"), "busybox", ("true",), workers=1)

    begun = ("configmap", f"{job.name}-config", "--ignore-not-found")
    until(lambda: namespace.kubectl.get(*begun), within=BEGINS_WITHIN, what=f"the first object of {job.name}")
    job.wait_for_end()


def keeps_unknown_fields(own: Plane) -> bool:
    """Whether the API server has taken in the CRDs that keep them."""
    text = PODS.written("default", 2)
    path = f"{PODS.at('default')}?dryRun=All"
    return "unknown" in own.kubectl("create", f"--raw={path}", "--filename=-", stdin=text).stdout


def as_list(items: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
