"""
What the controller costs: its writes, its silence, its memory, and how fast five hundred jobs come to run.

Owns: what is run and what is measured. It runs on a control plane without nodes, where KWOK plays the kubelets, so
that there may be any number of pods. The controller is two processes, and what they use is what they say in
/metrics: of the one that leads, where nothing else is said.
"""

from __future__ import annotations

import operator
import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from benchmarks import manyjobs
from benchmarks.measure import Unmeasured
from testbed.kube.progress import step
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob
from testbed.plane.stages import ENDS
from tests.api.controllers import Controller, Replica
from tests.support.metrics import Rest, Scrape, parse

JOBS = 500

_QUIET_SECONDS = 60.0
_IDLE_SECONDS = 60.0
# Longer than mere counts in a status may be kept back.
_AT_REST = 12.0
_BETWEEN_SAMPLES = 2.0

_CPU = "process_cpu_seconds_total"
_MEMORY = "process_resident_memory_bytes"

# What the controller makes at first. The launcher's Job comes after the workers' pods.
_OWNED = ("ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Service", "StatefulSet")
_JOBS, _PODS = "Job", "Pod"

_PROMISED = {
    "writes_per_job": "25 at most",
    "leases_lost": "none, where the API server answers within seconds",
    "quiet_requests": f"none in {_QUIET_SECONDS:g} s, watches and the lease aside",
    "restart_writes": "none, the lease aside",
    "restart_ready_s": "30 at most",
}
_PROMISED_OF_JOBS = {
    f"create_{JOBS}_s": "180 at most",
    "rss_mb": f"250 at most with {JOBS} jobs",
    "idle_cpu_percent": f"2 at most with {JOBS} jobs",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """Something measured, and how busy the machine was meanwhile."""

    value: float
    load: float


@dataclass(frozen=True, slots=True)
class Costs:
    """All figures, by the names under which they are printed."""

    measured: Mapping[str, Figure]
    jobs: int = JOBS
    workers: int = 1

    def figures(self) -> dict[str, float]:
        """All of them, rounded to what can be told apart."""
        return {name: round(figure.value, 2) for name, figure in self.measured.items()}

    def lines(self) -> list[str]:
        """The same for people, each with the load of the machine and what is promised."""
        promised = {**_PROMISED, **(_PROMISED_OF_JOBS if (self.jobs, self.workers) == (JOBS, 1) else {})}
        return [
            f"{name:20} {round(figure.value, 2):8g}   load {figure.load:4.1f}   {promised.get(name, '')}".rstrip()
            for name, figure in self.measured.items()
        ]


def measure(controller: Controller, jobs: int, workers: int) -> Costs:
    """All figures, by a controller that has no other jobs."""
    namespace = controller.namespace
    found = _noted(_plain_life(controller))
    before = manyjobs.counts(namespace, (*_OWNED, _JOBS, _PODS))
    most: dict[str, float] = {}
    try:
        with _looking_at_memory(controller, most):
            found |= _noted(_many(controller, before, jobs, workers))
        found |= _noted(_idle(controller))
        with _looking_at_memory(controller, most):
            found |= _noted(_restart(controller, jobs))
    finally:
        with step(f"removing {jobs} jobs"):
            removed = manyjobs.remove_all(namespace, before)
    largest, second, *_ = sorted(most.values(), reverse=True)
    return Costs(
        found | _noted({"rss_mb": largest, "second_rss_mb": second, "removed_after_s": removed}), jobs, workers
    )


def _noted(values: Mapping[str, float]) -> dict[str, Figure]:
    load = os.getloadavg()[0]
    return {name: Figure(value, load) for name, value in values.items()}


def _plain_life(controller: Controller) -> dict[str, float]:
    namespace, leader = controller.namespace, leader_of(controller)
    with step("a plain job"):
        before = scrape(leader).writes()
        namespace.kubectl.apply(manyjobs.job("plain", workers=1))
        plain = MpiJob(namespace, "plain")
        plain.wait_for("Running", within=manyjobs.WITHIN)
        time.sleep(_AT_REST)
        asked = requests_of(controller)
        time.sleep(_QUIET_SECONDS)
        quiet = requests_of(controller) - asked
        namespace.kubectl("annotate", "pods", "--selector=job-name=plain-launcher", f"{ENDS}=0", "--overwrite")
        plain.wait_for("Succeeded", within=manyjobs.WITHIN)
        time.sleep(_AT_REST)
        writes = scrape(leader).writes() - before
    return {"writes_per_job": writes, "quiet_requests": quiet}


def _many(controller: Controller, before: Mapping[str, int], jobs: int, workers: int) -> dict[str, float]:
    namespace, leader = controller.namespace, leader_of(controller)
    at_first = scrape(leader)
    begun = time.monotonic()
    took: dict[str, float] = {}
    with step(f"{jobs} jobs"):
        manyjobs.create(namespace, [manyjobs.job(f"many-{number}", workers=workers) for number in range(jobs)])
        took["created_after_s"] = time.monotonic() - begun
    with step("what they are made of"):
        for kind in _OWNED:
            manyjobs.wait_for(namespace, kind, before[kind] + jobs, operator.ge)
        took["made_after_s"] = time.monotonic() - begun
        manyjobs.wait_for(namespace, _PODS, before[_PODS] + jobs * workers, operator.ge)
        took[f"create_{jobs}_s"] = time.monotonic() - begun
    with step("all of them Running"):
        manyjobs.patiently(lambda: manyjobs.running(namespace) >= jobs, what=f"{jobs} jobs that run")
        took["running_after_s"] = time.monotonic() - begun
    rest = Rest(lambda: requests_of(controller))
    with step("rest"):
        until(lambda: rest.seconds() >= _AT_REST, within=manyjobs.WITHIN, what="a controller at rest")
        took["rest_after_s"] = time.monotonic() - begun - _AT_REST
    ends = sum(len(each.ends) for each in controller.replicas)
    if ends:
        # What a process had counted has gone with it.
        return {**took, "leases_lost": ends}
    now = scrape(leader)
    return {
        **took,
        "writes_until_rest": now.writes() - at_first.writes(),
        "cpu_until_rest_s": _said(now, _CPU) - _said(at_first, _CPU),
    }


def _idle(controller: Controller) -> dict[str, float]:
    with step("idle"):
        before = [_said(scrape(each), _CPU) for each in controller.replicas]
        time.sleep(_IDLE_SECONDS)
        after = [_said(scrape(each), _CPU) for each in controller.replicas]
    used = {
        each.name: (now - then) / _IDLE_SECONDS * 100
        for each, then, now in zip(controller.replicas, before, after, strict=True)
    }
    return {"idle_cpu_percent": used.pop(controller.leader()), "standby_cpu_percent": max(used.values())}


def _restart(controller: Controller, jobs: int) -> dict[str, float]:
    """Both replicas at once, so that nobody is left who knows anything. Each is started again as it has ended."""
    with step("a restart"):
        begun = time.monotonic()
        last = [each.process for each in controller.replicas]
        for process in last:
            process.ask_to_end()
        until(lambda: all(process.is_over for process in last), within=manyjobs.WITHIN, what="the end of both")
        until(controller.are_ready, within=manyjobs.WITHIN, what="new replicas")
        ready = time.monotonic() - begun
        until(lambda: _looks(controller) >= jobs, within=manyjobs.WITHIN, what=f"looks at {jobs} jobs")
        looked = time.monotonic() - begun
        time.sleep(_IDLE_SECONDS / 2)
        writes = sum(scrape(each).writes() for each in controller.replicas)
    return {"restart_writes": writes, "restart_ready_s": ready, "restart_looked_s": looked}


def _said(found: Scrape, name: str) -> float:
    """What a process says of itself; no process uses nothing."""
    if not (value := found.value(name)):
        raise Unmeasured(f"the controller does not tell its {name}")
    return value


def _looks(controller: Controller) -> float:
    name = "mpirt_controller_reconcile_seconds_count"
    return max(scrape(each).value(name) for each in controller.replicas)


@contextmanager
def _looking_at_memory(controller: Controller, most: dict[str, float]) -> Iterator[None]:
    """Note the most that each replica is seen to hold while the block runs, in MB."""
    end = threading.Event()

    def look() -> None:
        while not end.wait(_BETWEEN_SAMPLES):
            # One that is about to go or not yet up: there is a next time.
            with suppress(Unmeasured):
                for each in controller.replicas:
                    now = _said(scrape(each), _MEMORY) / 2**20
                    most[each.name] = max(now, most.get(each.name, 0))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield
        finally:
            end.set()
    looking.result()


def leader_of(controller: Controller) -> Replica:
    return controller.replica(controller.leader())


def scrape(replica: Replica) -> Scrape:
    return parse(replica.page("/metrics"))


def requests_of(controller: Controller) -> int:
    """What all replicas have asked for so far, watches and leases aside."""
    return sum(scrape(each).requests() for each in controller.replicas)
