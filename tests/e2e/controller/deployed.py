"""
The controller, installed from deploy/, and what tests ask of it.

A run installs a controller of its own that looks at one namespace, so that runs which share a cluster don't act on
each other's jobs. The CRD is the cluster's: it is applied under a lock.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from deploy import render
from testbed import ground
from testbed.ground import Ground, Namespace
from testbed.kube import buildcache
from testbed.kube.kubectl import Kubectl
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until

NAME = "mpirt-controller"
LABEL = f"app.kubernetes.io/name={NAME}"


@dataclass(frozen=True)
class Deployed:
    """A controller and the namespace that is its own."""

    namespace: Namespace

    def holder(self) -> str:
        """The process that acts; empty if the lease is free, or not there yet."""
        leases = self.namespace.kubectl.get("leases", f"--field-selector=metadata.name={NAME}")
        return str(leases[0]["spec"].get("holderIdentity") or "") if leases else ""

    def leader(self) -> str:
        """The pod of that process."""
        return self.holder().partition("_")[0]

    def pods(self) -> list[str]:
        """Its pods that are not being deleted."""
        return [pod["metadata"]["name"] for pod in self.all_pods() if "deletionTimestamp" not in pod["metadata"]]

    def all_pods(self) -> list[dict[str, Any]]:
        """Its pods, those that are being deleted, too."""
        found: list[dict[str, Any]] = self.namespace.kubectl.get("pods", f"--selector={LABEL}")
        return found

    def log(self) -> list[dict[str, Any]]:
        """All lines of all its pods."""
        lines: list[dict[str, Any]] = []
        for pod in self.pods():
            said = self.namespace.kubectl("logs", pod, "--tail=-1").stdout
            lines += [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        return lines

    def remove(self) -> None:
        """
        Let it go, and its namespace with all jobs in it.

        Jobs and pods first: the namespace controller looks ever more rarely while some are left.
        """
        kubectl = self.namespace.kubectl
        kubectl.delete("mpijobs.kubeflow.org")
        kubectl.delete("deployments,statefulsets,jobs,pods", grace=1)
        everything = [
            f"{kind}/{self.namespace.name}" for kind in ("clusterrolebinding", "clusterrole", "namespace")
        ]
        self.namespace.ground.kubectl("delete", *everything, "--ignore-not-found", "--wait=false")


def install(
    cluster: Ground, folder: Path, *, environment: Mapping[str, str] | None = None, sees_nodes: bool = False
) -> Deployed:
    """
    Install the CRD and a controller in a new namespace; returns when both replicas are Ready.

    `environment` holds variables that its processes get besides. `sees_nodes`: whether it may list and watch them.
    """
    apply_crds(cluster)
    namespace = ground.fresh_namespace(cluster, folder)
    if sees_nodes:
        _let_see_nodes(namespace)
    namespace.kubectl.apply(*yaml.safe_load_all(_manifests(cluster, namespace.name, environment or {})))
    namespace.wait_until_all_ready(f"deployment/{NAME}")
    deployed = Deployed(namespace)
    until(deployed.leader, within=30, what="a controller that leads")
    return deployed


def apply_crds(cluster: Ground) -> None:
    """Apply the project's CRDs, if this process has not yet or they have gone; returns when they are served."""
    names = _applied(cluster.kubectl)
    if not all(cluster.kubectl.get("crds", f"--field-selector=metadata.name={name}") for name in names):
        _applied.cache_clear()
        _applied(cluster.kubectl)


@cache
def _applied(kubectl: Kubectl) -> tuple[str, ...]:
    """Their names. kubectl needs a second of a processor for them."""
    with buildcache.exclusive(Path(tempfile.gettempdir()) / "mpirt-crds.lock"):
        said = kubectl("apply", "--kustomize", str(PROJECT / "crds"), "--output=name").stdout.split()
    kubectl("wait", "--for=condition=Established", "--timeout=30s", *said)
    return tuple(each.partition("/")[2] for each in said)


@contextmanager
def passing(cluster: Ground, folder: Path, *, sees_nodes: bool = False) -> Iterator[Deployed]:
    """A controller that is on its way out after the block."""
    installed = install(cluster, folder, sees_nodes=sees_nodes)
    yield installed
    installed.remove()


def job_name(prefix: str) -> str:
    """A name that no other job has."""
    return f"{prefix}-{secrets.token_hex(2)}"


def _let_see_nodes(namespace: Namespace) -> None:
    """No other account: what others may do is looked at by tests beside this one."""
    create, name = partial(namespace.ground.kubectl, "create"), namespace.name
    create("clusterrole", name, "--verb=list,watch", "--resource=nodes")
    create("clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={name}:{NAME}")


def _manifests(cluster: Ground, namespace: str, environment: Mapping[str, str]) -> str:
    """deploy/namespaced for this namespace, with this run's images."""
    images = render.Images(controller=cluster.image("controller"), runtime=cluster.image("runtime"))
    text = render.rendered(render.FORMS["namespaced"], images, namespace)
    first = "- name: MPIRT_RUNTIME_IMAGE\n"
    assert first in text
    more = [f"- {json.dumps({'name': name, 'value': value})}\n" for name, value in environment.items()]
    return text.replace(first, f"{' ' * 12}".join([*more, first]))


SYSTEM = "mpirt-system"


@contextmanager
def everywhere(cluster: Ground, folder: Path) -> Iterator[None]:
    """
    The file of `make install.yaml` with this run's images. It is removed after the block, the CRDs stay.

    Meanwhile two controllers see the jobs of the run's own namespace.
    """
    images = render.Images(controller=cluster.image("controller"), runtime=cluster.image("runtime"))
    file = folder / "install.yaml"
    file.write_text(render.rendered(render.FORMS["cluster"], images, SYSTEM), encoding="utf-8")
    kubectl = cluster.kubectl.inside(SYSTEM)
    try:
        kubectl("apply", "--filename", str(file))
        kubectl("rollout", "status", "deployment/mpirt-controller", "--timeout=150s", timeout=180)
        yield
    finally:
        # Who removes a namespace may have others to remove first, and no controller may act meanwhile.
        kubectl("scale", "deployment/mpirt-controller", "--replicas=0", check=False)
        until(lambda: kubectl.get("pods") == [], within=90, what="the controllers of all namespaces to be gone")
        # The next installation must not find it on its way out.
        kubectl("delete", "namespace", SYSTEM, "--timeout=120s", timeout=150)
        kubectl("delete", "clusterrole,clusterrolebinding", "mpirt-controller")
