"""
Workers that are lost while ranks run: a job succeeds only if all ranks of a run have finished.

mpirun of Open MPI 5 mostly ends with 0 then, and a shell line may drop the code of any. `make chaos` has every
launcher with every loss, at moments made from its SEED; `make test` two that no other test has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from testbed.ground import Ground
from testbed.kube.status import table
from tests.e2e.chaos import losses
from tests.e2e.chaos.losses import Case, Line, Loss
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed
from tests.promises import promise

JOBS = 6
"""Of each launcher, for each loss."""
SEED = os.environ.get("MPIRT_TEST_SEED", "mpirt")

CHEAP = (
    Case("mpich", Loss.FORCED, Line.PIPED, retries=0, moment=0.0),
    Case("openmpi4", Loss.TERM, Line.PIPED, retries=0, moment=0.0),
)
ROUNDS = (
    {loss.value: losses.drawn(Random(f"{SEED} {loss.value}"), loss, JOBS) for loss in Loss}
    if "MPIRT_TEST_CHAOS" in os.environ
    else {"the cheapest": CHEAP}
)

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def controller(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed.passing(cluster, tmp_path_factory.mktemp("controller")) as installed:
        yield installed


@promise("A job that has lost a worker has not succeeded, even if mpirun ends with 0.", of="MPIJob")
@pytest.mark.parametrize("cases", ROUNDS.values(), ids=ROUNDS)
@pytest.mark.one_in(3)
def test_a_job_that_loses_a_worker_succeeds_only_if_all_ranks_have_finished(
    controller: Deployed, cases: Sequence[Case]
) -> None:
    outcomes = losses.play(controller, cases)

    lies = [one for one in outcomes if one.is_lie]
    print(*table(losses.rows(outcomes)), *(one.lines for one in lies), sep="\n")
    assert len(outcomes) == len(cases)
    assert [one.case for one in lies] == []
