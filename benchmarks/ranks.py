"""
What ranks on one node do together, beside one that is alone: with mpirt's variables, and as their MPI binds them.

Owns: the rank, which only counts. A rank that has a processor for itself counts as fast as one that is alone.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import click

from benchmarks.frame import Report, Row, Unmeasured, command, compared, in_turn
from benchmarks.place import fresh_namespace
from testbed.ground import Namespace
from testbed.kube.progress import step
from testbed.kube.shell import run
from testbed.manifests import on
from tests.e2e.rsh import launcher
from tests.e2e.rsh.launcher import HYDRA, INTEL, OPEN_MPI_4, OPEN_MPI_5, Mpi

_RANKS = 2
_BOUND = 1.8
# Prints for how many seconds it has counted.
_COUNTS = """\
begun=$(date +%s.%N); i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done; echo "$(date +%s.%N) $begun" | \
awk '{ printf "%.3f\\n", $1 - $2 }'"""


# By the names that `mpirt env` has for them.
_LAUNCHERS = {"openmpi4": OPEN_MPI_4, "openmpi5": OPEN_MPI_5, "mpich": HYDRA, "intel": INTEL}


@command(click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Runs of each kind."))
def ranks(*, runs: int) -> Report:
    """Two ranks of two workers on one node, beside a rank that is alone. 5 minutes."""
    rows = [_row(name, each, runs) for name, each in _LAUNCHERS.items()]
    notes = [f"{_RANKS} workers of one node: what their ranks do together, one rank that is alone is 1"]
    more = [f"{row.what}: at least {_BOUND} wanted, {median(row.ours):.2f} found" for row in rows]
    return compared(rows, ours="mpirt's variables", theirs="as their MPI binds them", notes=[*notes, *more])


def _row(name: str, mpi: Mpi, runs: int) -> Row:
    with step(name), fresh_namespace() as namespace:
        node = namespace.kubectl.get("nodes")[0]["metadata"]["name"]
        hosts = namespace.workers(_RANKS, mpi.image, topologySpreadConstraints=[], **on(node))
        launcher.start(namespace, mpi.image, workers=hosts, host_line=mpi.host_line)

        def together(more: Mapping[str, str]) -> float:
            alone = max(_seconds(namespace, mpi, more, 1))
            return _RANKS * alone / max(_seconds(namespace, mpi, more, _RANKS))

        variables = _variables(name)
        ours, theirs = in_turn(runs, lambda: together(variables), lambda: together({}), warm_up=True)
    return Row(name, name, ours, theirs)


def _variables(name: str) -> dict[str, str]:
    """What `mpirt env` sets."""
    lines = run(Path(sys.executable).with_name("mpirt"), "env", name).stdout.splitlines()
    return dict(shlex.split(line)[1].split("=", 1) for line in lines)


def _seconds(namespace: Namespace, mpi: Mpi, more: Mapping[str, str], count: int) -> list[float]:
    words = (*mpi.command, "-n", str(count), "sh", "-c", _COUNTS)
    done = launcher.run(namespace, {**more, **mpi.variables}, *words)
    if done.returncode:
        raise Unmeasured(f"{mpi.image}: {done.stderr.strip()}")
    return [float(line) for line in done.stdout.split()]
