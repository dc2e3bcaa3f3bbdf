"""Workers leave nodes that are about to go, before these go: no step is done twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testbed.ground import Faults, Namespace
from testbed.kube.wait import until
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.elastic.steps import broken_promises, repeated
from tests.e2e.elastic.training import Training
from tests.e2e.training import jobs
from tests.e2e.training.jobs import Job
from tests.promises import promise

WITHIN = 120.0
STAYS, GOES = "node-1", "node-2"
TAINT = "aws-node-termination-handler/spot-itn"

pytestmark = [pytest.mark.alone, pytest.mark.oldest]


@contextmanager
def training(controller: Deployed, *, leaves_cordoned: bool = False) -> Iterator[tuple[Job, Training]]:
    """A job with its launcher on one node, and with workers on both."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    annotations = {"mpirt.dev/leave-cordoned-nodes": "true"} if leaves_cordoned else None
    job = jobs.submit(
        controller.namespace, job_name("drains"), launcher_on=STAYS, annotations=annotations, spread=spread
    )
    with jobs.trains(job, size=2) as run:
        yield job, run
        run.settled(run.world(2, since=time.time(), within=WITHIN))
        run.finish(job.workers()[0])
        assert run.exit_code(within=60) == 0
    print(run.tail())


@pytest.fixture
def healed(controller: Deployed) -> Iterator[Namespace]:
    """The namespace; afterwards the node is as it was."""
    namespace = controller.namespace
    yield namespace
    namespace.kubectl("uncordon", GOES)
    namespace.kubectl("taint", "node", GOES, f"{TAINT}-", check=False)


def on(job: Job, node: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in job.pods() if pod["spec"].get("nodeName") == node]


def left(job: Job) -> None:
    """Wait until no worker is left on the node that goes."""
    until(lambda: not on(job, GOES), within=WITHIN, what=f"no worker on {GOES}", instead=job.surroundings)


@promise(
    "With mpirt.dev/leave-cordoned-nodes kubectl drain waits until the training lets go of workers.",
    of="TrainingJob",
)
def test_kubectl_drain_waits_until_the_training_has_let_go(controller: Deployed, healed: Namespace) -> None:
    with training(controller, leaves_cordoned=True) as (job, run):
        assert on(job, GOES)
        begun = time.time()
        healed.kubectl(
            "drain", GOES, f"--pod-selector=training-job-name={job.name}", "--timeout=100s", timeout=150
        )
        print(f"drained after {time.time() - begun:.1f} s")
        left(job)

    assert repeated(run.steps()) == []
    assert broken_promises(run.lines()) == []


@promise("Workers leave a node that is about to go before it is gone.", of="TrainingJob")
def test_a_spot_node_is_left_before_it_is_gone(controller: Deployed, healed: Namespace, fault: Faults) -> None:
    with training(controller) as (job, run):
        assert on(job, GOES)
        begun = time.time()
        healed.kubectl("taint", "node", GOES, f"{TAINT}=:NoSchedule")
        left(job)
        print(f"left after {time.time() - begun:.1f} s")
        fault.node_lost(GOES)
        run.settled(run.world(2, since=time.time(), within=WITHIN))
        fault.node_back(GOES)

    assert repeated(run.steps()) == []
    assert broken_promises(run.lines()) == []
