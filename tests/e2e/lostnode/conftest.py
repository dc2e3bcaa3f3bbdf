"""The loss of a node, with all that is on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed import ground
from testbed.ground import Ground
from testbed.kube import cluster as kube
from testbed.kube import faults
from testbed.kube.wait import Moment
from tests.e2e.controller import deployed
from tests.e2e.lostnode import commands, crowd, jobs
from tests.e2e.lostnode.commands import Commands
from tests.e2e.lostnode.crowd import Crowd
from tests.e2e.lostnode.jobs import LOST, Victims


@dataclass(frozen=True)
class Loss:
    """What was on the node, and when it was lost."""

    commands: Commands
    crowd: Crowd
    jobs: Victims
    moment: Moment

    @property
    def at(self) -> float:
        """By the monotonic clock."""
        return self.moment.time


@pytest.fixture(scope="package")
def loss(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loss]:
    """The node comes back when all of it has been seen."""
    with (
        ground.passing_namespace(cluster, tmp_path_factory.mktemp("commands")) as namespace,
        deployed.passing(cluster, tmp_path_factory.mktemp("controller")) as controller,
        jobs.running(controller) as victims,
        commands.running(namespace) as beside,
        crowd.running(namespace) as many,
    ):
        faults.node_lost(faults.node_named(LOST))
        moment = Moment.now()
        try:
            jobs.suspend_and_resume(victims.resumed.story)
            yield Loss(beside, many, victims, moment)
        finally:
            kube.up()
