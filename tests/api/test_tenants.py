"""
One tenant can't stop the jobs of others: values that are nested so deeply that a reader gives up on them.

With our CRDs nothing of them is kept. With CRDs that keep unknown fields, or in an object's managedFields, they
are kept, and the API server serves 10,000 levels, which is more than Python reads. On a plane of its own: all
tests of a plane share its CRDs.
"""

from __future__ import annotations

import json
import os
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube import programs
from testbed.kube.paths import PROJECT
from testbed.kube.programs import newpython
from testbed.kube.wait import until
from testbed.mpijobs import submit
from testbed.plane import plane, shared
from testbed.plane.plane import Plane
from tests.api import controllers, deep
from tests.api.controllers import Controller, job_name
from tests.api.deep import FIELDS, PODS, STATUS, Field
from tests.promises import promise

# Python 3.11 gives up at 1,000; the API server stores 9,990 in an unknown field, and can't read that any more.
DEPTHS = (500, 1_100, 9_900, 9_988, 9_990)
SERVED = DEPTHS[:-1]
WITHIN = 60.0
_AT_ONCE = 8
# From a job's creation to its first object.
BEGINS_WITHIN = 5.0


@dataclass(frozen=True)
class Python:
    """A Python that runs the controller."""

    program: Sequence[str] = (controllers.PROGRAM,)
    environment: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A plane whose CRDs may be replaced."""
    binaries = programs.ensure(shared.version())
    with plane.running(tmp_path_factory.mktemp("tenants") / "plane", binaries, names=("node-1", "node-2")) as made:
        yield made


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
    own.kubectl("replace", "--filename=-", stdin=as_list(deep.open_crds()))
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

    # Each costs the API server seconds, in which it lists the fields.
    others = [(field, 1_100) for field in FIELDS if field is not PODS]
    refused = post_all(namespace, [*((PODS, levels) for levels in SERVED), *others])

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


def post_all(namespace: Namespace, objects: Sequence[tuple[Field, int]]) -> dict[str, str]:
    """Send them. Return those that are refused, and why."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        said = list(pool.map(lambda one: post(namespace, *one), objects))
    named = {field.object_name(levels): why for (field, levels), why in zip(objects, said, strict=True)}
    return {name: why for name, why in named.items() if why}


def post(namespace: Namespace, field: Field, levels: int) -> str:
    """Send an object with so many levels. Return why it is refused; empty if it is created."""
    path, text = field.at(namespace.name), field.written(namespace.name, levels)
    sent = namespace.kubectl("create", f"--raw={path}", "--filename=-", stdin=text, check=False)
    return "" if sent.returncode == 0 else sent.stderr


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
