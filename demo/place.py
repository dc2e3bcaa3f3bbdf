"""
Where the demo takes place: on the test cluster, or on the cluster of the current context.

Owns: kubectl with words of its own for the cluster, whatever the current context becomes meanwhile; which images
the demo uses, how they get there, and what is printed where that is the user's task.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from demo import program
from testbed.kube import cluster, paths
from testbed.kube.errors import ClusterError
from testbed.kube.progress import step
from testbed.kube.shell import run

REGISTRY = "registry.example.com/mpirt"

# What each image is, the variable that names it, and the Dockerfile that makes it.
_IMAGES = {
    "controller": ("CONTROLLER_IMAGE", "images/controller/Dockerfile"),
    "runtime": ("RUNTIME_IMAGE", "images/runtime/Dockerfile"),
    "pi": ("PI_IMAGE", "examples/pi/Dockerfile"),
}
_TAG = "demo"
_KUBECTL = "kubectl"
_WITHIN = 60.0


@dataclass(frozen=True)
class Kubectl:
    """A program, the words that name the cluster, and a namespace."""

    program: str
    cluster: tuple[str, ...]
    namespace: str = "default"

    def inside(self, namespace: str) -> Kubectl:
        return replace(self, namespace=namespace)

    def argv(self, *words: str) -> list[str]:
        """The whole command line, for a caller that runs it itself."""
        return [self.program, *self.cluster, f"--namespace={self.namespace}", *words]

    def __call__(
        self, *words: str, check: bool = True, stdin: str | None = None, within: float = _WITHIN
    ) -> subprocess.CompletedProcess[str]:
        return run(*self.argv(*words), check=check, stdin=stdin, timeout=within)

    def get(self, *words: str) -> Any:
        """An object, or a list's items, as parsed JSON."""
        found = json.loads(self("get", *words, "--output=json").stdout)
        return found["items"] if found["kind"].endswith("List") else found


class Unsaid(Exception):
    """Images are not named; says what to do."""


@dataclass(frozen=True, slots=True)
class Images:
    """The references that pods are given."""

    controller: str
    runtime: str
    pi: str


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster that has the images, or can pull them."""

    kubectl: Kubectl
    images: Images


def find(variables: Mapping[str, str]) -> Place:
    """The cluster that is asked for; the test cluster is started and given its images."""
    match variables.get("CLUSTER", ""):
        case "":
            return _test_cluster()
        case "current":
            return _current(variables)
        case other:
            raise ClusterError(f"CLUSTER={other} is no cluster", remedy="leave it away, or say CLUSTER=current")


def _test_cluster() -> Place:
    with step("the test cluster"):
        cluster.up()
    with step("its images"):
        controller, runtime = (each.references[0] for each in cluster.load_images(["controller", "runtime"]))
        pi = program.load()
    kubectl = Kubectl(str(cluster.kubectl().program), (f"--kubeconfig={paths.KUBECONFIG}",))
    return Place(kubectl, Images(controller, runtime, pi))


def _current(variables: Mapping[str, str]) -> Place:
    if shutil.which(_KUBECTL) is None:
        raise ClusterError(f"there is no {_KUBECTL} on PATH", remedy="install it")
    context = run(_KUBECTL, "config", "current-context", check=False).stdout.strip()
    if not context:
        raise ClusterError("kubectl has no current context", remedy="choose one: kubectl config use-context NAME")
    kubectl = Kubectl(_KUBECTL, (f"--context={context}",))
    where = f"context {context}, {_server(kubectl)}"
    images = named_images(variables)
    if images is None:
        raise Unsaid(what_to_push(where))
    print(where, flush=True)
    return Place(kubectl, images)


def _server(kubectl: Kubectl) -> str:
    words = ("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
    return kubectl(*words).stdout.strip()


def named_images(variables: Mapping[str, str]) -> Images | None:
    """The images that the variables name; None if they don't name all three."""
    registry = variables.get("REGISTRY", "").rstrip("/")
    by_registry = {name: f"{registry}/{name}:{_TAG}" if registry else "" for name in _IMAGES}
    named = {name: variables.get(variable, "") or by_registry[name] for name, (variable, _) in _IMAGES.items()}
    return Images(**named) if all(named.values()) else None


def what_to_push(where: str) -> str:
    """What a person has to do before the demo can run on a cluster of their own."""
    references = {f"{REGISTRY}/{name}:{_TAG}": file for name, (_, file) in _IMAGES.items()}
    builds = [f"    docker build --file {file} --tag {reference} ." for reference, file in references.items()]
    pushes = [f"    docker push {reference}" for reference in references]
    variables = [variable for variable, _ in _IMAGES.values()]
    lines = [
        f"The demo would run on {where}.",
        "Its nodes need three images from a registry that they read. With yours in place of the first word:",
        "",
        *builds,
        *pushes,
        f"    make demo CLUSTER=current REGISTRY={REGISTRY}",
        "",
        f"Images that have other names are named by {', '.join(variables[:-1])} and {variables[-1]}.",
    ]
    return "\n".join(lines)
