"""
The controller is away for a moment: another version follows it, and a cleaner deletes launcher Jobs meanwhile.

It is this module's own, because it is stopped.
"""

from __future__ import annotations

import pytest

from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, NEVER
from tests.api.controllers import Controller, Replica, job_name
from tests.api.endings import FAILS, OUT_OF_MEMORY, SUCCEEDS, have, launcher, running
from tests.api.states import made_again
from tests.promises import promise
from tests.support.stories import condition, held

WITHIN = 90.0


@pytest.fixture
def job(alone: Controller) -> MpiJob:
    """One whose launcher runs until a test ends it."""
    made = submit(alone.namespace, job_name("gone"), "busybox", ("true",), annotations={"Launcher": {ENDS: NEVER}})
    made.wait_for("Running")
    return made


@promise("A launcher Job that a cleaner deletes after its end keeps its end, and is not run again.", of="MPIJob")
def test_a_launcher_that_ended_and_was_deleted_before_its_end_was_reported_keeps_its_end(job: MpiJob) -> None:
    let_end(job)
    delete_launcher_job(job)

    job.wait_for_end()

    assert job.condition("Succeeded")["status"] == "True"
    assert launchers(job) <= 1


@promise("A launcher Job that is deleted while no controller runs fails the job with LauncherGone.", of="MPIJob")
def test_a_launcher_that_ended_and_was_deleted_while_no_controller_ran_is_not_started_again(
    alone: Controller, job: MpiJob
) -> None:
    [replica] = alone.replicas
    without(replica, job)

    job.wait_for("Failed")

    assert job.condition("Failed")["reason"] == "LauncherGone"
    assert launchers(job) == 0
    assert made_again(job.namespace, job.name) == []

    job.namespace.kubectl("annotate", "mpijobs.kubeflow.org", job.name, "mpirt.dev/rerun=once")
    job.wait_for("Running")


def without(replica: Replica, job: MpiJob) -> None:
    """The controller is away while the launcher ends and its Job is deleted."""
    replica.end()
    try:
        let_end(job)
        delete_launcher_job(job)
    finally:
        replica.start()


def let_end(job: MpiJob) -> None:
    """The launcher succeeds, and its Job shows that."""
    name = f"{job.name}-launcher"
    job.namespace.kubectl("annotate", "pods", f"--selector=job-name={name}", f"{ENDS}=0", "--overwrite")
    job.namespace.kubectl("wait", f"job/{name}", "--for=condition=Complete", f"--timeout={WITHIN:g}s")


def delete_launcher_job(job: MpiJob) -> None:
    job.namespace.kubectl("delete", "job", f"{job.name}-launcher", "--wait=true")
    until(lambda: launchers(job) == 0, within=WITHIN, what="no pod of the launcher Job")


def launchers(job: MpiJob) -> int:
    return len(job.pods("launcher"))


@promise("An upgrade keeps the history of jobs, even one in the middle of a restart.", of="mpirt-controller")
def test_a_version_is_followed_in_the_middle_of_a_restart(alone: Controller) -> None:
    with running(alone, "upgrade", retries=3) as one:
        [replica] = alone.replicas
        worker, first = f"{one.job.name}-worker-1", launcher(one.job)
        have(one.job, worker, OUT_OF_MEMORY)
        one.told.wait(lambda state: worker in held(state).get("Running", ""), within=60, what="a dead worker")
        have(one.job, first, FAILS)
        told = condition(one.until("Restarting"), "Restarting")["message"]
        assert worker in told
        replica.end()

        replica.start()
        have(one.job, launcher(one.job), SUCCEEDS)
        end = one.end()

        assert condition(end, "Succeeded")["status"] == "True"
        assert condition(end, "Restarting")["message"] == f"The launcher had to start again: {told}"
        assert len(one.events("MPIJobRestarting")) == 1
