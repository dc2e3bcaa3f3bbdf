"""Another version of the controller goes on where the one before it was, in the middle of a restart too."""

from __future__ import annotations

from pathlib import Path

from testbed.ground import Ground
from testbed.plane.plane import Plane
from tests.api import controllers
from tests.api.endings import FAILS, OUT_OF_MEMORY, SUCCEEDS, have, launcher, running
from tests.promises import promise
from tests.support.stories import condition, held


@promise("An upgrade keeps the history of jobs, even one in the middle of a restart.", of="mpirt-controller")
def test_a_version_is_followed_in_the_middle_of_a_restart(plane: Plane, cluster: Ground, tmp_path: Path) -> None:
    with (
        controllers.passing(plane, cluster, tmp_path) as installed,
        running(installed, "upgrade", retries=3) as one,
    ):
        [replica] = installed.replicas
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
