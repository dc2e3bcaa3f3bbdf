"""What the cluster tells a person about MPIJobs: what each field is for, and which one is wrong."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.e2e.ground import Namespace
from tests.kube.wait import until
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
}


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_kubectl_explains_every_field(jobs: Namespace, version: str) -> None:
    # What a CRD brings is published some seconds after it is served.
    until(lambda: "slotsPerWorker" in explained(jobs, ".spec", version), within=60, what="an explanation of specs")

    told = {place: explained(jobs, place, version) for place in PLACES}

    assert {
        place: fields - told[place].keys() for place, fields in PLACES.items() if fields - told[place].keys()
    } == {}
    assert [
        f"{place}.{field}"
        for place, fields in told.items()
        for field, words in fields.items()
        if not words.endswith(".") and f"{place}.{field}" not in (".apiVersion", ".kind", ".metadata")
    ] == []


ANSWERS = {
    "what must be in an image": ("", "images need nothing but /bin/sh and the MPI"),
    "when the launcher starts": (".spec.launcherCreationPolicy", "WaitForWorkersReady, the default: when all"),
    "which MPIs there are": (".spec.mpiImplementation", "the others are Intel and MPICH"),
    "what is cleaned up": (".spec.runPolicy.cleanPodPolicy", "Running: the workers. All: the launcher's, too"),
    "what a TTL removes": (".spec.runPolicy.ttlSecondsAfterFinished", "after its end the job is deleted"),
    "how often it is tried": (".spec.runPolicy.backoffLimit", "Default is 6."),
    "whether ssh is needed": (".spec.sshAuthMountPath", "Nothing here needs ssh."),
    "what is not honoured": (".spec.mpiReplicaSpecs.Worker.restartPolicy", "told by an event and not kept"),
    "what a template may hold": (".spec.mpiReplicaSpecs.Worker.template.spec", "see: kubectl explain pod.spec"),
    "what holds now": (".status.conditions", "The last one is what holds now."),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_what_a_person_would_ask_is_answered(jobs: Namespace, question: str) -> None:
    place, answer = ANSWERS[question]

    said = jobs.kubectl("explain", f"mpijob{place}").stdout

    assert answer in " ".join(said.split())


def test_of_every_bad_spec_the_field_is_named(jobs: Namespace) -> None:
    """By the API server, which then keeps no job, or by the condition of the job that it keeps."""
    bad = {name_of(number): field for number, (_, _, field, _) in enumerate(BAD)}

    refused = create_bad(jobs)

    kept = bad.keys() - refused.keys()
    until(lambda: failed(jobs).keys() >= kept, within=120, what=f"{len(kept)} jobs to have failed")
    told = {**refused, **failed(jobs)}
    assert {name: told[name] for name, field in bad.items() if f"{field}: " not in told[name]} == {}
    assert (len(told) >= 40, len(kept) >= 20, len(refused) >= 10) == (True, True, True)
    jobs.kubectl("delete", "mpijobs.kubeflow.org", f"--selector={BAD_LABEL}", "--wait=false")


def explained(namespace: Namespace, place: str, version: str) -> dict[str, str]:
    """The fields at a place and what is said of each."""
    words = ("explain", f"mpijob{place}", f"--api-version=kubeflow.org/{version}")
    said = namespace.kubectl(*words, check=False).stdout.partition("FIELDS:\n")[2]
    pieces = re.split(r"^ +(\w+)\t<.*$", said, flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}


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


def failed(namespace: Namespace) -> dict[str, str]:
    """What is said of those that the controller can't act on."""
    found: list[dict[str, Any]] = namespace.kubectl.get("mpijobs.kubeflow.org", f"--selector={BAD_LABEL}")
    return {
        body["metadata"]["name"]: each["message"]
        for body in found
        for each in body.get("status", {}).get("conditions", [])
        if (each["type"], each["status"], each["reason"]) == ("Failed", "True", "MPIJobFailedValidation")
    }
