"""What is deleted or edited by hand comes back as the job says."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.controller.mpijobs import MpiJob, submit
from tests.kube.wait import until

# Five seconds are promised; a machine that is busy with other things gets more.
WITHIN = 30.0
WHOLE_WITHIN = 120.0


@pytest.fixture(scope="module")
def running(controller: Deployed) -> Iterator[MpiJob]:
    """A job whose launcher goes on for as long as the tests need."""
    namespace = controller.namespace
    job = submit(namespace, job_name("heal"), "openmpi4", ("sleep", "1000"))
    job.wait_for("Running")
    yield job
    namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")


OBJECTS = ("configmap/-config", "serviceaccount/-launcher", "role/-launcher", "rolebinding/-launcher", "service/")


def named(job: MpiJob, what: str) -> str:
    kind, _, suffix = what.partition("/")
    return f"{kind}/{job.name}{suffix}"


def is_whole(job: MpiJob) -> bool:
    workers = job.namespace.kubectl("get", f"statefulset/{job.name}-worker", "--output=json", check=False).stdout
    status = json.loads(workers or "{}").get("status", {})
    return status.get("readyReplicas") == 2 and job.holds("Running")


def uid(job: MpiJob, what: str) -> str:
    done = job.namespace.kubectl("get", named(job, what), "--output=jsonpath={.metadata.uid}", check=False)
    return done.stdout


@pytest.mark.parametrize("what", [*OBJECTS, "statefulset/-worker", "job/-launcher"])
def test_what_is_deleted_is_made_again(running: MpiJob, what: str) -> None:
    # A launcher Job comes back when its workers are Ready; those of the test before may still be starting.
    until(lambda: is_whole(running), within=WHOLE_WITHIN, what="a launcher that runs, and all workers Ready")
    before = uid(running, what)
    running.namespace.kubectl("delete", named(running, what), "--wait=false")

    until(lambda: uid(running, what) not in ("", before), within=WITHIN, what=f"another {what}")


@pytest.mark.parametrize(
    ("what", "path", "value"),
    [
        ("configmap/-config", "data", {"hostfile": "elsewhere"}),
        ("role/-launcher", "rules", []),
        ("rolebinding/-launcher", "subjects", []),
        ("service/", "spec.selector", {"app": "another"}),
        ("statefulset/-worker", "spec.replicas", 1),
    ],
)
def test_what_is_edited_becomes_what_it_was(running: MpiJob, what: str, path: str, value: object) -> None:
    running.wait_for("Running")
    before = field(running, what, path)
    change = [{"op": "replace", "path": "/" + path.replace(".", "/"), "value": value}]
    running.namespace.kubectl("patch", named(running, what), "--type=json", f"--patch={json.dumps(change)}")

    until(lambda: field(running, what, path) == before, within=WITHIN, what=f"{path} of {what} as it was")


@pytest.mark.parametrize("count", [3, 2])
def test_a_job_is_scaled_and_its_hostfile_follows(running: MpiJob, count: int) -> None:
    running.namespace.kubectl("scale", "mpijobs.kubeflow.org", running.name, f"--replicas={count}")

    until(lambda: hosts(running) == count, within=WITHIN, what=f"{count} hosts in the hostfile")
    until(
        lambda: field(running, "statefulset/-worker", "spec.replicas") == count,
        within=WITHIN,
        what=f"{count} replicas",
    )


def hosts(job: MpiJob) -> int:
    data = field(job, "configmap/-config", "data")
    assert isinstance(data, dict)
    return len(data["hostfile"].splitlines())


def field(job: MpiJob, what: str, path: str) -> object:
    body: object = job.namespace.kubectl.get(named(job, what))
    for word in path.split("."):
        assert isinstance(body, dict)
        body = body[word]
    return body
