"""
What an elastic job costs the API server, as the controller's own /metrics tell: few writes, and in peace nothing.

The controller is this module's own, so that every request that it counts is for the one job here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.plane.plane import Plane
from tests.api import trainings
from tests.api.beds import Bed, beds
from tests.api.trainings import Training
from tests.promises import promise
from tests.support.metrics import Rest, Scrape, parse

QUIET_SECONDS = 20.0
# Mere counts and words in a status may be kept back for ten seconds.
LONGEST_DELAY = 11.0
RESTS_WITHIN = 90.0

# Of these, two per worker are its pod and its mark.
MOST_WRITES = {"start": 20, "ScaleOut by 2": 18, "ScaleIn by 1": 17}


@dataclass
class Costs:
    """A job, and the writes that each part of its life took."""

    bed: Bed
    job: Training
    writes: dict[str, int] = field(default_factory=dict)
    _before: int = 0

    def add(self, what: str, do: Callable[[], object]) -> None:
        """Do something and count until nothing more is written about it."""
        do()
        rest = self.rest()
        until(lambda: rest.seconds() > LONGEST_DELAY, within=RESTS_WITHIN, what=f"rest after {what}")
        now = self.scrape().writes()
        self.writes[what], self._before = now - self._before, now

    def rest(self) -> Rest:
        return Rest(lambda: self.scrape().requests())

    def scrape(self) -> Scrape:
        return parse(self.bed.controller.replicas[0].page("/metrics"))


@pytest.fixture(scope="module")
def costs(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Costs]:
    with beds(plane, cluster, tmp_path_factory.mktemp("cost"), 1, replicas=1) as [bed]:
        job = trainings.submit(bed.namespace, "elastic", replicas=2)
        found = Costs(bed, job)
        found.add("start", lambda: job.wait_for("Running"))
        found.add("ScaleOut by 2", lambda: job.scale_out("out", 2).outcome())
        found.add("ScaleIn by 1", lambda: job.scale_in("in", toDelete={"count": 1}).outcome())
        print("".join(f"\n{what:<20}{count:>4} writes" for what, count in found.writes.items()))
        yield found


@pytest.mark.parametrize("what", MOST_WRITES)
@pytest.mark.sample(1)
def test_a_change_takes_few_writes(costs: Costs, what: str) -> None:
    assert 0 < costs.writes[what] <= MOST_WRITES[what]


@promise("A job that runs in peace costs the API server no request but watches.", of="mpirt-controller")
def test_a_job_in_peace_is_followed_by_watches_alone(costs: Costs) -> None:
    rest, before = costs.rest(), costs.scrape().writes()

    until(
        lambda: rest.seconds() > QUIET_SECONDS, within=RESTS_WITHIN, what=f"{QUIET_SECONDS:g} s without a request"
    )

    assert costs.scrape().writes() == before
    assert costs.job.phase() == "Running"
