"""
What tests on Kubernetes stand on: a cluster, ours or the user's, and what tests do with it.

With MPIRT_TEST_KUBECONFIG the cluster is the user's: nothing is started, no image is built, and MPIRT_TEST_IMAGES
says where the images were pushed to. Otherwise MPIRT_TEST_KUBERNETES may name the minor version of ours.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from testbed import manifests
from testbed.kube import cluster, faults
from testbed.kube.errors import ClusterError
from testbed.kube.kubectl import Kubectl, is_ready
from testbed.kube.layout import Node
from testbed.kube.paths import OWN_CLUSTER
from testbed.kube.wait import until

OWN_IMAGES = "MPIRT_TEST_IMAGES"
OWN_KUBERNETES = "MPIRT_TEST_KUBERNETES"

_READY_SECONDS = 120


@dataclass(frozen=True)
class Ground:
    """The cluster under test. `kubectl` is an administrator's."""

    kubectl: Kubectl
    is_ours: bool
    image_prefix: str = "mpirt-test"
    run: str = field(default_factory=partial(secrets.token_hex, 4))
    """Marks the namespaces of this run: others may be testing on the same cluster."""
    _loaded: set[str] = field(default_factory=set)

    def image(self, name: str) -> str:
        """The reference of a test image; on our own cluster it is built and loaded when it is missing."""
        if self.is_ours and name not in self._loaded:
            cluster.load_images([name])
            self._loaded.add(name)
        return f"{self.image_prefix}/{name}:dev"


def find(*, heal: bool = True) -> Ground:
    """The user's cluster where one is named, else our own: started or healed first, or as it runs."""
    kubeconfig = os.environ.get(OWN_CLUSTER)
    if kubeconfig:
        program = shutil.which("kubectl")
        if program is None:
            raise ClusterError(f"{OWN_CLUSTER} is set, but there is no kubectl on PATH", remedy="install kubectl")
        prefix = os.environ.get(OWN_IMAGES, "mpirt-test")
        return Ground(Kubectl(Path(program), Path(kubeconfig)), is_ours=False, image_prefix=prefix)
    if heal:
        cluster.up(kubernetes=os.environ.get(OWN_KUBERNETES))
    return Ground(cluster.kubectl(), is_ours=True)


@dataclass(frozen=True)
class Namespace:
    """One test's namespace, and the verbs that tests have in common."""

    ground: Ground
    name: str
    folder: Path
    """For the test's own files."""

    @property
    def kubectl(self) -> Kubectl:
        return self.ground.kubectl.inside(self.name)

    def workers(
        self, count: int, image: str, *, name: str = "worker", within: int = _READY_SECONDS, **pod: Any
    ) -> list[str]:
        """
        Start a StatefulSet of workers with their headless Service, and wait until all are Ready.

        `pod` holds fields of the pods' spec that differ from a plain worker's.
        """
        reference = self.ground.image(image)
        self.kubectl.apply(
            manifests.headless_service(name),
            manifests.workers(name, replicas=count, image=reference, **pod),
        )
        self.wait_until_all_ready(f"statefulset/{name}", within=within)
        return [f"{name}-{number}" for number in range(count)]

    def pod(self, name: str, image: str, *, service_account: str = "default", **spec: Any) -> str:
        """Start an idle pod, and wait until it is Ready."""
        reference = self.ground.image(image)
        self.kubectl.apply(manifests.pod(name, image=reference, service_account=service_account, **spec))
        self.wait_until_ready(name)
        return name

    def wait_until_ready(self, pod: str) -> None:
        until(
            lambda: is_ready(self.kubectl.get("pod", pod)),
            within=_READY_SECONDS,
            what=f"{pod} to be Ready",
            instead=self.told_of_pods,
        )

    def wait_until_all_ready(self, owner: str, *, within: float = _READY_SECONDS) -> None:
        """Wait until a StatefulSet or a Deployment has as many Ready pods as it wants."""

        def are_ready() -> bool:
            found = self.kubectl.get(owner)
            return bool(found["status"].get("readyReplicas", 0) == found["spec"]["replicas"])

        until(are_ready, within=within, what=f"all pods of {owner} to be Ready", instead=self.told_of_pods)

    def told_of_pods(self) -> str:
        """What kubectl says of the namespace's pods and of what happened to them."""
        return self.kubectl("get", "pods,events", "--output=wide", check=False).stdout[-4000:]

    def account(self, name: str, *, rules: Sequence[manifests.Manifest]) -> str:
        self.kubectl.apply(*manifests.launcher_account(name, rules=rules))
        return name

    def nodes_of(self, pods: Sequence[str]) -> set[str]:
        return {self.kubectl.get("pod", pod)["spec"]["nodeName"] for pod in pods}


def fresh_namespace(ground: Ground, folder: Path) -> Namespace:
    name = f"mpirt-test-{secrets.token_hex(4)}"
    ground.kubectl.apply(manifests.namespace(name, run=ground.run))
    inside = ground.kubectl.inside(name)
    until(
        lambda: inside.get("serviceaccounts", "--field-selector=metadata.name=default"),
        # Who makes it may hear of the namespace a minute late, where the API server was away before.
        within=120,
        what=f"the default service account of {name}, without which a pod is refused",
    )
    return Namespace(ground, name, folder)


@contextmanager
def passing_namespace(ground: Ground, folder: Path) -> Iterator[Namespace]:
    """A fresh namespace, which is on its way out after the block."""
    fresh = fresh_namespace(ground, folder)
    try:
        yield fresh
    finally:
        # Pods first: the namespace controller retries ever more rarely while some are left.
        fresh.kubectl.delete("statefulsets,pods", grace=1)
        ground.kubectl.delete("namespace", fresh.name)


class PodFaults:
    """What may happen to a pod of a test's own, and to nothing else: others may run beside it."""

    oom = staticmethod(faults.oom)
    force_delete = staticmethod(faults.force_delete)


class Faults(PodFaults):
    """The faults of testbed/kube, for one test; what a test leaves broken is healed when it ends."""

    freeze = staticmethod(faults.freeze)
    thaw = staticmethod(faults.thaw)
    kill = staticmethod(faults.kill)
    start = staticmethod(faults.start)
    drop = staticmethod(faults.drop)
    reset = staticmethod(faults.reset)
    undrop = staticmethod(faults.undrop)

    def node_lost(self, name: str) -> None:
        faults.node_lost(self._node(name))

    def node_back(self, name: str) -> None:
        faults.node_back(self._node(name))

    @staticmethod
    def _node(name: str) -> Node:
        return faults.node_named(name)
