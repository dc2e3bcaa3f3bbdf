"""No launcher before its workers, and words for what is missing."""

from __future__ import annotations

from tests.e2e.controller.deployed import job_name
from tests.e2e.controller.mpijobs import submit
from tests.e2e.ground import Namespace
from tests.kube.wait import until

COMMAND = ("mpirun", "--allow-run-as-root", "-n", "2", "hostname")


def test_a_launcher_waits_for_workers_that_take_their_time(jobs: Namespace) -> None:
    image = jobs.ground.image("openmpi4")
    slow = {
        "name": "mpi",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", "sleep 20; touch /tmp/ready; sleep 3600"],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1},
    }
    job = submit(jobs, job_name("slow"), "openmpi4", COMMAND, worker={"containers": [slow]})
    job.wait_for_end()

    [launcher] = job.pods("launcher")
    ready = [
        condition["lastTransitionTime"]
        for pod in job.pods("worker")
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert launcher["metadata"]["creationTimestamp"] >= max(ready)


def test_a_worker_that_never_comes_is_named_with_the_reason(jobs: Namespace) -> None:
    job = submit(jobs, job_name("never"), "openmpi4", COMMAND, worker={"nodeSelector": {"there": "is-none"}})

    until(
        lambda: "Unschedulable" in job.condition("Running").get("message", ""),
        within=60,
        what="a message that names the reason",
    )

    running = job.condition("Running")
    assert running["status"] == "False"
    assert f"{job.name}-worker-0" in running["message"]
    assert job.pods("launcher") == []
    jobs.kubectl("delete", "mpijobs.kubeflow.org", job.name, "--wait=false")
