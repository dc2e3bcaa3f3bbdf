"""
Workers that are lost while ranks of Open MPI 5 run: no job succeeds without a whole run.

Its mpirun mostly ends with 0 then. `make chaos` has 20 jobs of a minute for each loss, `make test` a short one.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from tests.e2e.controller import deployed, longrun, losing
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.controller.losing import Strike
from tests.e2e.controller.mpijobs import submit
from tests.e2e.controller.stories import held, story
from tests.e2e.ground import Ground

JOBS, SECONDS = (20, 60.0) if "MPIRT_TEST_CHAOS" in os.environ else (1, 10.0)
SEED = os.environ.get("MPIRT_TEST_SEED", "mpirt")
_AT_ONCE = 4

pytestmark = pytest.mark.timeout(300 + JOBS * 5 * SECONDS)


@pytest.fixture(scope="module")
def controller(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed.passing(cluster, tmp_path_factory.mktemp("controller")) as installed:
        yield installed


@pytest.mark.parametrize("strike", [losing.delete_worker_by_force, losing.end_worker])
def test_no_job_succeeds_without_a_whole_run(controller: Deployed, strike: Strike) -> None:
    random = Random(SEED)
    moments = [random.uniform(0.0, SECONDS * 0.9) for _ in range(JOBS)]
    with ThreadPoolExecutor(_AT_ONCE) as side_by_side:
        ends = list(side_by_side.map(lambda moment: end_of_first(controller, moment, strike), moments))

    print(dict(Counter(ends)))
    assert len(ends) == JOBS


def end_of_first(controller: Deployed, moment: float, strike: Strike) -> str:
    """How the first attempt of a job has ended whose worker was struck at this moment of its run."""
    program = losing.command_of(longrun.source(first=SECONDS, again=SECONDS))
    job = submit(controller.namespace, job_name("chaos"), "openmpi5", program, runPolicy={"backoffLimit": 1})
    with story(job) as told:
        told.until("Running")
        losing.wait_until_ranks_run(job)
        # The schedule's own time; nothing tells of it.
        time.sleep(moment)
        strike(job)
        end = told.end()
        finished = {line for line in losing.said(job) if "is one of 2" in line}
        first, *others = end.body["status"]["attempts"]

        print(told.lines(), *losing.last_messages(job), sep="\n")
        assert "Succeeded" in held(end), told.lines()
        assert len(finished) == 2, told.lines()
        assert [one["end"]["code"] for one in others] == [0]
    controller.namespace.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")
    return str(first.get("stopped") or how(first["end"]))


def how(end: dict[str, Any]) -> str:
    """How a launcher ended that did not end with 0."""
    assert end["code"] != 0
    return f"code {end['code']}"
