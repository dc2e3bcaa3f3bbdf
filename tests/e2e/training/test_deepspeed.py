"""DeepSpeed on two workers of a TrainingJob, by its runners for pdsh and for Open MPI; no image has ssh."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
from tests.e2e.controller.deployed import Deployed, job_name
from tests.e2e.training.jobs import Job
from tests.promises import promise

EXAMPLE = PROJECT / "examples" / "deepspeed"
# Several times what it takes where others keep the processors busy.
WITHIN = 240.0
RUNNERS = ("pdsh", "openmpi")

# Rank 0 waits for rank 1, which ends with a code of its own, or waits for ever.
WAITS = """
import os, sys, time, torch, deepspeed.ops
from deepspeed import comm
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed(dist_backend="gloo")
print(f"rank={comm.get_rank()} waits", flush=True)
if comm.get_rank() == 1:
    time.sleep(0 if "fails" in sys.argv else 3600)
    os._exit(7)  # mpi4py would wait for the others before a regular end
comm.all_reduce(torch.ones(1))
"""


def submit(controller: Deployed, name: str, command: Sequence[str], **spec: Any) -> Job:
    """The example's job with this cluster's image, and with another script beside its own."""
    namespace = controller.namespace
    files = {"train.py": (EXAMPLE / "train.py").read_text(encoding="utf-8"), "waits.py": WAITS}
    namespace.kubectl.apply({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deepspeed-train"}, "data": files,
    })  # fmt: skip
    body: dict[str, Any] = yaml.safe_load((EXAMPLE / "job.yaml").read_text(encoding="utf-8"))
    body["metadata"]["name"] = name
    body["spec"] |= spec
    for replica in body["spec"]["etReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["image"] = namespace.ground.image("deepspeed")
    [main] = body["spec"]["etReplicaSpecs"]["launcher"]["template"]["spec"]["containers"]
    main["command"] = list(command)
    namespace.kubectl.apply(body)
    return Job(namespace, name)


def words_of(job: Job) -> str:
    """What its launcher has said so far."""
    said = job.namespace.kubectl("logs", f"job/{job.name}-launcher", "--container=launcher", check=False)
    return said.stdout


def code_of(job: Job) -> int:
    """The exit code of its launcher, when that has ended."""

    def ended() -> Any:
        launchers = job.pods("launcher")
        statuses = launchers[0]["status"].get("containerStatuses", ()) if launchers else ()
        return next((each["state"].get("terminated") for each in statuses if each["name"] == "launcher"), None)

    code = int(until(ended, within=WITHIN, what=f"the end of {job.name}", instead=job.surroundings)["exitCode"])
    print(words_of(job))
    return code


def without_ranks(job: Job, number: int) -> None:
    """Wait until no process of a rank is left in the worker."""

    def ranks() -> list[str]:
        call = ("exec", job.worker(number), "--", "pgrep", "--list-full", "--full", "waits.py")
        found = job.namespace.kubectl(*call, check=False)
        return [line for line in found.stdout.splitlines() if "pgrep" not in line]

    until(lambda: not ranks(), within=WITHIN, what=f"no rank in worker {number}", instead=ranks)


@promise("DeepSpeed runs a rank on each worker, by pdsh and by Open MPI, without ssh.", of="TrainingJob")
@pytest.mark.parametrize("runner", RUNNERS)
def test_a_rank_runs_on_each_worker_and_they_reach_each_other(controller: Deployed, runner: str) -> None:
    job = submit(controller, job_name(runner), ["deepspeed", f"--launcher={runner}", "/train/train.py"])

    code = code_of(job)

    said = re.findall(r"host=\S+ rank=\d size=\d sum=\d", words_of(job))
    assert code == 0
    assert set(said) == {f"host={job.worker(rank)} rank={rank} size=2 sum=3" for rank in (0, 1)}
    until(lambda: job.phase() == "Succeeded", within=WITHIN, what="Succeeded", instead=job.surroundings)


@promise("A DeepSpeed rank that fails ends the launcher with its code, and no rank is left.", of="TrainingJob")
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.sample(1)
def test_a_rank_that_fails_is_the_launchers_failure_and_no_rank_is_left(controller: Deployed, runner: str) -> None:
    command = ["deepspeed", f"--launcher={runner}", "/train/waits.py", "fails"]
    job = submit(controller, job_name(runner), command, cleanPodPolicy="None")

    assert code_of(job) == 7
    until(lambda: job.phase() == "Failed", within=WITHIN, what="Failed", instead=job.surroundings)
    without_ranks(job, 0)
    without_ranks(job, 1)


@promise(
    "A DeepSpeed worker that is deleted fails the launcher, which names it, and no rank is left.", of="TrainingJob"
)
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.sample(1)
def test_a_worker_that_dies_ends_the_launcher_and_the_other_rank(controller: Deployed, runner: str) -> None:
    command = ["deepspeed", f"--launcher={runner}", "/train/waits.py"]
    job = submit(controller, job_name(runner), command, cleanPodPolicy="None")
    job.wait(lambda: words_of(job).count(" waits") == 2, "both ranks", within=WITHIN)

    job.namespace.kubectl("delete", "pod", job.worker(1), "--grace-period=1", "--wait=false")

    assert code_of(job) != 0
    assert f"pod {job.worker(1)} " in words_of(job)
    without_ranks(job, 0)
