"""
A job loses a pod while its ranks run: it is restarted and succeeds, or fails with the pod and the cause.

All jobs run side by side: most of the time they wait, for Kubernetes lets ten seconds pass between two launchers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pytest

from testbed.mpijobs import MpiJob
from tests.e2e.controller import losing
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.controller.losing import Strike
from tests.promises import promise
from tests.support.stories import Story, condition, held, story, told_of

# A node reports a container's end after a second, and words alone are written every ten seconds.
TOLD_WITHIN = 30.0

# On a busy machine a worker comes back late, which costs another restart.
pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("own_cluster")]


@dataclass(frozen=True)
class Loss:
    """What happens to a job that runs, and what has to be said of it."""

    name: str
    strike: Strike
    says: str
    """Where {job} is the job's name."""
    retries: int = 2
    limits: Mapping[str, str] = field(default_factory=dict, hash=False)
    image: str = "openmpi4"
    probe: Mapping[str, Any] = field(default_factory=dict, hash=False)
    before: tuple[str, ...] = ()


NAME = attrgetter("name")
OOM = r"{job}-worker-1: container main ended with code 137 \(OOMKilled\)"

# The deletion of a launcher is in tests/api/test_endings.py.
SURVIVED = (
    Loss("worker evicted by an administrator", losing.evict_worker, "{job}-worker-1 was (deleted|evicted)"),
    Loss("launcher killed", losing.kill_launcher, r"launcher pod {job}-launcher-\w+ ended with code 137"),
)
FATAL = (
    Loss("worker out of memory", losing.kill_worker_for_memory, OOM, retries=0),
    Loss(
        "worker evicted by its node",
        losing.fill_disk_of_worker,
        "{job}-worker-1 was evicted: .*ephemeral",
        retries=0,
        limits=losing.LITTLE_DISK,
    ),
)
# The mpirun of Open MPI 5 ends with 0 then, if it notices before mpirt-rsh does.
UNNOTICED = tuple(
    Loss(name, strike, says, retries=0, image="openmpi5", probe=probe)
    for name, strike, says, probe in (
        ("worker deleted", losing.delete_worker, "{job}-worker-1 was deleted", {}),
        ("worker ended with code 0", losing.end_worker, "{job}-worker-1: container main ended with code 0", {}),
        (
            "worker restarted by its probe",
            losing.fail_probe_of_worker,
            "{job}-worker-1: container main ended with",
            losing.PROBE,
        ),
    )
)

# The launcher itself begins anew: that of Open MPI 5 goes on only if mpirt-rsh has noticed first.
BEGUN_ANEW = tuple(
    Loss(
        f"{image}, worker deleted by force",
        losing.delete_worker_by_force,
        "{job}-worker-1 was deleted",
        retries=0,
        image=image,
        before=losing.PATIENTLY,
    )
    for image in ("openmpi4", "openmpi5")
)


@pytest.fixture(scope="module")
def struck(controller: Deployed, request: pytest.FixtureRequest) -> Iterator[Mapping[Loss, Story]]:
    """The jobs of all tests that were selected, each struck as soon as its ranks run."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    losses = [found["loss"] for found in parameters if isinstance(found.get("loss"), Loss)]
    with ExitStack() as told, ThreadPoolExecutor(len(losses)) as side_by_side:
        made = {loss: told.enter_context(story(begin(controller, loss))) for loss in losses}
        for each in [side_by_side.submit(strike, one, loss) for loss, one in made.items()]:
            each.result()
        yield made
    for one in made.values():
        controller.namespace.kubectl("delete", "mpijobs.kubeflow.org", one.job.name, "--wait=false")


def begin(controller: Deployed, loss: Loss) -> MpiJob:
    name = job_name("lose")
    return losing.start(
        controller.namespace,
        name,
        retries=loss.retries,
        limits=loss.limits,
        image=loss.image,
        probe=loss.probe,
        before=loss.before,
    )


def strike(one: Story, loss: Loss) -> None:
    one.until("Running")
    losing.wait_until_ranks_run(one.job)
    loss.strike(one.job)


@promise("A job that loses a worker or its launcher is tried again and succeeds.", of="MPIJob")
@pytest.mark.parametrize("loss", SURVIVED, ids=NAME)
@pytest.mark.sample(2)
def test_a_job_that_may_try_again_is_restarted_and_succeeds(struck: Mapping[Loss, Story], loss: Loss) -> None:
    one = struck[loss]
    end, says = one.end(), loss.says.format(job=one.job.name)
    one.told.wait(
        lambda state: state.at >= end.at and bool(re.search(says, told_of(state, "Restarting"))),
        within=TOLD_WITHIN,
        what=f"{says} in {told_of(end, 'Restarting')}",
    )

    print(one.lines())
    assert "Succeeded" in held(end), end.body["status"]
    assert one.messages("Restarting")
    [event] = one.events("MPIJobRestarting")
    assert event.kind == "Warning"
    assert re.search(f"{one.job.name}-(worker-1|launcher-)", event.message)
    assert {f"{one.job.name}-worker-{n} runs again" for n in (0, 1)} <= set(losing.said(one.job))


@promise("A job that may not be tried again fails, and its message names the pod and the cause.", of="MPIJob")
@pytest.mark.oldest
@pytest.mark.parametrize("loss", FATAL, ids=NAME)
def test_a_job_that_may_not_fails_with_the_pod_and_the_cause(struck: Mapping[Loss, Story], loss: Loss) -> None:
    one = struck[loss]
    end, says = one.end(), loss.says.format(job=one.job.name)
    state = one.told.wait(
        lambda state: bool(re.search(says, held(state).get("Failed", ""))),
        within=TOLD_WITHIN,
        what=f"{says} in {held(end)}",
    )

    print(one.lines())
    assert condition(state, "Failed")["reason"].startswith("BackoffLimitExceeded")
    assert condition(state, "Running")["status"] == "False"
    assert one.events("MPIJobRestarting") == []
    [event] = one.events("BackoffLimitExceeded")
    assert event.kind == "Warning"
    assert re.search(f"{one.job.name}-(worker-1|launcher-)", event.message)


@promise("A job that has lost a worker has not succeeded, even if mpirun ends with 0.", of="MPIJob")
@pytest.mark.parametrize("loss", UNNOTICED, ids=NAME)
def test_a_job_of_open_mpi_5_that_has_lost_a_worker_never_succeeds(
    struck: Mapping[Loss, Story], loss: Loss
) -> None:
    one = struck[loss]
    end, says = one.end(), loss.says.format(job=one.job.name)
    print(one.lines(), *losing.last_messages(one.job), sep="\n")
    assert "Failed" in held(end), one.job.surroundings()
    state = one.told.wait(
        lambda state: bool(re.search(says, held(state).get("Failed", ""))),
        within=TOLD_WITHIN,
        what=f"{says} in {held(end)}",
        instead=one.lines,
    )

    assert re.match("WorkerLost|BackoffLimitExceeded", condition(state, "Failed")["reason"])
    assert not any("Succeeded" in held(each) for each in one.told.states)


@promise("A launcher that starts mpirun again itself is believed if its last ranks have ended well.", of="MPIJob")
@pytest.mark.sample(1)
@pytest.mark.parametrize("loss", BEGUN_ANEW, ids=NAME)
def test_a_launcher_that_begins_anew_is_believed_if_its_last_ranks_have_ended_well(
    struck: Mapping[Loss, Story], loss: Loss
) -> None:
    one = struck[loss]
    end = one.end()

    print(one.lines())
    if loss.image == "openmpi5" and "Failed" in held(end):
        assert condition(end, "Failed")["reason"] == "WorkerLost"
        return
    assert "Succeeded" in held(end), end.body["status"]
    assert {f"{one.job.name}-worker-{n} is one of 2" for n in (0, 1)} <= set(losing.said(one.job))
    assert one.messages("Restarting") == []
