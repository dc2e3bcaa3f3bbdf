"""
A ScaleIn of a worker that does not get free: it stays, and the training goes on.

ScaleIns that are refused at once need no training: see tests/unit/controller/scaling and tests/api.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed.kube.wait import until
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.elastic.steps import broken_promises, worlds
from tests.e2e.elastic.training import Training
from tests.e2e.training import jobs
from tests.e2e.training.jobs import Job
from tests.promises import promise

WITHIN = 60.0
TIMEOUT = 8

# The launcher has to let go of a worker before a ScaleIn's time is over, which is a few seconds.
pytestmark = [pytest.mark.alone, pytest.mark.oldest]


@dataclass(frozen=True)
class Refused:
    """A job of two workers, one of which was to leave while something ran on in it."""

    job: Job
    run: Training
    in_use: tuple[str, str]
    """The outcome."""
    meanwhile: list[str]
    """The hosts while it was waited for."""
    hosts: list[str]
    """The hosts afterwards."""
    code: int


@pytest.fixture(scope="module")
def refused(controller: Deployed) -> Iterator[Refused]:
    job = jobs.submit(controller.namespace, job_name("refuses"))
    with jobs.trains(job, size=2) as run:
        with Sleeping(job, job.worker(1)):
            scaler = job.scale_in("in-use", toDelete={"podNames": [job.worker(1)]}, timeout=TIMEOUT)
            until(lambda: len(job.hosts()) == 1, within=WITHIN, what="a host less", instead=job.surroundings)
            meanwhile = job.hosts()
            in_use = scaler.outcome(within=WITHIN)
            until(lambda: len(job.hosts()) == 2, within=WITHIN, what="the host again", instead=job.surroundings)
            hosts = job.hosts()
            run.settled(run.world(2, since=time.time(), within=120))
        run.finish(job.worker(0))
        code = run.exit_code(within=60)
    print(run.tail())
    yield Refused(job, run, in_use, meanwhile, hosts, code)


class Sleeping:
    """A command of the launcher that runs in a worker and does not let go of it."""

    def __init__(self, job: Job, worker: str) -> None:
        [launcher] = job.pods("launcher")
        call = ("exec", launcher["metadata"]["name"], "--container=launcher", "--", "/etc/mpi/kubexec.sh", worker)
        self._argv = job.namespace.kubectl.argv(*call, "sleep 600")

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


@promise("A worker that is in use at a ScaleIn's time limit stays, and is a host again.", of="TrainingJob")
def test_a_worker_in_use_stays_and_is_a_host_again(refused: Refused) -> None:
    worker = refused.job.worker(1)

    assert refused.in_use == (
        "ScaleFailed",
        f"after {TIMEOUT} s still in use, and they stay: {worker} is in use by 1 command",
    )
    assert refused.meanwhile == [f"{refused.job.worker(0)}:1"]
    assert refused.hosts == [f"{refused.job.worker(0)}:1", f"{worker}:1"]


def test_the_training_goes_on(refused: Refused) -> None:
    assert refused.code == 0
    assert worlds(refused.run.steps()) == [2, 1, 2]
    assert broken_promises(refused.run.lines()) == []
