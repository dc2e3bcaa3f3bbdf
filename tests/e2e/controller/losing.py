"""What a running job can lose, and what is told of it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.controller import longrun
from tests.e2e.controller.mpijobs import MpiJob, submit
from tests.e2e.ground import Namespace
from tests.kube import faults, nodes
from tests.kube.wait import until

RUNS_WITHIN = 180.0

COMMAND = ("mpirun", "--allow-run-as-root", "-n", "2", "--map-by", "node", "python3", "-c", longrun.SOURCE)

Strike = Callable[[MpiJob], None]


def start(namespace: Namespace, name: str, *, retries: int, **how: Any) -> MpiJob:
    """A job whose first attempt takes half a minute and whose next ones a second."""
    return submit(namespace, name, "openmpi4", COMMAND, runPolicy={"backoffLimit": retries}, **how)


def wait_until_ranks_run(job: MpiJob) -> None:
    """Until every worker has said that its rank has begun: they have found each other by then."""
    hosts = {f"{job.name}-worker-{n} runs first" for n in (0, 1)}
    until(lambda: hosts <= set(said(job)), within=RUNS_WITHIN, what=f"{hosts} in the launcher's log")


def said(job: MpiJob) -> list[str]:
    """What the launcher has said so far; nothing while it isn't there."""
    return job.namespace.kubectl("logs", f"job/{job.name}-launcher", check=False).stdout.splitlines()


def worker(job: MpiJob) -> str:
    """The worker that is struck."""
    return f"{job.name}-worker-1"


def launcher(job: MpiJob) -> str:
    [pod] = job.pods("launcher")
    return str(pod["metadata"]["name"])


def kill_worker_for_memory(job: MpiJob) -> None:
    faults.oom(job.namespace.kubectl, worker(job))


def evict_worker(job: MpiJob) -> None:
    """As `kubectl drain` does it."""
    body = {
        "apiVersion": "policy/v1beta1",
        "kind": "Eviction",
        "metadata": {"name": worker(job), "namespace": job.namespace.name},
    }
    path = f"/api/v1/namespaces/{job.namespace.name}/pods/{worker(job)}/eviction"
    job.namespace.kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(body))


def fill_disk_of_worker(job: MpiJob) -> None:
    """Its node evicts it for that: the job has to be started with DISK as its workers' limit."""
    job.namespace.kubectl("exec", worker(job), "--", "dd", "if=/dev/zero", "of=/big", "bs=1M", "count=8")


DISK = {"resources": {"limits": {"ephemeral-storage": "1Mi"}}}


def kill_launcher(job: MpiJob) -> None:
    """Its mpirun, by SIGKILL."""
    [pod] = job.pods("launcher")
    node = faults.node_named(pod["spec"]["nodeName"])
    [mpirun] = [pid for pid in nodes.container_pids(node, pod["metadata"]["uid"]) if command(pid) == "mpirun"]
    os.kill(mpirun, signal.SIGKILL)


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def delete_launcher(job: MpiJob) -> None:
    job.namespace.kubectl("delete", "pod", launcher(job), "--wait=false")


@dataclass(frozen=True)
class Told:
    """An event about a job."""

    kind: str
    reason: str
    message: str


def events(job: MpiJob) -> Sequence[Told]:
    """In the order in which they were told."""
    found = job.namespace.kubectl.get("events", f"--field-selector=involvedObject.name={job.name}")
    found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
    return [Told(one["type"], one["reason"], one["message"]) for one in found]
