"""
Jobs of every launcher while API server, network, kubelets or containerds are away: by mpirt-rsh, by kubectl exec.

Owns: how long everything is away, and the table. A job of mpirt-rsh goes through all outages, one after the other;
kubectl exec has new jobs for each, for none of them would see the second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks import place
from testbed.ground import Faults
from testbed.kube import cluster
from testbed.kube.errors import ClusterError
from testbed.kube.progress import step
from testbed.kube.status import table
from testbed.kube.wait import until
from tests.e2e.rsh import counting, outages
from tests.e2e.rsh.counting import KINDS, Job
from tests.e2e.rsh.outages import Outage

_NODES = ("node-1", "node-2")
_AWAY, _FROZEN, _DROPPED = 120.0, 60.0, 60.0

_STARTS_WITHIN = 180.0
# For how long a job is given to go on, once everything is there again.
_GOES_ON_WITHIN = 60.0

_OURS, _THEIRS = "mpirt", "kubectl exec"

_LEGEND = """\
After each outage, for every launcher: whether all of its ranks went on, the same processes as before; else the
launcher's exit code, or that it hangs: neither does it end within 60 s after the outage nor do its ranks go on."""


@dataclass(slots=True)
class Table:
    """What became of every kind of job at each outage, by either agent."""

    rows: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)

    def note(self, outage: str, agent: str, kind: str, what: str) -> None:
        self.rows.setdefault((outage, agent), {})[kind] = what

    def rendered(self) -> str:
        heading = ["OUTAGE", "BY", *(kind.name.upper() for kind in KINDS)]
        rows = [
            [outage, agent, *(what.get(kind.name, "not run") for kind in KINDS)]
            for (outage, agent), what in sorted(
                self.rows.items(), key=lambda item: (item[0][0], item[0][1] != _OURS)
            )
        ]
        return "\n".join([*table([heading, *rows]), "", _LEGEND, "", *self.ends])


def measure(only: str = "") -> Table:
    """Everything, one outage after the other; or those with these words in their names."""
    found = Table()
    chosen = [outage for outage in _outages() if only in outage.name]
    try:
        _ours(found, chosen)
        for outage in chosen:
            _theirs(found, outage)
    finally:
        cluster.up()
    return found


def _outages() -> list[Outage]:
    return outages.every(Faults(), _NODES, away=_AWAY, frozen=_FROZEN, dropped=_DROPPED)


def _ours(found: Table, chosen: Sequence[Outage]) -> None:
    with _jobs(by_kubectl=False) as jobs:
        began = time.monotonic()
        for outage in chosen:
            with step(f"{outage.name}, {_OURS}"):
                _happen(outage, jobs, found, _OURS)
        for job in jobs:
            job.enough()
        seconds = time.monotonic() - began
        found.ends += [f"{_OURS}, {job.kind.name}: {_end(job)}, after {seconds:.0f} s" for job in jobs]


def _theirs(found: Table, outage: Outage) -> None:
    try:
        with _jobs(by_kubectl=True) as jobs, step(f"{outage.name}, {_THEIRS}"):
            _happen(outage, jobs, found, _THEIRS)
    except ClusterError as error:
        found.ends.append(f"{outage.name}, {_THEIRS}: not measured: {error}")


@contextmanager
def _jobs(*, by_kubectl: bool) -> Iterator[list[Job]]:
    with place.fresh_namespaces(len(KINDS)) as namespaces:
        with step("five jobs"):
            jobs = [
                counting.begun(namespace, kind, by_kubectl=by_kubectl)
                for namespace, kind in zip(namespaces, KINDS, strict=True)
            ]
            for job in jobs:
                job.wait_for_ranks(within=_STARTS_WITHIN)
        yield jobs


def _happen(outage: Outage, jobs: list[Job], found: Table, agent: str) -> None:
    outage()
    # What came at its beginning proves nothing; and until they are back, the next one would be the same one.
    before = [until(job.numbers, within=_GOES_ON_WITHIN, what=f"lines of {job.kind.name}") for job in jobs]
    deadline = time.monotonic() + _GOES_ON_WITHIN
    for job, numbers in zip(jobs, before, strict=True):
        found.note(outage.name, agent, job.kind.name, _fate(job, numbers, deadline - time.monotonic()))


def _fate(job: Job, before: counting.Numbers, within: float) -> str:
    try:
        until(lambda: job.goes_on(before) or job.code() is not None, within=max(1.0, within), what="either")
    except ClusterError:
        return "hangs"
    code = job.code()
    return "goes on" if code is None else f"ends: {code}"


def _end(job: Job) -> str:
    """How a job ended that was told to, and what its output is worth."""
    try:
        code = counting.ended(job)
    except ClusterError as error:
        return f"NO END: {error}"
    numbers = job.numbers()
    lines = sum(map(len, numbers.values()))
    is_whole = "each line once and in order" if counting.is_whole(numbers) else "LINES LOST OR TWICE"
    return f"code {code}, {len(numbers)} processes of {job.kind.ranks} ranks, {lines} lines, {is_whole}"
