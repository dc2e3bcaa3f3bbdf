"""
Jobs of every launcher while API server, network, kubelets or containerds are away: by mpirt-rsh, by kubectl exec.

Owns: how long everything is away. A job of mpirt-rsh goes through all outages, one after the other; kubectl exec
has new jobs for each, because its jobs do not survive the first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from benchmarks.frame import Report, command, events
from benchmarks.place import fresh_namespaces
from testbed.ground import Faults
from testbed.kube import cluster
from testbed.kube.errors import ClusterError
from testbed.kube.progress import step
from testbed.kube.wait import until
from tests.e2e.rsh import counting
from tests.e2e.rsh import outages as interruptions
from tests.e2e.rsh.counting import KINDS, Job
from tests.e2e.rsh.outages import Outage

_NODES = ("node-1", "node-2")
_AWAY, _FROZEN, _DROPPED = 120.0, 60.0, 60.0
_STARTS_WITHIN = 180.0
# For how long a job is given to go on, once everything is there again.
_GOES_ON_WITHIN = 60.0
_LEGEND = """\
After each outage, for every launcher: whether all of its ranks went on, the same processes as before; else the
launcher's exit code, or that it hangs: it has not ended 60 s after the outage, and its ranks do not go on."""


@command(click.option("--only", default="", help="Outages with these words in their names, such as frozen."))
def outages(*, only: str) -> Report:
    """Jobs of every launcher through outages, by mpirt-rsh and by kubectl exec. 15 minutes, root."""
    every = interruptions.every(Faults(), _NODES, away=_AWAY, frozen=_FROZEN, dropped=_DROPPED)
    chosen = [outage for outage in every if only in outage.name]
    try:
        ours, ends = _ours(chosen)
        rows = []
        for outage, fates in zip(chosen, ours, strict=True):
            rows += [[outage.name, "mpirt", *fates], [outage.name, "kubectl exec", *_theirs(outage)]]
    finally:
        cluster.up()
    heading = ["OUTAGE", "BY", *(kind.name.upper() for kind in KINDS)]
    return events(heading, rows, "\n".join([_LEGEND, "", *ends]))


def _ours(chosen: Sequence[Outage]) -> tuple[list[list[str]], list[str]]:
    """What became of the same jobs at each outage, and how they ended."""
    found = []
    with _jobs(by_kubectl=False) as jobs:
        began = time.monotonic()
        for outage in chosen:
            with step(f"{outage.name}, mpirt"):
                found.append(_fates(outage, jobs))
        for job in jobs:
            job.enough()
        seconds = time.monotonic() - began
        return found, [f"mpirt, {job.kind.name}: {_end(job)}, after {seconds:.0f} s" for job in jobs]


def _theirs(outage: Outage) -> list[str]:
    try:
        with _jobs(by_kubectl=True) as jobs, step(f"{outage.name}, kubectl exec"):
            return _fates(outage, jobs)
    except ClusterError as error:
        return [f"not measured: {error}", *[""] * (len(KINDS) - 1)]


@contextmanager
def _jobs(*, by_kubectl: bool) -> Iterator[list[Job]]:
    with fresh_namespaces(len(KINDS)) as namespaces:
        with step(f"{len(KINDS)} jobs"):
            jobs = [
                counting.begun(namespace, kind, by_kubectl=by_kubectl)
                for namespace, kind in zip(namespaces, KINDS, strict=True)
            ]
            for job in jobs:
                job.wait_for_ranks(within=_STARTS_WITHIN)
        yield jobs


def _fates(outage: Outage, jobs: Sequence[Job]) -> list[str]:
    outage()
    # Lines from its beginning prove nothing; and until new ones come, the next outage would be the same one.
    before = [until(job.numbers, within=_GOES_ON_WITHIN, what=f"lines of {job.kind.name}") for job in jobs]
    deadline = time.monotonic() + _GOES_ON_WITHIN
    return [_fate(job, numbers, deadline - time.monotonic()) for job, numbers in zip(jobs, before, strict=True)]


def _fate(job: Job, before: counting.Numbers, within: float) -> str:
    try:
        until(lambda: job.goes_on(before) or job.code() is not None, within=max(1.0, within), what="either")
    except ClusterError:
        return "hangs"
    code = job.code()
    return "goes on" if code is None else f"ends: {code}"


def _end(job: Job) -> str:
    """How a job ended when it was asked to, and what its output is worth."""
    try:
        code = counting.ended(job)
    except ClusterError as error:
        return f"NO END: {error}"
    numbers = job.numbers()
    lines = sum(map(len, numbers.values()))
    is_whole = "each line once and in order" if counting.is_whole(numbers) else "LINES LOST OR TWICE"
    return f"code {code}, {len(numbers)} processes of {job.kind.ranks} ranks, {lines} lines, {is_whole}"
