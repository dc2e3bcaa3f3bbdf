"""
What the controller costs: its writes, its silence, its memory, and how fast five hundred jobs get their objects.

Owns: what is run and what is measured. The controller runs as a process beside the cluster, because what a
pod uses is told only to those who have more rights than a benchmark should have. No pod of the five hundred jobs
ever runs: they ask for a node that isn't there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import Unmeasured
from tests.e2e.ground import Namespace
from tests.kube.paths import PROJECT
from tests.kube.progress import step
from tests.kube.wait import until

CONTROLLER = Path(sys.executable).with_name("mpirt-controller")
JOBS = 500
QUIET_SECONDS = 60.0
IDLE_SECONDS = 30.0

_WITHIN = 300.0
_AT_ONCE = 8
_READS_OF_PEACE = frozenset({"watch"})
_WRITES = frozenset({"create", "patch", "update", "delete"})


_PROMISED = {
    "writes_per_job": "25 at most",
    "quiet_requests": f"none in {QUIET_SECONDS:g} s",
    "create_500_s": "180 at most",
    "rss_mb": "250 at most",
    "idle_cpu_percent": "2 at most",
    "restart_writes": "none",
    "restart_ready_s": "30 at most",
}


@dataclass(frozen=True, slots=True)
class Costs:
    """The figures, by the names under which they are printed."""

    writes_per_job: float
    quiet_requests: int
    create_500_s: float
    rss_mb: float
    idle_cpu_percent: float
    restart_writes: int
    restart_ready_s: float

    def figures(self) -> dict[str, float]:
        """All of them, rounded to what can be told apart."""
        return {name: round(value, 2) for name, value in asdict(self).items()}

    def lines(self) -> list[str]:
        """The same for people, each with what is promised."""
        return [f"{name:18} {value:8g}   promised: {_PROMISED[name]}" for name, value in self.figures().items()]


class Process:
    """A controller that looks at one namespace."""

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self._log = folder / "controller.log"
        kubeconfig = f"--kubeconfig={namespace.kubectl.kubeconfig}"
        words = [f"--namespace={namespace.name}", f"--lease-namespace={namespace.name}", "--metrics-port=0"]
        self.begun = time.monotonic()
        with self._log.open("w") as log:
            self._process = subprocess.Popen([CONTROLLER, kubeconfig, *words], stdout=log, stderr=log)
        until(lambda: " port=" in self._log.read_text(), within=30, what=f"the port in {self._log}")
        self._port = self._log.read_text().split(" port=")[1].split()[0]
        until(self._is_ready, within=60, what="/readyz")
        self.ready_after = time.monotonic() - self.begun

    def calls(self) -> Mapping[tuple[str, str], float]:
        """Requests so far, by verb and resource, without those for the lease."""
        page = self._get("/metrics").decode()
        found: dict[tuple[str, str], float] = {}
        for line in page.splitlines():
            if line.startswith("mpirt_controller_api_calls_total{"):
                labels = dict(
                    word.split("=") for word in line.split("{")[1].split("}")[0].replace('"', "").split(",")
                )
                key = labels["verb"], labels["resource"]
                if key[1] != "leases":
                    found[key] = found.get(key, 0) + float(line.split()[-1])
        return found

    def writes(self) -> int:
        return int(sum(count for (verb, _), count in self.calls().items() if verb in _WRITES))

    def requests(self) -> int:
        """All that is not allowed in peace."""
        return int(sum(count for (verb, _), count in self.calls().items() if verb not in _READS_OF_PEACE))

    def peak_mb(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def cpu_seconds(self) -> float:
        words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def _is_ready(self) -> bool:
        try:
            return bool(self._get("/readyz"))
        except OSError:
            return False

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as answer:
            said: bytes = answer.read()
            return said


@contextmanager
def running(namespace: Namespace, folder: Path) -> Iterator[Process]:
    process = Process(namespace, folder)
    try:
        yield process
    finally:
        process.end()


def measure(namespace: Namespace) -> Costs:
    """All figures, in a namespace that nobody else uses. The CRD is installed when it is missing."""
    folder = namespace.folder
    if not CONTROLLER.exists():
        raise Unmeasured(f"{CONTROLLER} is not installed; run: make venv")
    namespace.kubectl("apply", "--kustomize", str(PROJECT / "crds"))
    until(
        lambda: namespace.kubectl("get", "mpijobs.kubeflow.org", check=False).returncode == 0,
        within=30,
        what="MPIJobs to be served",
    )
    with running(namespace, folder) as controller:
        writes, quiet = _plain_life(namespace, controller)
        with step(f"{JOBS} jobs"):
            took = _many(namespace)
        used = controller.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        idle = (controller.cpu_seconds() - used) / IDLE_SECONDS * 100
        peak = controller.peak_mb()
    with step("a restart"), running(namespace, folder) as again:
        time.sleep(IDLE_SECONDS)
        costs = Costs(writes, quiet, took, peak, idle, again.writes(), again.ready_after)
    with step(f"removing {JOBS} jobs"):
        _remove_all(namespace)
    return costs


def _plain_life(namespace: Namespace, controller: Process) -> tuple[int, int]:
    with step("a plain job"):
        image = namespace.ground.image("busybox")
        before = controller.writes()
        namespace.kubectl.apply(
            job("plain", image=image, launcher=["sleep", str(QUIET_SECONDS + 30)], selector={})
        )
        until(lambda: _state(namespace, "plain", "Running"), within=_WITHIN, what="the plain job to run")
        time.sleep(10)
        asked = controller.requests()
        time.sleep(QUIET_SECONDS)
        quiet = controller.requests() - asked
        until(lambda: _state(namespace, "plain", "Succeeded"), within=_WITHIN, what="the plain job's end")
        time.sleep(5)
        return controller.writes() - before, quiet


def _many(namespace: Namespace) -> float:
    begun = time.monotonic()
    bodies = [
        job(f"many-{number}", image="none", launcher=["true"], selector={"there": "is-none"})
        for number in range(JOBS)
    ]
    pieces = [bodies[start::_AT_ONCE] for start in range(_AT_ONCE)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda piece: _create(namespace, piece), pieces))
    until(lambda: _count(namespace, "statefulsets") >= JOBS, within=_WITHIN, what=f"{JOBS} StatefulSets")
    until(lambda: _count(namespace, "pods") >= JOBS, within=_WITHIN, what=f"{JOBS} pods")
    return time.monotonic() - begun


def _create(namespace: Namespace, bodies: list[dict[str, Any]]) -> None:
    """One request for each, where apply makes two."""
    everything = {"apiVersion": "v1", "kind": "List", "items": bodies}
    namespace.kubectl("create", "--filename=-", stdin=json.dumps(everything), timeout=_WITHIN)


def _remove_all(namespace: Namespace) -> None:
    """All jobs by one request, and the rest by the garbage collector: kubectl asks five times a second."""
    namespace.kubectl("delete", "--raw", f"/apis/kubeflow.org/v2beta1/namespaces/{namespace.name}/mpijobs")
    until(lambda: _count(namespace, "pods") == 0, within=_WITHIN, what="the end of all pods")


def _count(namespace: Namespace, kind: str) -> int:
    time.sleep(1)
    return len(
        namespace.kubectl("get", kind, "--output=name", "--selector=training.kubeflow.org/job-name").stdout.split()
    )


def _state(namespace: Namespace, name: str, kind: str) -> bool:
    path = f'--output=jsonpath={{.status.conditions[?(@.type=="{kind}")].status}}'
    return namespace.kubectl("get", "mpijobs.kubeflow.org", name, path).stdout == "True"


def job(name: str, *, image: str, launcher: list[str], selector: Mapping[str, str]) -> dict[str, Any]:
    """A job of one worker, on nodes with these labels."""
    common = {"image": image, "imagePullPolicy": "IfNotPresent"}
    worker = {
        "nodeSelector": dict(selector),
        "containers": [{"name": "mpi", "command": ["sleep", "9999"], **common}],
    }
    main = {"containers": [{"name": "mpi", "command": launcher, **common}]}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": main}},
                "Worker": {"replicas": 1, "template": {"spec": worker}},
            }
        },
    }
