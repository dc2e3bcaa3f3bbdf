"""
mpirt's controller beside mpi-operator, on the same cluster, with the same image and the same jobs.

Both run on this machine, as processes, by way of the same proxy, which counts what they write. First each runs
small jobs in turn, on real nodes. Then each gets many jobs at once, whose pods are on a node that KWOK plays, so
that there may be any number of them. mpi-operator gets them twice: with the limits of requests that it has by
default, and without limits that matter.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import manyjobs, restarts
from benchmarks.frame import Row, Unmeasured, in_turn
from benchmarks.manyjobs import IDLE_SECONDS, KINDS, Side
from benchmarks.place import fresh_ground
from testbed import ground
from testbed.ground import Ground
from testbed.kube import cluster as kube
from testbed.kube import controlplane, kubeconfig, pki
from testbed.kube.programs.modules import parse_version
from testbed.kube.progress import step
from testbed.mpijobs import submit
from testbed.neighbours import mpi_operator
from testbed.plane import children, kwok, nodes
from testbed.plane.plane import Plane
from tests.api import controllers
from tests.api.apiproxy import ApiProxy
from tests.e2e.controller import deployed
from tests.support.metrics import parse

OURS, THEIRS = "mpirt-controller", "mpi-operator"
JOBS, WORKERS = 200, 2

_IMAGE = "openmpi4-sshd"
_NODE = "mpirt-benchmark"
_MOUNTS_IMAGES = (1, 35)
_GONE_WITHIN = 600.0
_MOMENT = re.compile(r"^\d+\.\d+$", re.MULTILINE)
# By default it looks at ten changes of jobs a second, after a hundred.
_UNLIMITED = (*mpi_operator.FAST, "-controller-queue-rate-limit=1000", "-controller-queue-burst=2000")
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_MANY = {
    "made": "all objects exist, s",
    "running": "all run, s",
    "many_writes": "writes of the controller for each",
    "all_writes": "writes of all components for each",
    "cpu": "CPU time, s",
    "idle_cpu": f"CPU time in {IDLE_SECONDS:g} s of peace, s",
    "memory": "memory at most, MB",
}
# Questions that are asked by POST.
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


@dataclass(frozen=True)
class _Contender:
    """One of the two, as it runs, and what is different in its jobs."""

    side: Side
    worker: Sequence[str]
    """What a worker runs."""
    begins: Sequence[str] = ()
    """What stands before mpirun."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def first_output(self) -> float:
        """Run a small job to its end; returns after how many seconds its first rank wrote something."""
        namespace, name = self.side.namespace, f"small-{next(self.numbers)}"
        worker = {
            "containers": [{"name": "mpi", "image": namespace.ground.image(_IMAGE), "command": [*self.worker]}]
        }
        command = (*self.begins, "mpirun", "--allow-run-as-root", "-n", str(WORKERS), "date", "+%s.%N")
        policy = {"cleanPodPolicy": "Running"}
        # A rank prints the time of the same machine.
        began = time.time()
        small = submit(namespace, name, _IMAGE, command, workers=WORKERS, worker=worker, runPolicy=policy)
        small.wait_for_end()
        # Open MPI has something to say of its own at times.
        moments = _MOMENT.findall("\n".join(small.log()))
        namespace.kubectl("delete", "mpijobs.kubeflow.org", name, "--cascade=foreground", timeout=_GONE_WITHIN)
        if not moments:
            raise Unmeasured(f"no rank of {name} has written anything")
        return min(map(float, moments)) - began

    def restart(self) -> float:
        """Kill a rank of a job; returns after how many seconds all run again."""
        name = f"again-{next(self.numbers)}"
        return restarts.seconds(self.side.namespace, name, _IMAGE, self.worker, self.begins)


def measure(runs: int, kills: int, jobs: int, workers: int, volume: str) -> list[Row]:
    """All rows of the table."""
    with fresh_ground() as (cluster, folder), ExitStack() as stack:
        if not cluster.is_ours:
            raise Unmeasured("this needs the test cluster: unset MPIRT_TEST_KUBECONFIG")
        deployed.apply_crds(cluster)
        proxy = ApiProxy(controlplane.SITE)
        proxy.start()
        stack.callback(proxy.stop)
        stack.enter_context(_played_node(cluster, folder))
        with step(OURS):
            ours = stack.enter_context(_ours(cluster, folder, proxy, volume))
        with _theirs(cluster, folder, proxy, _UNLIMITED) as theirs:
            rows = [*_small(ours, theirs, runs), *_restarted(ours, theirs, kills)]
            fast = _many(theirs.side, jobs, workers)
        with _theirs(cluster, folder, proxy, ()) as theirs:
            shipped = _many(theirs.side, jobs, workers)
        found = _many(ours.side, jobs, workers)
    rows += [Row(f"{key}_ratio", f"{jobs} jobs: {what}", [found[key]], [fast[key]]) for key, what in _MANY.items()]
    return rows + [
        Row(f"shipped_{key}_ratio", f"{jobs} jobs, theirs as shipped: {_MANY[key]}", [found[key]], [shipped[key]])
        for key in ("made", "running")
    ]


def _small(ours: _Contender, theirs: _Contender, runs: int) -> list[Row]:
    """Small jobs in turn, each run to its end."""
    with step(f"{runs} small jobs of each"):
        in_turn(1, ours.first_output, theirs.first_output)
        before = [each.side.writes_at_rest() for each in (ours, theirs)]
        seconds = in_turn(runs, ours.first_output, theirs.first_output)
        after = [each.side.writes_at_rest() for each in (ours, theirs)]
    first, second = ([(now - then) / runs] for now, then in zip(after, before, strict=True))
    return [
        Row("first_output_ratio", "apply to the first rank's output, s", *seconds),
        Row("writes_ratio", "writes of the controller for a small job, to its end", first, second),
    ]


def _restarted(ours: _Contender, theirs: _Contender, kills: int) -> list[Row]:
    """Jobs in turn, of which a rank is killed."""
    if not kills:
        return []
    with step(f"{kills} ranks killed of each"):
        seconds = in_turn(kills, ours.restart, theirs.restart)
    what = f"a rank killed to all {restarts.WORKERS} running, s"
    return [Row("restart_ratio", what, *seconds)]


def _writes_of(proxy: ApiProxy, door: str) -> Callable[[], int]:
    """Count what was written by that door, without the lease."""
    return lambda: sum(
        one.sender == door and one.is_good and "/namespaces/" in one.path and one.kind != "leases"
        for one in proxy.writes()
    )


@contextmanager
def _theirs(cluster: Ground, folder: Path, proxy: ApiProxy, options: Sequence[str]) -> Iterator[_Contender]:
    namespace = ground.fresh_namespace(cluster, folder)
    own = folder / namespace.name
    own.mkdir()
    door = kubeconfig.write(own / "admin.kubeconfig", controlplane.SITE, pki.ADMIN, url=proxy.open(namespace.name))
    with mpi_operator.mpi_operator(namespace, own, kubeconfig=door, options=options) as child:
        kinds, writes = ("ConfigMap", "Secret", "Service", "Job"), _writes_of(proxy, namespace.name)
        side = Side(THEIRS, namespace, child.process.pid, kinds, writes)
        yield _Contender(side, worker=("serve-ssh",), begins=("with-hosts",))


@contextmanager
def _ours(cluster: Ground, folder: Path, proxy: ApiProxy, volume: str) -> Iterator[_Contender]:
    [name] = controllers.names(1)
    installed = controllers.install(
        Plane(controlplane.SITE, kube.binaries()),
        cluster,
        folder,
        urls=[proxy.open(name)],
        sees_nodes=True,
        environment={"MPIRT_RUNTIME_IMAGE": cluster.image("runtime"), "MPIRT_RUNTIME_VOLUME": volume},
    )
    try:
        [replica] = installed.replicas
        side = Side(OURS, installed.namespace, replica.process.process.pid, KINDS, _writes_of(proxy, name))
        yield _Contender(side, worker=("sleep", "infinity"))
    finally:
        installed.remove()


def usual_volume() -> str:
    """What the controller would choose if there were no played node."""
    return "image" if parse_version(kube.versions()["kubernetes"]) >= _MOUNTS_IMAGES else "copy"


@contextmanager
def _played_node(cluster: Ground, folder: Path) -> Iterator[None]:
    """A node for any number of pods that exist in the API server alone."""
    settings = folder / "kwok.yaml"
    kwok.write_settings(settings)
    argv = kwok.command(kube.binaries().kwok, cluster.kubectl.kubeconfig, settings)
    child = children.start(argv, folder / "kwok.log")
    try:
        nodes.add(cluster.kubectl, [_NODE], pods=100_000, alone=True)
        yield
    finally:
        nodes.remove(cluster.kubectl, _NODE)
        child.end()


def _many(side: Side, jobs: int, workers: int) -> dict[str, float]:
    there = {"nodeSelector": {"kubernetes.io/hostname": _NODE}, **nodes.tolerating(_NODE)}
    before, writes = manyjobs.counts(side), _all_writes(side)
    found = manyjobs.many(side, before, manyjobs.jobs_of(jobs, workers, there), workers)
    writes = _all_writes(side) - writes
    manyjobs.remove_all(side.namespace, before)
    each = {"many_writes": found["writes"] / jobs, "all_writes": writes / jobs}
    return {**found, **each, "memory": manyjobs.peak_megabytes(side.pid)}


def _all_writes(side: Side) -> int:
    """The writes that the API server has been asked for by all components, leases aside."""
    page = side.namespace.kubectl("get", "--raw", "/metrics").stdout
    lines = [line for line in page.splitlines() if line.startswith("apiserver_request_total{")]
    found = parse("\n".join(["# TYPE apiserver_request counter", *lines, ""]))
    return int(
        sum(
            each.value
            for each in found.samples
            if each.labels["verb"] in _WRITES
            and each.labels["resource"] != "leases"
            and each.labels["group"] not in _REVIEWS
        )
    )
