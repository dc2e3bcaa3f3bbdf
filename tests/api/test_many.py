"""Many jobs at once, each of several workers: all of them come to run, and nothing is written when they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.mpijobs import manifest
from testbed.plane.plane import Plane
from testbed.plane.stages import ENDS, NEVER
from tests.api import controllers
from tests.api.controllers import Controller
from tests.promises import promise
from tests.support import sizes
from tests.support.metrics import Rest, parse

JOBS, WORKERS = sizes.of(merge=15, full=50), 8

WITHIN = 240.0
# Mere counts and words in a status may be kept back for ten seconds.
QUIET_SECONDS = 12.0

# What there is of every job.
OBJECTS = ("configmaps", "serviceaccounts", "roles", "rolebindings", "services", "statefulsets", "jobs")


@pytest.fixture(scope="module")
def many(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller that was given all of them at once, and which they all run by."""
    with controllers.passing(plane, cluster, tmp_path_factory.mktemp("many")) as controller:
        controller.namespace.kubectl.apply(*(job(f"many-{number}") for number in range(JOBS)))
        until(lambda: running(controller) == JOBS, within=WITHIN, what=f"{JOBS} jobs that run")
        yield controller


def test_each_has_all_of_its_objects_and_pods(many: Controller) -> None:
    found = Counter(item["kind"] for item in belongings(many))

    assert found == {
        "ConfigMap": JOBS,
        "ServiceAccount": JOBS,
        "Role": JOBS,
        "RoleBinding": JOBS,
        "Service": JOBS,
        "StatefulSet": JOBS,
        "Job": JOBS,
        "Pod": JOBS * (WORKERS + 1),
    }


@promise("A job that runs in peace costs the API server no request but watches.", of="mpirt-controller")
def test_a_controller_of_many_running_jobs_comes_to_rest(many: Controller) -> None:
    rest = Rest(lambda: parse(many.replicas[0].page("/metrics")).requests())

    until(lambda: rest.seconds() > QUIET_SECONDS, within=60, what=f"{QUIET_SECONDS:g} s without a request")

    assert running(many) == JOBS


def job(name: str) -> dict[str, object]:
    return manifest(
        name,
        "none",
        ("true",),
        workers=WORKERS,
        worker={"topologySpreadConstraints": []},
        launcher={},
        container={},
        annotations={"Launcher": {ENDS: NEVER}},
    )


def running(controller: Controller) -> int:
    path = '--output=jsonpath={range .items[*]}{.status.conditions[?(@.type=="Running")].status} {end}'
    return controller.namespace.kubectl("get", "mpijobs.kubeflow.org", path).stdout.split().count("True")


def belongings(controller: Controller) -> list[dict[str, object]]:
    """All that carries the label of a job."""
    kinds = ",".join([*OBJECTS, "pods"])
    found: list[dict[str, object]] = controller.namespace.kubectl.get(
        kinds, "--selector=training.kubeflow.org/job-name"
    )
    return found
