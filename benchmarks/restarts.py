"""
From the death of one rank to all ranks running again, by the next attempt of the job's launcher.

Owns: the job, whose ranks say when they run, and then wait.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.frame import Unmeasured
from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit

WORKERS = 8

_WITHIN = 120.0
_RANK = "echo $$ > /tmp/rank; echo rank $OMPI_COMM_WORLD_RANK runs since $(date +%s.%N); exec sleep 3600"
_KILLS = "date +%s.%N; kill -9 $(cat /tmp/rank)"
_RUNS = re.compile(r"^rank (\d+) runs since (\d+\.\d+)$", re.MULTILINE)


def seconds(namespace: Namespace, name: str, image: str, worker: Sequence[str], begins: Sequence[str]) -> float:
    """Run such a job; returns after how many seconds all ranks run again. `worker` is what a worker runs."""
    container = {"name": "mpi", "image": namespace.ground.image(image), "command": [*worker]}
    mpirun = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(WORKERS), "sh", "-c", _RANK)
    job = submit(
        namespace,
        name,
        image,
        (*begins, *mpirun),
        workers=WORKERS,
        worker={"containers": [container], "topologySpreadConstraints": []},
    )
    until(lambda: _moments(job, set()), within=_WITHIN, what=f"all ranks of {name}", instead=job.surroundings)
    before = {str(pod["metadata"]["name"]) for pod in job.pods("launcher")}
    killed = float(namespace.kubectl.execute(job.worker(WORKERS - 1), "sh", "-c", _KILLS))
    again = until(
        lambda: _moments(job, before), within=_WITHIN, what=f"all ranks of {name} again", instead=job.surroundings
    )
    namespace.kubectl("delete", "mpijobs.kubeflow.org", name, "--cascade=foreground", timeout=_WITHIN)
    if min(again) < killed:
        raise Unmeasured(f"a rank of {name} ran before another was killed")
    return max(again) - killed


def _moments(job: MpiJob, before: set[str]) -> list[float]:
    """Since when each rank runs by the log of another launcher than these; empty until all do."""
    for pod in job.pods("launcher"):
        if pod["metadata"]["name"] in before:
            continue
        log = job.namespace.kubectl("logs", pod["metadata"]["name"], check=False).stdout
        found = dict(_RUNS.findall(log))
        if len(found) == WORKERS:
            return [float(moment) for moment in found.values()]
    return []
