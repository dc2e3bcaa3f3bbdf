"""
mpirt's controller beside mpi-operator, on the same cluster, with the same image and the same jobs.

Both run on this machine, as processes, by way of the same proxy, which counts what they write. First each runs
small jobs in turn, on real nodes. Then each gets many jobs at once, whose pods are on a node that KWOK plays, so
that there may be any number of them. mpi-operator gets them twice: with the limits of requests that it has by
default, and without limits that matter.
"""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import manyjobs, pairs, place
from benchmarks.comparison import By, Comparison, Quantity
from benchmarks.crowd import cpu_seconds
from benchmarks.measure import Unmeasured
from benchmarks.memory import peak_bytes
from testbed import ground
from testbed.ground import Ground, Namespace
from testbed.kube import cluster as kube
from testbed.kube import controlplane, kubeconfig, pki
from testbed.kube.progress import step
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.neighbours import mpi_operator
from testbed.plane import children, kwok, nodes
from testbed.plane.plane import Plane
from tests.api import controllers
from tests.api.apiproxy import ApiProxy
from tests.e2e.controller import deployed
from tests.support.metrics import Rest, parse

OURS, THEIRS = "mpirt-controller", "mpi-operator"
JOBS, WORKERS = 200, 2

_IMAGE = "openmpi4-sshd"
_NODE = "mpirt-benchmark"
_IDLE_SECONDS = 60.0
# Longer than mere counts in a status may be kept back.
_AT_REST = 12.0
_WITHIN = 600.0
_JOB_WITHIN = 180.0
_MB = 1e6

_MOMENT = re.compile(r"^\d+\.\d+$", re.MULTILINE)

_SHIPPED: tuple[str, ...] = ()
# By default it looks at ten changes of jobs a second, after a hundred.
_UNLIMITED = (*mpi_operator.FAST, "-controller-queue-rate-limit=1000", "-controller-queue-burst=2000")
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Questions that are asked by POST.
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})

_FIRST_OUTPUT = Quantity("first_output_ratio", "apply to the first rank's output", "s", 1.0, By.PAIRS)
_WRITES_OF_JOB = Quantity("writes_ratio", "the controller for a small job, to its end", "writes", 1.0, By.MEDIANS)


@dataclass(frozen=True)
class Contender:
    """One of the two, as it runs, and what is different in its jobs."""

    name: str
    door: str
    """By which it is told from others at the proxy."""
    namespace: Namespace
    pid: int
    proxy: ApiProxy
    kinds: Sequence[str]
    """What a job is made of, besides its pods: one of each."""
    worker: Sequence[str]
    """What a worker runs."""
    begins: Sequence[str] = ()
    """What stands before mpirun."""

    def writes(self) -> int:
        """Return how many it has made so far, without those of its lease."""
        return sum(
            one.sender == self.door and one.is_good and "/namespaces/" in one.path and one.kind != "leases"
            for one in self.proxy.writes()
        )

    def written_at_rest(self) -> int:
        """Wait until it has written nothing for a while; returns the same."""
        rest = Rest(self.writes)
        until(lambda: rest.seconds() > _AT_REST, within=_WITHIN, what=f"{self.name} to come to rest")
        return self.writes()


@dataclass(frozen=True, slots=True)
class Many:
    """What many jobs took and cost."""

    made_seconds: float
    running_seconds: float
    writes: float
    """Of the contender, for each job."""
    all_writes: float
    """Of everybody, for each job."""
    cpu_seconds: float
    idle_cpu_seconds: float
    peak_megabytes: float


@contextmanager
def contest() -> Iterator[Contest]:
    """Both of them in namespaces of their own, on our own cluster."""
    with place.fresh_ground() as (cluster, folder), ExitStack() as stack:
        if not cluster.is_ours:
            raise Unmeasured("this needs the test cluster: unset MPIRT_TEST_KUBECONFIG")
        deployed.apply_crds(cluster)
        proxy = ApiProxy(controlplane.SITE)
        proxy.start()
        stack.callback(proxy.stop)
        stack.enter_context(_played_node(cluster, folder))
        with step(OURS):
            ours = stack.enter_context(_ours(cluster, folder, proxy))
        yield Contest(cluster, folder, proxy, ours)


@dataclass(frozen=True)
class Contest:
    """The ground for both, and ours, which runs all the time."""

    cluster: Ground
    folder: Path
    proxy: ApiProxy
    ours: Contender

    def measure(self, runs: int, jobs: int, workers: int) -> list[Comparison]:
        """Return all rows of the table."""
        with self._theirs(_UNLIMITED) as theirs:
            small = self._small(theirs, runs)
            fast = _many(theirs, jobs, workers)
        with self._theirs(_SHIPPED) as theirs:
            shipped = _many(theirs, jobs, workers)
        ours = _many(self.ours, jobs, workers)
        limited = _times(ours, shipped, jobs, key="shipped_", how="theirs as shipped")
        return [*small, *_compared(ours, fast, jobs), *limited]

    def _small(self, theirs: Contender, runs: int) -> list[Comparison]:
        """Small jobs in turn, each run to its end."""
        names = iter(range(1_000_000))

        def run(contender: Contender) -> Callable[[], float]:
            return lambda: _first_output(contender, f"small-{next(names)}")

        with step(f"{runs} small jobs of each"):
            pairs.in_turn(1, run(self.ours), run(theirs))
            before = [each.written_at_rest() for each in (self.ours, theirs)]
            seconds = pairs.in_turn(runs, run(self.ours), run(theirs))
            after = [each.written_at_rest() for each in (self.ours, theirs)]
        ours, other = ([(now - then) / runs] for now, then in zip(after, before, strict=True))
        return [Comparison(_FIRST_OUTPUT, *seconds), Comparison(_WRITES_OF_JOB, ours, other)]

    @contextmanager
    def _theirs(self, options: Sequence[str]) -> Iterator[Contender]:
        namespace = ground.fresh_namespace(self.cluster, self.folder)
        own = self.folder / namespace.name
        own.mkdir()
        door = kubeconfig.write(
            own / "admin.kubeconfig", controlplane.SITE, pki.ADMIN, url=self.proxy.open(namespace.name)
        )
        with mpi_operator.mpi_operator(namespace, own, kubeconfig=door, options=options) as child:
            yield Contender(
                THEIRS,
                namespace.name,
                namespace,
                child.process.pid,
                self.proxy,
                ("ConfigMap", "Secret", "Service", "Job"),
                worker=("serve-ssh",),
                begins=("with-hosts",),
            )


@contextmanager
def _ours(cluster: Ground, folder: Path, proxy: ApiProxy) -> Iterator[Contender]:
    [name] = controllers.names(1)
    installed = controllers.install(
        Plane(controlplane.SITE, kube.binaries()),
        cluster,
        folder,
        urls=[proxy.open(name)],
        environment={"MPIRT_RUNTIME_IMAGE": cluster.image("runtime")},
    )
    try:
        [replica] = installed.replicas
        yield Contender(
            OURS,
            name,
            installed.namespace,
            replica.process.process.pid,
            proxy,
            ("ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Service", "StatefulSet", "Job"),
            worker=("sleep", "infinity"),
        )
    finally:
        installed.remove()


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


def _first_output(contender: Contender, name: str) -> float:
    """Run a job to its end; returns after how many seconds its first rank said something."""
    image = contender.namespace.ground.image(_IMAGE)
    worker = {"containers": [{"name": "mpi", "image": image, "command": list(contender.worker)}]}
    command = (*contender.begins, "mpirun", "--allow-run-as-root", "-n", str(WORKERS), "date", "+%s.%N")
    policy = {"cleanPodPolicy": "Running"}
    # A rank tells the time of the same machine.
    began = time.time()
    job = submit(contender.namespace, name, _IMAGE, command, workers=WORKERS, worker=worker, runPolicy=policy)
    _wait_for_end(job)
    # Open MPI has something to say of its own at times.
    said = _MOMENT.findall("\n".join(job.log()))
    job.namespace.kubectl("delete", "mpijobs.kubeflow.org", name, "--cascade=foreground", timeout=_WITHIN)
    if not said:
        raise Unmeasured(f"no rank of {name} has said something")
    return min(map(float, said)) - began


def _wait_for_end(job: MpiJob) -> None:
    until(lambda: job.holds("Succeeded") or job.holds("Failed"), within=_JOB_WITHIN, what=f"the end of {job.name}")
    if not job.holds("Succeeded"):
        raise Unmeasured(f"the job {job.name} failed; its launcher said: {job.log() or 'nothing'}")


def _many(contender: Contender, jobs: int, workers: int) -> Many:
    """Create many jobs at once, wait until all run, look at them in peace, and remove them."""
    namespace = contender.namespace
    wanted = {**dict.fromkeys(contender.kinds, 1), "Pod": workers + 1}
    before = manyjobs.counts(namespace, wanted)
    with step(f"{jobs} jobs of {contender.name}"):
        writes, everybodys, cpu = contender.writes(), _all_writes(contender), cpu_seconds(contender.pid)
        begun = time.monotonic()
        manyjobs.create(namespace, _bodies(jobs, workers))
        for kind, count in wanted.items():
            manyjobs.wait_for(namespace, kind, before[kind] + jobs * count, operator.ge)
        made = time.monotonic() - begun
        manyjobs.patiently(lambda: manyjobs.running(namespace) >= jobs, what=f"{jobs} jobs that run")
        running = time.monotonic() - begun
        writes, everybodys = contender.written_at_rest() - writes, _all_writes(contender) - everybodys
        cpu = cpu_seconds(contender.pid) - cpu
    with step("peace"):
        idle = cpu_seconds(contender.pid)
        time.sleep(_IDLE_SECONDS)
        idle = cpu_seconds(contender.pid) - idle
    with step("their end"):
        manyjobs.remove_all(namespace, before)
    return Many(made, running, writes / jobs, everybodys / jobs, cpu, idle, peak_bytes(contender.pid) / _MB)


def _bodies(jobs: int, workers: int) -> list[dict[str, Any]]:
    there = {"nodeSelector": {"kubernetes.io/hostname": _NODE}, **nodes.tolerating(_NODE)}
    return [manyjobs.job(f"many-{number}", workers=workers, pod=there) for number in range(jobs)]


def _all_writes(contender: Contender) -> int:
    """Return the writes that the API server has been asked for by everybody, leases aside."""
    page = contender.namespace.kubectl("get", "--raw", "/metrics").stdout
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


def _compared(ours: Many, theirs: Many, jobs: int) -> list[Comparison]:
    """The rows of many jobs, without limits that matter."""
    peace = f"CPU time in {_IDLE_SECONDS:g} s of peace"
    return [
        *_times(ours, theirs, jobs, key="", how="no limit of requests"),
        _row(
            "many_writes_ratio", f"the controller for each of {jobs} jobs", "writes", (ours.writes, theirs.writes)
        ),
        _row(
            "all_writes_ratio",
            f"everybody for each of {jobs} jobs",
            "writes",
            (ours.all_writes, theirs.all_writes),
        ),
        _row("cpu_ratio", f"CPU time for {jobs} jobs", "s", (ours.cpu_seconds, theirs.cpu_seconds)),
        _row("idle_cpu_ratio", peace, "s", (ours.idle_cpu_seconds, theirs.idle_cpu_seconds)),
        _row(
            "memory_ratio", f"memory with {jobs} jobs, at most", "MB", (ours.peak_megabytes, theirs.peak_megabytes)
        ),
    ]


def _times(ours: Many, theirs: Many, jobs: int, *, key: str, how: str) -> list[Comparison]:
    what = f"{jobs} jobs, {how}"
    return [
        _row(f"{key}made_ratio", f"{what}: all objects exist", "s", (ours.made_seconds, theirs.made_seconds)),
        _row(f"{key}running_ratio", f"{what}: all run", "s", (ours.running_seconds, theirs.running_seconds)),
    ]


def _row(key: str, what: str, unit: str, both: tuple[float, float]) -> Comparison:
    """Something that was measured once: of ours, then of theirs."""
    ours, theirs = both
    return Comparison(Quantity(key, what, unit, 1.0, By.MEDIANS), [ours], [theirs])
