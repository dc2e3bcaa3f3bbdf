"""
The controller's processes on a plane: real ones, with the account, rights and variables of deploy/namespaced.

Owns: starting them, and starting one again that has ended, as a kubelet does. Each looks at one namespace, so that
tests don't act on each other's jobs.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed import ground
from testbed.ground import Ground, Namespace
from testbed.kube import kubeconfig
from testbed.kube.kubectl import Manifest
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
from testbed.plane import children, place
from testbed.plane.children import Child
from testbed.plane.plane import Plane
from tests.support import metrics
from tests.support.metrics import Scrape

NAME = "mpirt-controller"

PROGRAM = str(Path(sys.executable).with_name(NAME))
_NO_LEASE = "--no-lease"
WITHOUT_A_LEASE = (PROGRAM, _NO_LEASE)
"""For one replica: it acts as soon as it is started again."""
_READY_WITHIN = 60.0
_GONE_WITHIN = 600.0
_AT_REST_WITHIN = 90.0
# Neighbours listen on 8080 and 9090, on every address.
_PORT = 18080
# What a plane without nodes of its own has no use for.
_NOT_APPLIED = ("Deployment", "PodDisruptionBudget", "NetworkPolicy")


class Replica:
    """One of the Deployment's pods, as a process that is started again when it has ended."""

    def __init__(self, name: str, argv: Sequence[str], environment: dict[str, str], log: Path, url: str) -> None:
        self.name = name
        self.url = url
        self.ends: list[int] = []
        """How its processes ended, by their exit codes; a signal is a negative number."""
        self._argv, self._environment, self._log = argv, environment, log
        self._child: Child | None = None
        self._began = threading.Event()
        self._leaves = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start it, for the first time or after its end."""
        if self._leaves:
            self._leaves = False
            self._began.clear()
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()
        self._began.wait()

    @property
    def process(self) -> Child:
        """The process that there is now."""
        assert self._child is not None
        return self._child

    def page(self, path: str) -> str:
        """What it says at a path, if that is good; empty if it is not, or does not answer."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def metrics(self) -> Scrape:
        return metrics.parse(self.page("/metrics"))

    def problems(self) -> str:
        """Why /readyz says no; empty if it says yes, or does not answer."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                return ""
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError:
            return ""

    def health(self) -> int:
        """The status of /healthz, by which a kubelet judges it; 0 while there is no answer."""
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def log(self) -> list[dict[str, Any]]:
        """All that its processes have said."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    def end(self) -> None:
        """Ask it to end, and don't start it again."""
        self._leaves = True
        self.process.end()
        self._thread.join()

    def _run(self) -> None:
        while not self._leaves:
            self._child = children.start(self._argv, self._log, self._environment)
            self._began.set()
            self.ends.append(self._child.process.wait())


@dataclass(frozen=True)
class Controller:
    """Some replicas, and the namespace that is theirs."""

    namespace: Namespace
    replicas: Sequence[Replica]
    has_lease: bool = True

    def holder(self) -> str:
        """The process that acts; empty if the lease is free, or not there yet."""
        path = "--output=jsonpath={.spec.holderIdentity}"
        return self.namespace.kubectl("get", "lease", NAME, path, "--ignore-not-found").stdout

    def leader(self) -> str:
        """The replica of that process."""
        return self.holder().partition("_")[0]

    def replica(self, name: str) -> Replica:
        return next(each for each in self.replicas if each.name == name)

    def are_ready(self) -> bool:
        return all(each.page("/readyz") for each in self.replicas)

    def wait_until_ready(self) -> None:
        until(self.are_ready, within=_READY_WITHIN, what="all replicas to be ready", instead=self._ends)
        if self.has_lease:
            until(self.leader, within=_READY_WITHIN, what="a controller that leads")

    def wait_for_rest(self, seconds: float) -> None:
        """Wait until all replicas together have asked for nothing for so long."""
        rest = metrics.Rest(lambda: sum(each.metrics().requests() for each in self.replicas))
        until(lambda: rest.seconds() > seconds, within=_AT_REST_WITHIN, what=f"{seconds:g} s without a request")

    def remove(self) -> None:
        """Let its jobs go, then itself, then its namespace."""
        kubectl = self.namespace.kubectl
        kubectl("delete", "mpijobs.kubeflow.org", "--all", "--wait=false")
        for each in self.replicas:
            each.end()
        left = ("delete", "statefulsets,jobs,pods", "--all", "--grace-period=0", "--force", "--wait=false")
        # There may be hundreds, and other tests at the same time.
        kubectl(*left, timeout=_GONE_WITHIN)
        rest = (f"{what}/{self.namespace.name}" for what in ("clusterrolebinding", "clusterrole", "namespace"))
        self.namespace.ground.kubectl("delete", *rest, "--ignore-not-found", "--wait=false")

    def _ends(self) -> dict[str, list[int]]:
        return {each.name: each.ends for each in self.replicas}


def install(plane: Plane, cluster: Ground, folder: Path, **how: Any) -> Controller:
    """Start a controller in a new namespace, as start() does; returns when it is ready and leads."""
    controller = start(plane, cluster, folder, **how)
    controller.wait_until_ready()
    return controller


def start(
    plane: Plane,
    cluster: Ground,
    folder: Path,
    *,
    replicas: int = 1,
    urls: Sequence[str] = (),
    sees_nodes: bool = False,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = (PROGRAM,),
) -> Controller:
    """
    Start a controller in a new namespace, without waiting for it.

    `urls` are the ways by which the replicas reach the API server, where these are not the straight one.
    `sees_nodes`: whether it may read nodes, as the controller for all namespaces may. `environment` has the last
    word on the variables that the Deployment sets; `program` is how a process of it is started.
    """
    namespace = ground.fresh_namespace(cluster, folder)
    deployment = _apply(namespace)
    if sees_nodes:
        _let_see_nodes(namespace)
    token = namespace.kubectl("create", "token", NAME, "--duration=24h").stdout.strip()
    made = []
    for number, name in enumerate(names(replicas)):
        file = kubeconfig.write(
            folder / namespace.name / f"{name}.kubeconfig", plane.site, NAME, token=token,
            url=urls[number] if urls else "",
        )  # fmt: skip
        made.append(
            _replica(plane, name, deployment, namespace.name, file, more=environment or {}, program=program)
        )
    controller = Controller(namespace, made, has_lease=_NO_LEASE not in program)
    for each in made:
        each.start()
    return controller


def names(replicas: int) -> list[str]:
    """What so many replicas are called."""
    return [f"{NAME}-{number}" for number in range(replicas)]


@contextmanager
def passing(plane: Plane, cluster: Ground, folder: Path, **how: Any) -> Iterator[Controller]:
    """A controller that is on its way out after the block."""
    installed = install(plane, cluster, folder, **how)
    try:
        yield installed
    finally:
        installed.remove()


def job_name(prefix: str) -> str:
    """A name that no other job has."""
    return f"{prefix}-{secrets.token_hex(2)}"


def _apply(namespace: Namespace) -> Manifest:
    """Apply deploy/namespaced for this namespace, and return its Deployment."""
    text = namespace.kubectl("kustomize", str(PROJECT / "deploy/namespaced")).stdout
    found = list(yaml.safe_load_all(text.replace("namespace: mpirt\n", f"namespace: {namespace.name}\n")))
    namespace.kubectl.apply(*(each for each in found if each["kind"] not in _NOT_APPLIED))
    [deployment] = [each for each in found if each["kind"] == "Deployment"]
    return dict(deployment)


def _let_see_nodes(namespace: Namespace) -> None:
    """Apply the part of deploy/cluster that is about nodes, under the namespace's name: others do the same now."""
    found = list(yaml.safe_load_all((PROJECT / "deploy/cluster/cluster-role.yaml").read_text()))
    role, binding = [each for each in found if each["metadata"]["name"] == f"{NAME}-nodes"]
    [subject] = binding["subjects"]
    name = {"name": namespace.name}
    role |= {"metadata": name}
    subjects = [subject | {"namespace": namespace.name}]
    binding |= {"metadata": name, "subjects": subjects, "roleRef": binding["roleRef"] | name}
    namespace.ground.kubectl.apply(role, binding)


def _replica(
    plane: Plane,
    name: str,
    deployment: Manifest,
    namespace: str,
    file: Path,
    *,
    more: Mapping[str, str],
    program: Sequence[str],
) -> Replica:
    """The process that the Deployment's container would be."""
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    fields = {"metadata.name": name, "metadata.namespace": namespace}
    environment = {
        each["name"]: each.get("value") or fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container["env"]
    } | dict(more)
    # Of its own, for it needs its port again after each of its deaths.
    address = place.free_address()
    argv = [
        *program,
        *container["args"],
        f"--kubeconfig={file}",
        f"--metrics-address={address}",
        f"--metrics-port={_PORT}",
    ]
    log = file.with_suffix(".log")
    return Replica(name, argv, environment, log, f"http://{address}:{_PORT}")
