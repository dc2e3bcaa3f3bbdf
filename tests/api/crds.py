"""
The CRDs of an API server: ours and other people's, which of them are served, and how one is replaced by another.

Owns: the published CRDs of mpi-operator, training-operator and Arena, and the documented way back to one of them.
"""

from __future__ import annotations

import json
import subprocess

from testbed.kube.kubectl import Kubectl
from testbed.kube.paths import PROJECT
from testbed.kube.shell import run
from testbed.kube.wait import until
from tests.support import trainings

CRD = "mpijobs.kubeflow.org"
OURS = str(PROJECT / "crds")
PUBLISHED = {
    "v1": str(PROJECT / "tests/api/published/training-operator.yaml"),
    "v2beta1": str(PROJECT / "tests/api/published/mpi-operator.yaml"),
}
ARENA = str(PROJECT / "tests/api/published/arena.yaml")
# For kubectl, for an informer that waits between two attempts, on a machine that is busy.
NOTICED_WITHIN = 90.0


def remove_crd(kubectl: Kubectl) -> None:
    kubectl("delete", "crd", CRD, "--ignore-not-found", "--timeout=60s")
    until(lambda: not served(kubectl), within=NOTICED_WITHIN, what="an API server without MPIJobs")


def served(kubectl: Kubectl) -> set[str]:
    """The versions of MPIJob that the API server offers now."""
    said = kubectl("get", "--raw", "/apis/kubeflow.org", check=False)
    return {each["version"] for each in json.loads(said.stdout)["versions"]} if said.returncode == 0 else set()


def stored(kubectl: Kubectl) -> list[str]:
    found: list[str] = kubectl.get("crd", CRD)["status"]["storedVersions"]
    return found


def serves_mpijobs(kubectl: Kubectl) -> bool:
    said = kubectl("get", "--raw", "/apis/kubeflow.org/v2beta1", check=False)
    return said.returncode == 0 and any(each["name"] == "mpijobs" for each in json.loads(said.stdout)["resources"])


def serves_trainings(kubectl: Kubectl) -> bool:
    said = kubectl("get", "--raw", trainings.GROUP, check=False)
    return said.returncode == 0 and {"trainingjobs", "scaleins", "scaleouts"} <= {
        each["name"] for each in json.loads(said.stdout)["resources"]
    }


def go_back(kubectl: Kubectl, version: str) -> None:
    """As docs/operations.md says, from our CRD to the one of this version."""
    store_as(kubectl, version)
    done = replace(kubectl, version)
    assert done.returncode == 0, done.stderr
    until(lambda: served(kubectl) == {version}, within=NOTICED_WITHIN, what=f"{version} alone")


def replace(kubectl: Kubectl, version: str) -> subprocess.CompletedProcess[str]:
    """Replace the CRD by that of this version; once more where the API server has just written its status."""
    answers: list[subprocess.CompletedProcess[str]] = []

    def settles() -> bool:
        answers.append(kubectl("replace", f"--filename={PUBLISHED[version]}", check=False))
        return "Error from server (Conflict)" not in answers[-1].stderr

    until(settles, within=NOTICED_WITHIN, what="an answer that is no conflict")
    return answers[-1]


def store_as(kubectl: Kubectl, version: str) -> None:
    """Store all jobs in this version."""
    versions = kubectl.get("crd", CRD)["spec"]["versions"]
    change = [
        {"op": "replace", "path": f"/spec/versions/{number}/storage", "value": each["name"] == version}
        for number, each in enumerate(versions)
    ]
    kubectl("patch", "crd", CRD, "--type=json", f"--patch={json.dumps(change)}")
    all_jobs = kubectl("get", CRD, "--all-namespaces", "--output=json").stdout
    run(str(kubectl.program), f"--kubeconfig={kubectl.kubeconfig}", "replace", "--filename=-", stdin=all_jobs)
    only = json.dumps({"status": {"storedVersions": [version]}})
    kubectl("patch", "crd", CRD, "--subresource=status", "--type=merge", f"--patch={only}")
