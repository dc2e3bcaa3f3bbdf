"""
What the controller costs with many jobs: its writes, CPU time and memory, and how fast they come to run.

Owns: what is run, and the bounds. It runs on a control plane without nodes, where KWOK plays the kubelets, so that
there may be any number of pods. The controller is two processes; figures are those of the one that leads.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import click

from benchmarks import beside, manyjobs
from benchmarks.frame import Report, Row, command, compared
from benchmarks.manyjobs import IDLE_SECONDS, KINDS, WITHIN, Side
from testbed.ground import Ground
from testbed.kube import programs
from testbed.kube.progress import step
from testbed.kube.wait import until
from testbed.plane import plane, shared
from tests.api import controllers
from tests.api.controllers import Controller, Replica
from tests.support.metrics import Scrape, parse

_JOBS = 500
_PODS_OF_A_NODE = 1000
_BOUNDS = {"restart_writes": 0, "restart_ready_s": 30}
_BOUNDS_OF_JOBS = {f"create_{_JOBS}_s": 180, "rss_mb": 250, "idle_cpu_percent": 2}


@command(
    click.option("--jobs", type=click.IntRange(1),
                 help=f"Jobs created at once.  [default: {_JOBS}; {beside.JOBS} beside]"),
    click.option("--workers", type=click.IntRange(1),
                 help=f"Workers of each of them.  [default: 1; {beside.WORKERS} beside]"),
    click.option("--beside", "other", type=click.Choice([beside.THEIRS]),
                 help="Compare with this one, on real nodes."),
    click.option("--runs", type=click.IntRange(1), default=10, show_default=True,
                 help="Pairs of small jobs, with --beside."),
    click.option("--kills", type=click.IntRange(0), default=3, show_default=True,
                 help="Pairs of jobs of which a rank is killed, with --beside."),
    click.option("--runtime-volume", "volume", type=click.Choice(["image", "copy"]),
                 help="How launchers get the runtime, with --beside.  [default: by the cluster's version]"),
)  # fmt: skip
def controller(
    *, jobs: int | None, workers: int | None, other: str | None, runs: int, kills: int, volume: str | None
) -> Report:
    """
    Many jobs at once on a control plane without nodes: time, writes, CPU, memory, a restart. Needs no root.

    With --beside, the controller and mpi-operator on the test cluster: the time to a job's first output, writes,
    from a killed rank to all ranks, many jobs at once, CPU, memory. 25 minutes, root.
    """
    if other:
        jobs, workers = jobs or beside.JOBS, workers or beside.WORKERS
        volume = volume or beside.usual_volume()
        notes = [f"{runs} pairs of small jobs; {jobs} jobs of {workers} workers; --runtime-volume={volume}"]
        rows = beside.measure(runs, kills, jobs, workers, volume)
        return compared(rows, ours=beside.OURS, theirs=beside.THEIRS, notes=notes)
    jobs, workers = jobs or _JOBS, workers or 1
    names = [f"node-{number}" for number in range(1 + jobs * (workers + 1) // _PODS_OF_A_NODE)]
    with tempfile.TemporaryDirectory(prefix="mpirt-benchmark-") as name:
        folder, binaries = Path(name), programs.ensure(shared.version())
        with plane.running(folder / "plane", binaries, names=names) as own:
            installed = controllers.install(own, Ground(own.kubectl, is_ours=False), folder, replicas=2)
            found = _many(installed, jobs, workers)
            installed.remove()
    bounds = {**_BOUNDS, **(_BOUNDS_OF_JOBS if (jobs, workers) == (_JOBS, 1) else {})}
    rows = [Row(key, key, [value]) for key, value in found.items()]
    return compared(rows, ours=beside.OURS, theirs="-", notes=[f"{jobs} jobs of {workers} workers"], bounds=bounds)


def _many(controller: Controller, jobs: int, workers: int) -> dict[str, float]:
    leader = controller.replica(controller.leader())
    pid = leader.process.process.pid
    side = Side(leader.name, controller.namespace, pid, KINDS, lambda: _scrape(leader).writes())
    before = manyjobs.counts(side)
    found = manyjobs.many(side, before, manyjobs.jobs_of(jobs, workers, {}), workers)
    peak = _peak(controller)
    restart = _restart(controller, jobs)
    return {
        f"create_{jobs}_s": found["made"],
        "running_after_s": found["running"],
        "writes_until_rest": found["writes"],
        "cpu_until_rest_s": found["cpu"],
        "idle_cpu_percent": found["idle_cpu"] / IDLE_SECONDS * 100,
        **restart,
        "rss_mb": max(peak, _peak(controller)),
        "removed_after_s": manyjobs.remove_all(controller.namespace, before),
    }


def _restart(controller: Controller, jobs: int) -> dict[str, float]:
    """Both replicas at once, so that neither remembers anything. Each is started again when it has ended."""
    with step("a restart"):
        began = time.monotonic()
        last = [each.process for each in controller.replicas]
        for process in last:
            process.ask_to_end()
        until(lambda: all(process.is_over for process in last), within=WITHIN, what="the end of both")
        until(controller.are_ready, within=WITHIN, what="new replicas")
        ready = time.monotonic() - began
        until(lambda: _reconciled(controller) >= jobs, within=WITHIN, what=f"{jobs} reconciled jobs")
        time.sleep(IDLE_SECONDS / 2)
        writes = sum(_scrape(each).writes() for each in controller.replicas)
    return {"restart_writes": writes, "restart_ready_s": ready}


def _reconciled(controller: Controller) -> float:
    return max(_scrape(each).value("mpirt_controller_reconcile_seconds_count") for each in controller.replicas)


def _peak(controller: Controller) -> float:
    return max(manyjobs.peak_megabytes(each.process.process.pid) for each in controller.replicas)


def _scrape(replica: Replica) -> Scrape:
    return parse(replica.page("/metrics"))
