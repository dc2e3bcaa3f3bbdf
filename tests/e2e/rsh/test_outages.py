"""Jobs of every launcher notice nothing of what is away for a while: API server, network, kubelet, containerd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from testbed import ground
from testbed.ground import Faults, Ground
from testbed.kube.wait import until
from tests.e2e.rsh import counting, outages
from tests.e2e.rsh.counting import KINDS, Job
from tests.promises import promise

pytestmark = pytest.mark.alone


@pytest.fixture
def jobs(cluster: Ground, fault: Faults, tmp_path: Path) -> Iterator[list[Job]]:
    """One of each kind, each of whose ranks counts."""
    with ExitStack() as stack:
        begun = [
            counting.begun(stack.enter_context(ground.passing_namespace(cluster, tmp_path)), kind)
            for kind in KINDS
        ]
        for job in begun:
            job.wait_for_ranks(within=240)
        yield begun


@promise(
    "Jobs of every launcher go on when API server, network, kubelets or containerds are away.", of="mpirt-rsh"
)
@promise(
    "After an outage the ranks are the same processes, and every line has come once and in order.", of="mpirt-rsh"
)
def test_they_notice_nothing(jobs: list[Job], fault: Faults) -> None:
    nodes = jobs[0].namespace.nodes_of(jobs[0].workers)
    assert len(nodes) == 2

    # The shortest that are outages: more than ten beats, and less than the node controller's patience.
    for outage in outages.every(fault, nodes, away=15, frozen=25, dropped=25):
        before = [job.numbers() for job in jobs]
        outage()
        for job, numbers in zip(jobs, before, strict=True):
            assert len(numbers) == job.kind.ranks
            until(
                partial(job.goes_on, numbers),
                within=120,
                what=f"{job.kind.name} after: {outage.name}",
                instead=job.errors,
            )

    for job in jobs:
        job.enough()
    for job in jobs:
        assert counting.ended(job) == 0, f"{job.kind.name}: {job.errors()}"
        assert len(job.numbers()) == job.kind.ranks, f"{job.kind.name}: other processes than at its beginning"
        assert counting.is_whole(job.numbers()), f"{job.kind.name}: {job.numbers()}"
