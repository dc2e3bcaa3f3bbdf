"""
The controller of deploy/namespaced, in a namespace of the demo's own.

Owns: whether it may be installed beside what is there, and its installation and removal.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from demo.place import Images, Kubectl, Place
from deploy import render
from testbed.kube.errors import ClusterError
from testbed.kube.paths import PROJECT
from testbed.kube.progress import step
from testbed.kube.wait import until

CRD = "mpijobs.kubeflow.org"
NAME = "mpirt-controller"
_READY_WITHIN = 180
# Whoever else acts on MPIJobs, by the names that their own manifests give them.
_OTHERS = ("mpi-operator", "training-operator")


@contextmanager
def installed(place: Place, *, keep: bool) -> Iterator[Kubectl]:
    """A controller in a fresh namespace, which is removed after the block unless it is to be kept."""
    refuse_beside(place.kubectl.get("deployments", "--all-namespaces"))
    _ensure_crd(place.kubectl)
    name = f"mpirt-demo-{secrets.token_hex(2)}"
    place.kubectl("create", "namespace", name)
    inside = place.kubectl.inside(name)
    try:
        with step(f"the controller, in namespace {name}"):
            _install(inside, place.images)
        yield inside
    finally:
        _leave(place.kubectl, name, keep=keep)


def refuse_beside(deployments: Sequence[Mapping[str, Any]]) -> None:
    """Raise if another controller acts on the MPIJobs of all namespaces: two would act on the demo's job."""
    found = [each for each in deployments if _acts_everywhere(each)]
    if found:
        metadata = found[0]["metadata"]
        raise ClusterError(
            f"{metadata['name']} in namespace {metadata['namespace']} acts on the MPIJobs of all namespaces; two "
            "controllers must not act on the same job",
            remedy="have it run the job of examples/pi, with `image:` in pi.yaml naming yours: "
            "kubectl apply -f examples/pi/pi.yaml",
        )


def _acts_everywhere(deployment: Mapping[str, Any]) -> bool:
    metadata = deployment["metadata"]
    names = {metadata["name"], *(metadata.get("labels") or {}).values()}
    if not names & {NAME, *_OTHERS} or deployment["spec"].get("replicas") == 0:
        return False
    return not any(_is_restricted(each) for each in deployment["spec"]["template"]["spec"]["containers"])


def _is_restricted(container: Mapping[str, Any]) -> bool:
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    variables = {each["name"] for each in container.get("env") or []}
    return "MPIRT_NAMESPACE" in variables or any(word.startswith("--namespace") for word in words)


def _ensure_crd(kubectl: Kubectl) -> None:
    """An existing CRD stays unchanged."""
    if kubectl("get", "crd", CRD, check=False).returncode != 0:
        with step(f"the CRD {CRD}, which stays"):
            kubectl("apply", "--kustomize", str(PROJECT / "crds"))
            until(
                lambda: kubectl("get", CRD, check=False).returncode == 0,
                within=30,
                what="the API server to serve MPIJobs",
            )


def _install(inside: Kubectl, images: Images) -> None:
    named = render.Images(controller=images.controller, runtime=images.runtime)
    inside("apply", "--filename=-", stdin=render.rendered(render.FORMS["namespaced"], named, inside.namespace))
    said = inside(
        "rollout",
        "status",
        f"deployment/{NAME}",
        f"--timeout={_READY_WITHIN}s",
        check=False,
        within=_READY_WITHIN + 30,
    )
    if said.returncode != 0:
        pods = inside("get", "pods", check=False).stdout
        raise ClusterError(f"the controller was not Ready within {_READY_WITHIN} s:\n{pods}{_troubles(inside)}")


def _troubles(inside: Kubectl) -> str:
    """What the pods' containers wait for, in the kubelet's words."""
    waiting = [
        status["state"]["waiting"]
        for pod in inside.get("pods")
        for status in pod.get("status", {}).get("containerStatuses", [])
        if "waiting" in status["state"]
    ]
    return "\n".join(sorted({f"{each['reason']}: {each.get('message', '')}" for each in waiting}))


def _leave(kubectl: Kubectl, name: str, *, keep: bool) -> None:
    removal = f"To remove it: {shlex.join(kubectl.argv('delete', 'namespace', name))}"
    if keep:
        looking = shlex.join(kubectl.inside(name).argv("get", "mpijobs,pods"))
        print(f"\nNamespace {name} stays with all that is in it.\nTo look at it: {looking}\n{removal}", flush=True)
        return
    done = kubectl("delete", "namespace", name, "--wait=false", check=False)
    if done.returncode == 0:
        print(f"\nNamespace {name} is being removed.", flush=True)
    else:
        print(f"\nNamespace {name} could not be removed: {done.stderr.strip()}\n{removal}", flush=True)
