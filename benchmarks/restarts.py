"""
From the death of one rank to all ranks running again, by the next attempt of the job's launcher.

Owns: the job, whose ranks say when they run, and then wait.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit

WORKERS = 8

_WITHIN = 60.0
# Kubernetes makes two dollar signs of four.
_RANK = "echo $$$$ > /tmp/rank; echo rank $OMPI_COMM_WORLD_RANK runs since $(date +%s.%N); exec sleep 3600"
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
    until(lambda: _moments(job, since=0), within=_WITHIN, what=f"all ranks of {name}", instead=job.surroundings)
    killed = float(namespace.kubectl.execute(job.worker(WORKERS - 1), "sh", "-c", _KILLS))
    again = until(
        lambda: _moments(job, since=killed),
        within=_WITHIN,
        what=f"all ranks of {name} again",
        instead=job.surroundings,
    )
    namespace.kubectl("delete", "mpijobs.kubeflow.org", name, "--cascade=foreground", timeout=_WITHIN)
    return max(again) - killed


def _moments(job: MpiJob, *, since: float) -> list[float]:
    """Since when each rank runs, of ranks that have started later than that; empty until all have."""
    for pod in job.pods("launcher"):
        log = job.namespace.kubectl("logs", pod["metadata"]["name"], check=False).stdout
        found = {rank: float(moment) for rank, moment in _RUNS.findall(log) if float(moment) > since}
        if len(found) == WORKERS:
            return [*found.values()]
    return []
