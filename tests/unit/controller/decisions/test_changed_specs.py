"""Lives of jobs whose spec changes."""

from __future__ import annotations

import pytest

from mpirt.controller.model.actions import Rejection
from tests.unit.controller import pods
from tests.unit.controller.jobs import container, mpi_job, template
from tests.unit.controller.world import started, with_workers, writes

OTHER_LAUNCHER = template(container("mpi", command=["other"]))
OTHER_WORKER = template(container("worker", image="mpi:5"))


@pytest.mark.uncounted
class TestChanges:
    def test_of_the_number_of_workers_are_followed_and_the_launcher_runs_on(self) -> None:
        world = started()
        world.job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 3

        done = world.settle()

        assert writes(done) == ["patch ConfigMap", "patch StatefulSet"]
        assert world.get("ConfigMap")["data"]["hostfile"].splitlines()[-1] == "train-worker-2 slots=1"
        assert world.get("StatefulSet")["spec"]["replicas"] == 3

    def test_of_the_launchers_template_replace_it(self) -> None:
        world = started()
        world.change(**mpi_job(launcher=OTHER_LAUNCHER)["spec"])

        done = world.settle()

        assert writes(done)[:5] == ["try Job", "tell MPIJobRestarting", "status", "try Job", "delete Job"]
        assert world.condition("Restarting")[2] == "the launcher's template was changed"
        main = world.get("Job")["spec"]["template"]["spec"]["containers"][0]
        assert main["command"][-1] == "other"

    def test_of_the_workers_template_roll_them_and_the_launcher_starts_after_that(self) -> None:
        world = started()
        world.change(**mpi_job(worker=OTHER_WORKER)["spec"])

        done = world.settle()

        assert writes(done)[:2] == ["try StatefulSet", "patch StatefulSet"]
        assert writes(done)[2:5] == ["tell MPIJobRestarting", "status", "delete Job"]
        assert "Job" not in world.kinds()
        assert world.condition("Restarting")[2] == "the workers' template was changed"
        world.workers_are(pods.worker(0), pods.worker(1))
        assert writes(world.settle())[0] == "create Job"

    def test_of_the_workers_template_leave_an_elastic_jobs_launcher_alone(self) -> None:
        world = started(elastic={"minReplicas": 1})
        world.change(**mpi_job(worker=OTHER_WORKER)["spec"])

        done = world.settle()

        assert writes(done) == ["try StatefulSet", "patch StatefulSet", "patch Job"]
        assert world.get("Job")["metadata"]["uid"] == "uid-of-Job"

    def test_that_the_api_server_refuses_touch_nothing_that_runs(self) -> None:
        world = started()
        world.refuse["train-worker"] = Rejection("StatefulSet", "", "image: Required value", final=True)
        world.change(**mpi_job(worker=OTHER_WORKER)["spec"])

        done = world.settle()

        assert writes(done) == ["try StatefulSet", "tell MPIJobFailedValidation", "status"]
        is_running, reason, message = world.condition("Running")
        assert (is_running, reason) == (True, "MPIJobFailedValidation")
        assert message == (
            "The changed spec is ignored, and the job runs on with the previous one: "
            "spec.mpiReplicaSpecs.Worker.template: "
            "the API server refuses it: image: Required value"
        )

    def test_of_a_finished_job_start_nothing(self) -> None:
        world = started()
        world.finish(succeeded=1)
        world.change(**mpi_job(launcher=OTHER_LAUNCHER)["spec"])

        assert world.later(60) == []

    def test_that_name_an_account_remove_ours(self) -> None:
        world = with_workers(job=mpi_job(launcherCreationPolicy="AtStartup"))
        world.settle()
        world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["serviceAccountName"] = "ann"

        done = world.settle()

        assert [one for one in writes(done) if "RoleBinding" in one or "ServiceAccount" in one] == [
            "patch RoleBinding",
            "delete ServiceAccount",
        ]
