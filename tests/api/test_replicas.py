"""
Two replicas, of which one acts, also while jobs are being made and one is killed or stands still.

All that controllers write passes through a proxy, whose record is the evidence: who wrote what when, who held the
lease then, and what the API server answered.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpirt.errors import ExitCode
from testbed.ground import Ground
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, manifest
from testbed.plane.children import Child
from testbed.plane.plane import Plane
from testbed.plane.stages import ENDS, NEVER
from tests.api import controllers
from tests.api.apiproxy import Hold, Where, Write
from tests.api.beds import Bed, beds, intruders, is_for_job, made_twice
from tests.api.controllers import Replica, job_name
from tests.promises import promise

# Twenty seconds are promised; a machine that is busy with other things gets more.
WITHIN = 45.0
ACTS_AT_ALL_WITHIN = 180.0

JOBS = 5
# No thread takes as long from one answer to the next write.
QUIET_SECONDS = 1.0
# In the midst of making them: each takes nine writes before its workers are Ready.
WRITES = 20


@dataclass(frozen=True)
class Change:
    """One process stopped in the midst of its work, and another one acted."""

    jobs: list[MpiJob]
    leader: Replica
    process: Child
    """The one of that replica that was stopped."""
    took: float
    """Seconds to the first write of the other."""
    over: float
    """When the process was dead, or went on."""


@pytest.fixture(scope="module")
def bed(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with beds(plane, cluster, tmp_path_factory.mktemp("replicas"), 1) as [made]:
        yield made


@pytest.fixture(scope="module")
def running(bed: Bed) -> MpiJob:
    """A job that runs while others come and controllers go."""
    [job] = submit(bed, [job_name("runs")], annotations={"Launcher": {ENDS: NEVER}})
    job.wait_for("Running")
    return job


@pytest.fixture(scope="module")
def killed(bed: Bed, running: MpiJob) -> Change:
    """The leader was killed while it made jobs, none of its threads knowing what became of a write."""
    jobs, hold = make_jobs(bed)
    leader = bed.controller.replica(hold.wait(WITHIN).sender)
    process = leader.process
    process.kill()
    begun = time.monotonic()
    hold.release()
    return Change(jobs, leader, process, others_act(bed, begun) - begun, begun)


@pytest.fixture(scope="module")
def frozen(bed: Bed, killed: Change) -> Change:
    """The next leader stood still while it made jobs, until the other acted; then it went on."""
    bed.controller.wait_until_ready()
    jobs, hold = make_jobs(bed)
    leader = bed.controller.replica(hold.wait(WITHIN).sender)
    process = leader.process
    until(lambda: is_quiet(bed, leader), within=WITHIN, what="all threads of the leader to wait for an answer")
    process.freeze()
    begun = time.monotonic()
    try:
        took = others_act(bed, begun) - begun
        # All its threads will find their answers, and go on in the midst of a plan.
        hold.release()
    finally:
        over = time.monotonic()
        process.thaw()
    return Change(jobs, leader, process, took, over)


class TestWhileJobsAreMade:
    @promise("When the leader is killed or stands still, the other replica takes over.", of="mpirt-controller")
    def test_when_the_leader_is_killed_or_stands_still_another_process_acts(
        self, killed: Change, frozen: Change
    ) -> None:
        print(f"another process acted {killed.took:.1f} s after a kill, {frozen.took:.1f} s after a stop")

        assert max(killed.took, frozen.took) < WITHIN

    @promise("A replica without the lease writes nothing.", of="mpirt-controller")
    def test_a_leader_that_goes_on_when_another_acts_writes_nothing_and_ends(
        self, bed: Bed, frozen: Change
    ) -> None:
        process = frozen.process
        until(lambda: process.is_over, within=WITHIN, what="the end of the process that was stopped")

        late = [w for w in bed.proxy.writes() if w.sender == frozen.leader.name and w.at > frozen.over]
        assert [f"{write} {write.name}" for write in late if is_for_job(write)] == []
        assert intruders(bed.proxy.writes()) == []
        assert process.process.returncode == ExitCode.UNREACHABLE

    def test_every_job_is_run_once(self, killed: Change, frozen: Change) -> None:
        for job in (*killed.jobs, *frozen.jobs):
            job.wait_for_end()

        launchers = [job.pods("launcher") for job in (*killed.jobs, *frozen.jobs)]
        assert [len(pods) for pods in launchers] == [1] * JOBS * 2
        assert {starts(pod) for [pod] in launchers} == {1}

    @promise("Jobs that run go on while no controller acts.", of="mpirt-controller")
    @pytest.mark.usefixtures("frozen")
    def test_a_job_that_ran_meanwhile_runs_on(self, running: MpiJob) -> None:
        [launcher] = running.pods("launcher")

        assert (launcher["status"]["phase"], starts(launcher)) == ("Running", 1)
        assert running.holds("Running")

    def test_no_object_is_made_by_both(self, bed: Bed, frozen: Change) -> None:
        writers = [{write.sender for write in bed.writes_for(job.name)} for job in frozen.jobs]

        assert max(map(len, writers)) == 2, "no job was begun by one and ended by the other"
        assert made_twice(bed.proxy.writes()) == []


@promise("On SIGTERM a controller releases the lease and ends with 0.", of="mpirt-controller")
def test_a_leader_that_is_asked_to_end_leaves_the_lease_to_the_other(
    plane: Plane, cluster: Ground, tmp_path: Path
) -> None:
    with controllers.passing(plane, cluster, tmp_path, replicas=2) as pair:
        leader = pair.leader()
        [other] = [each.name for each in pair.replicas if each.name != leader]

        pair.replica(leader).end()

        until(lambda: pair.leader() == other, within=WITHIN, what="another leader")
        assert pair.replica(leader).ends == [ExitCode.OK]


def submit(
    bed: Bed, names: Sequence[str], *, annotations: Mapping[str, Mapping[str, str]] | None = None
) -> list[MpiJob]:
    """Create jobs of one worker at once."""
    image = bed.namespace.ground.image("busybox")
    nothing: dict[str, object] = {}
    worker: dict[str, object] = {"topologySpreadConstraints": []}
    bed.namespace.kubectl.apply(
        *(
            manifest(
                name,
                image,
                ("true",),
                workers=1,
                worker=worker,
                launcher=nothing,
                container=nothing,
                annotations=annotations,
            )
            for name in names
        )
    )
    return [MpiJob(bed.namespace, name) for name in names]


def make_jobs(bed: Bed) -> tuple[list[MpiJob], Hold]:
    """Create jobs, and hold up the answers to the controller from some write in their midst on."""
    names = [job_name("many") for _ in range(JOBS)]
    numbers, leader = itertools.count(1), set[str]()

    def is_late(write: Write) -> bool:
        if not any(name in write.name for name in names) or next(numbers) < WRITES:
            return False
        leader.update([] if leader else [write.sender])
        return write.sender in leader

    hold = bed.proxy.hold(Where.AFTER, is_late)
    return submit(bed, names), hold


def others_act(bed: Bed, begun: float) -> float:
    """Wait for another process to write, and tell when it did."""

    def first() -> Write | None:
        later = (write for write in bed.proxy.writes() if write.at > begun and write.is_good)
        return next(filter(is_for_job, later), None)

    found = until(first, within=ACTS_AT_ALL_WITHIN, what="another process to act")
    assert found is not None
    return found.at


def is_quiet(bed: Bed, leader: Replica) -> bool:
    """
    Whether nothing of it is on its way.

    What it has been allowed to send and has not sent comes when it goes on, and no controller can do anything
    about that.
    """
    sent = (write.at for write in bed.proxy.writes() if write.sender == leader.name and is_for_job(write))
    return time.monotonic() - max(sent) > QUIET_SECONDS


def starts(pod: dict[str, object]) -> int:
    """How often the main container of a pod was started."""
    status = pod["status"]
    assert isinstance(status, dict)
    return 1 + int(status["containerStatuses"][0]["restartCount"])
