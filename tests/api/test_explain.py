"""What the cluster tells a person about MPIJobs: what each field is for, and which one is wrong."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from testbed.ground import Namespace
from testbed.kube.kubectl import Kubectl
from testbed.kube.wait import until
from tests.api.controllers import Controller
from tests.promises import promise
from tests.unit.controller.badspecs import BAD, bad_job

BAD_LABEL = "mpirt-test-bad"

# Every place that has fields with names of our own.
PLACES = {
    "": {"spec", "status"},
    ".spec": {"elastic", "launcherCreationPolicy", "mpiReplicaSpecs", "runPolicy", "slotsPerWorker"},
    ".spec.elastic": {"maxReplicas", "minReplicas"},
    ".spec.runPolicy": {"backoffLimit", "cleanPodPolicy", "suspend", "ttlSecondsAfterFinished"},
    ".spec.runPolicy.schedulingPolicy": {"minAvailable", "queue"},
    ".spec.mpiReplicaSpecs": {"Launcher", "Worker"},
    ".spec.mpiReplicaSpecs.Launcher": {"replicas", "restartPolicy", "template"},
    ".spec.mpiReplicaSpecs.Worker": {"replicas", "restartPolicy", "template"},
    ".spec.mpiReplicaSpecs.Worker.template": {"metadata", "spec"},
    ".status": {"completionTime", "conditions", "replicaStatuses", "startTime"},
    ".status.conditions": {"message", "reason", "status", "type"},
    ".status.attempts": {"deaths", "end", "launcher", "node", "startTime"},
    ".status.attempts.end": {"code", "container", "how", "message", "pod", "reason", "reportedBy"},
}


# What every object has.
OBVIOUS = {".apiVersion", ".kind", ".metadata"}


@pytest.fixture(scope="module")
def told(controller: Controller) -> dict[str, str]:
    """What kubectl says of every field in those places."""
    kubectl = controller.namespace.kubectl
    # What a CRD brings is published some seconds after it is served.
    until(lambda: explained(kubectl, ".spec"), within=60, what="an explanation of specs")
    found: dict[str, str] = {}
    for place in PLACES:
        found |= explained(kubectl, place)
    return found


@promise("kubectl explain describes every field of an MPIJob.", of="MPIJob")
def test_kubectl_explains_every_field(told: dict[str, str]) -> None:
    asked = {f"{place}.{field}" for place, fields in PLACES.items() for field in fields}

    assert asked - told.keys() == set()
    assert {field for field, words in told.items() if not words.endswith(".")} == OBVIOUS & told.keys()


@promise("Every invalid spec is reported with the path of the field.", of="MPIJob")
def test_the_field_of_every_bad_spec_is_named(jobs: Namespace) -> None:
    """By the API server, which then keeps no job, or by the condition of the job that it keeps."""
    bad = {name_of(number): field for number, (_, _, field, _) in enumerate(BAD)}

    refused = create_bad(jobs)

    kept = bad.keys() - refused.keys()
    until(lambda: not_acted_on(jobs).keys() >= kept, within=120, what=f"{len(kept)} jobs that are not acted on")
    told = {**refused, **not_acted_on(jobs)}
    assert {name: told[name] for name, field in bad.items() if f"{field}: " not in told[name]} == {}
    assert (len(told) >= 50, len(kept) >= 20, len(refused) >= 10) == (True, True, True)
    # A spec may be edited; a name may not.
    assert {bad[name] for name in failed(jobs)} == {"metadata.name"}
    jobs.kubectl("delete", "mpijobs.kubeflow.org", f"--selector={BAD_LABEL}", "--wait=false")


def explained(kubectl: Kubectl, place: str) -> dict[str, str]:
    """What is said of the fields at a place, by their paths, and of the place itself."""
    about, _, fields = kubectl("explain", f"mpijob{place}", check=False).stdout.partition("FIELDS:\n")
    pieces = re.split(r"^ +(\w+)\t<.*$", fields, flags=re.MULTILINE)
    said = zip(pieces[1::2], pieces[2::2], strict=True)
    found = {f"{place}.{name}": " ".join(text.split()) for name, text in said}
    return {f"{place} about": " ".join(about.partition("DESCRIPTION:\n")[2].split()), **found} if found else {}


def name_of(number: int) -> str:
    """The name of a bad job: one that is bad for its name has to keep it."""
    _, change, field, _ = BAD[number]
    return str(bad_job(change)["metadata"]["name"]) if field == "metadata.name" else f"bad-{number}"


def create_bad(namespace: Namespace) -> dict[str, str]:
    """Create them all; what is said of those that the API server refuses."""
    made = []
    for number, (_, change, _, _) in enumerate(BAD):
        body = bad_job(change)
        metadata = {"name": name_of(number), "namespace": namespace.name, "labels": {BAD_LABEL: "yes"}}
        made.append({**body, "metadata": metadata})
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    said = namespace.kubectl("create", "--validate=false", "--filename=-", stdin=everything, check=False).stderr
    pieces = re.split(r'^.*?MPIJob\S* "([^"]+)" is invalid: ', said, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def not_acted_on(namespace: Namespace) -> dict[str, str]:
    """What is said of those that the controller can't act on."""
    return {
        body["metadata"]["name"]: each["message"]
        for body, each in conditions(namespace)
        if (each["type"], each["status"]) == ("Running", "False")
        and each["reason"] in ("MPIJobFailedValidation", "MPIJobInvalidName")
    }


def failed(namespace: Namespace) -> list[str]:
    """Those of which it is said that they have failed."""
    return [
        body["metadata"]["name"]
        for body, each in conditions(namespace)
        if (each["type"], each["status"]) == ("Failed", "True")
    ]


def conditions(namespace: Namespace) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """All conditions of the bad jobs, each with its job."""
    found: list[dict[str, Any]] = namespace.kubectl.get("mpijobs.kubeflow.org", f"--selector={BAD_LABEL}")
    return [(body, each) for body in found for each in body.get("status", {}).get("conditions", [])]
