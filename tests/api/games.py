"""
How a controller is while somebody plays against it.

Owns: looking at /healthz and /metrics again and again, and what its log says of itself.
"""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import job_labels, object_name, worker_name
from testbed import ground
from testbed.ground import Ground, Namespace
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
from testbed.plane import nodes
from testbed.plane.plane import Plane
from tests.api import controllers, hostile_objects
from tests.api.adversary import SILENT, Adversary
from tests.api.controllers import Controller, Replica
from tests.api.gputasks import gpu_plane, ground_of
from tests.api.straight import Straight
from tests.api.victims import Took, Victim

_EVERY = 0.5
# The one of the Deployment's probe.
_PROBE_TIMEOUT = 5.0
_MEMORY = "process_resident_memory_bytes"


@dataclass
class Seen:
    """What was seen so far."""

    health: Counter[str] = field(default_factory=Counter)
    """How often /healthz answered what."""
    memory: float = 0.0
    """The most bytes that it had."""
    depth: float = 0.0
    """The most jobs that waited for their turn."""


@contextmanager
def looking(replica: Replica) -> Iterator[Seen]:
    """Look until the end of the block."""
    seen, stop = Seen(), threading.Event()
    looker = threading.Thread(target=_look, args=(replica, seen, stop), name="attendance")
    looker.start()
    try:
        yield seen
    finally:
        stop.set()
        looker.join()


def internal_errors(replica: Replica) -> dict[str, list[str]]:
    """What it says of mistakes of its own, and the jobs in which it made them."""
    found: dict[str, list[str]] = {}
    for line in replica.log():
        if "internal error" in str(line):
            jobs = found.setdefault(str(line.get("error")), [])
            jobs.append(str(line.get("job")))
    return found


def _health(replica: Replica) -> str:
    try:
        with urllib.request.urlopen(f"{replica.url}/healthz", timeout=_PROBE_TIMEOUT) as answer:
            return str(answer.read().decode()).strip()
    except urllib.error.HTTPError as error:
        return f"{error.code}: {error.read().decode().strip()}"
    except OSError as error:
        return f"no answer: {error}"


def _look(replica: Replica, seen: Seen, stop: threading.Event) -> None:
    while not stop.wait(_EVERY):
        seen.health[_health(replica)] += 1
        scrape = replica.metrics()
        seen.memory = max(seen.memory, scrape.value(_MEMORY))
        seen.depth = max(seen.depth, scrape.value("mpirt_controller_queue_depth"))


_ADVERSARY = "adversary"
_SILENT_NODE = "silent"
_FIRST = 3
Body = dict[str, Any]

_KINDS = "configmaps,serviceaccounts,services,roles,rolebindings,statefulsets,jobs,pods"
_RBAC = "rbac.authorization.k8s.io"


def put_bystanders(namespace: Namespace, job: str) -> None:
    """Create all that a job of that name would have; there is none of that name in the namespace."""
    name = {kind: object_name(kind, job) for kind in kinds.OWNED if kind in kinds.RESOURCES}
    labels = job_labels(kinds.MPI_JOB, job)
    pod = hostile_objects.pod(worker_name(job, 0), job, "worker")
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    once = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    workers = {
        "replicas": 0,
        "serviceName": job,
        "selector": {"matchLabels": {"app": "bystander"}},
        "template": {**template, "metadata": {"labels": {"app": "bystander"}}},
    }
    role = {"apiGroup": _RBAC, "kind": "Role", "name": name[kinds.ROLE]}

    def made(kind: str, api_version: str, **fields: Any) -> Body:
        return {
            "apiVersion": api_version, "kind": kind, "metadata": {"name": name[kind], "labels": labels}, **fields
        }  # fmt: skip

    namespace.kubectl.apply(
        hostile_objects.config_map(name[kinds.CONFIG_MAP], job),
        made(kinds.SERVICE_ACCOUNT, "v1"),
        made(kinds.SERVICE, "v1", spec={"clusterIP": "None", "selector": {"app": "bystander"}}),
        made(kinds.ROLE, f"{_RBAC}/v1", rules=[]),
        made(kinds.ROLE_BINDING, f"{_RBAC}/v1", subjects=[], roleRef=role),
        made(kinds.STATEFUL_SET, "apps/v1", spec=workers),
        made(kinds.JOB, "batch/v1", spec={"suspend": True, "template": once}),
        pod,
    )


def bystanders(namespace: Namespace) -> dict[str, Body]:
    """All of them as they are, by kind and name, without what Kubernetes says of them."""
    return {
        f"{one['kind']} {one['metadata']['name']}": _lasting(one)
        for one in namespace.kubectl.get(_KINDS)
        if one["metadata"]["name"] not in ("default", "kube-root-ca.crt")
    }


def _lasting(body: Body) -> Body:
    volatile = ("resourceVersion", "managedFields")
    metadata = {name: value for name, value in body["metadata"].items() if name not in volatile}
    nodeless = {name: value for name, value in body.get("spec", {}).items() if name != "nodeName"}
    rest = {name: value for name, value in body.items() if name not in ("metadata", "spec", "status")}
    return {**rest, "metadata": metadata, "spec": nodeless}


@dataclass(frozen=True)
class Rules:
    """How long a game is, and how much an adversary may have."""

    jobs: int
    """The other tenant's."""
    moves: int
    before: int
    """How many of them come before the other tenant's jobs."""
    rate: float
    """His requests in a second."""
    crowd: int
    """How many objects he makes when he makes many."""
    pods: int
    """His quota, as no cluster gives a tenant all of it."""
    within: float
    """What the other tenant's jobs have to end within, so that the game ends."""


@dataclass(frozen=True)
class Game:
    """What it came to."""

    seed: str
    took: Took
    seen: Seen
    answers: Mapping[str, Counter[int]]
    """What the API server has answered to each of the adversary's moves."""
    touched: list[str]
    """Objects of others that have been changed."""


@dataclass(frozen=True)
class Arena:
    """The controller, and the tenant who was there alone before."""

    plane: Plane
    cluster: Ground
    folder: Path
    replica: Replica
    victim: Victim
    alone: Took

    def play(self, seed: str, rules: Rules) -> Game:
        beside, hostile = self._fresh(), self._fresh()
        put_bystanders(beside, "victim-0")
        before = bystanders(beside)
        who = self._adversary(hostile, seed, rules)
        who.open()
        silent = who.path("TrainingJob", SILENT)
        until(
            lambda: self._phase(silent) == "Running", within=rules.within, what="a job whose workers never answer"
        )
        begun = threading.Event()

        def go_on() -> None:
            try:
                for number, _ in enumerate(who.play(rules.moves)):
                    if number == rules.before:
                        begun.set()
            finally:
                begun.set()

        with looking(self.replica) as seen, ThreadPoolExecutor(1) as aside:
            playing = aside.submit(go_on)
            begun.wait()
            took = self.victim.run(hostile.name, rules.jobs, within=rules.within)
            playing.result()
        touched = [*_changed(before, bystanders(beside)), *_moved_out(who)]
        who.leave()
        self.cluster.kubectl("delete", "namespace", hostile.name, beside.name, "--wait=false")
        return Game(seed, took, seen, who.answers, touched)

    def _phase(self, path: str) -> object:
        return self.victim.way.get(path).get("status", {}).get("phase")

    def _fresh(self) -> Namespace:
        return ground.fresh_namespace(self.cluster, self.folder)

    def _adversary(self, namespace: Namespace, seed: str, rules: Rules) -> Adversary:
        everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        namespace.account(_ADVERSARY, rules=[everything])
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": _ADVERSARY}}
        namespace.kubectl.apply(quota | {"spec": {"hard": {"pods": str(rules.pods)}}})
        token = namespace.kubectl("create", "token", _ADVERSARY, "--duration=24h").stdout.strip()
        [other, *_] = self.victim.way.get(self.victim.path("MPIJob"))["items"]
        return Adversary(
            Straight(self.plane, token=token),
            namespace.name,
            Random(seed),
            str(other["metadata"]["uid"]),
            rate=rules.rate,
            crowd=rules.crowd,
            silent={**nodes.tolerating(_SILENT_NODE), "nodeSelector": {"kubernetes.io/hostname": _SILENT_NODE}},
        )


@contextmanager
def arena(folder: Path, rules: Rules) -> Iterator[Arena]:
    """One whose tenant has just had his jobs run alone."""
    with gpu_plane(folder) as plane, _silent_node(plane):
        cluster = ground_of(plane)
        controller = _for_all_namespaces(plane, cluster, folder)
        try:
            victim = Victim(Straight(plane), ground.fresh_namespace(cluster, folder).name)
            # The first jobs of a controller take longer than all after them.
            victim.run("first", _FIRST, within=rules.within)
            alone = victim.run("alone", rules.jobs, within=rules.within)
            [replica] = controller.replicas
            yield Arena(plane, cluster, folder, replica, victim, alone)
        finally:
            for each in controller.replicas:
                each.end()


def _for_all_namespaces(plane: Plane, cluster: Ground, folder: Path) -> Controller:
    """A controller with the rights of deploy/cluster."""
    made = controllers.start(plane, cluster, folder, environment={"MPIRT_NAMESPACE": ""})
    found = list(yaml.safe_load_all((PROJECT / "deploy/cluster/cluster-role.yaml").read_text()))
    for each in found:
        for subject in each.get("subjects", ()):
            subject["namespace"] = made.namespace.name
    cluster.kubectl.apply(*found)
    made.wait_until_ready()
    return made


@contextmanager
def _silent_node(plane: Plane) -> Iterator[None]:
    """A node whose kubelet takes connections, and never says a word."""
    address = plane.site.address
    with socket.create_server((address, 0)) as kubelet:
        nodes.add(plane.kubectl, [_SILENT_NODE], alone=True)
        status = {
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.getsockname()[1]}},
        }
        patch = json.dumps({"status": status})
        plane.kubectl("patch", "node", _SILENT_NODE, "--subresource=status", "--type=merge", f"--patch={patch}")
        yield


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [f"bystander {what}" for what, body in before.items() if after.get(what) != body]


def _moved_out(who: Adversary) -> list[str]:
    """What he had put in a job's way and is not there any more as he has written it."""
    touched = []
    for path, body in who.squatted.items():
        status, answer = who.way.send("GET", path)
        found = json.loads(answer) if status == 200 else {"metadata": {}}
        is_kept = "deletionTimestamp" not in found["metadata"] and "ownerReferences" not in found["metadata"]
        is_same = body["kind"] != kinds.CONFIG_MAP or found.get("data") == body["data"]
        if status != 200 or not is_kept or not is_same:
            touched.append(f"{body['kind']} {body['metadata']['name']} in a job's way")
    return touched
