"""What a running job can lose."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.ground import Namespace
from testbed.kube import faults, nodes
from testbed.manifests import idle_container
from testbed.mpijobs import MpiJob, submit

# A launcher that starts its ranks anew until they have come to a good end.
PATIENTLY = ("/bin/sh", "-c", 'until "$@"; do echo "ended with $?"; sleep 1; done', "sh")


# One that drops the code of its mpirun, as `mpirun ... | tee log` does.
PIPED = ("/bin/sh", "-c", '"$@" | cat', "sh")

_OPEN_MPI = ("mpirun", "--allow-run-as-root", "-n", "2", "--map-by", "node")
_MPICH = ("mpiexec", "-n", "2", "-ppn", "1")


def command_of(program: str, *, image: str) -> tuple[str, ...]:
    """Two ranks of a Python program, each on a worker of its own."""
    return (*(_MPICH if image == "mpich" else _OPEN_MPI), "python3", "-c", program)


# A probe that fails when there is such a file. A busy machine has time for it.
_FAILS = "/tmp/fails"
PROBE = {
    "exec": {"command": ["test", "!", "-e", _FAILS]},
    "periodSeconds": 1,
    "timeoutSeconds": 30,
    "failureThreshold": 1,
}

Strike = Callable[[MpiJob], None]


def start(
    namespace: Namespace,
    name: str,
    *,
    retries: int,
    limits: Mapping[str, str] | None = None,
    image: str = "openmpi4",
    probe: Mapping[str, Any] | None = None,
    before: Sequence[str] = (),
    program: str = "",
    policy: Mapping[str, Any] | None = None,
    **pods: Any,
) -> MpiJob:
    """
    A job whose first attempt takes minutes, and the next ones a second; limits and probe are the workers'.

    `before`: what runs mpirun. `program`: another long_program() than that. `policy`: more of its runPolicy.
    """
    idle = {**idle_container(namespace.ground.image(image)), "resources": {"limits": dict(limits or {})}}
    if probe:
        idle["livenessProbe"] = dict(probe)
    worker = {"containers": [idle], **pods.pop("worker", {})}
    command = (*before, *command_of(program or long_program(), image=image))
    run = {"backoffLimit": retries, **(policy or {})}
    return submit(namespace, name, image, command, worker=worker, runPolicy=run, **pods)


def wait_until_ranks_run(job: MpiJob) -> None:
    """Until every worker has said that its rank has begun: they have found each other by then."""
    awaited = {f"{job.name}-worker-{n} runs first" for n in (0, 1)}
    argv = job.namespace.kubectl.argv("logs", "--follow", f"job/{job.name}-launcher")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        for line in following.stdout:
            awaited.discard(line.rstrip())
            if not awaited:
                break
        following.terminate()
    assert not awaited, f"the launcher's log has no word of {awaited}"


def said(job: MpiJob) -> list[str]:
    """What the newest launcher pod has said."""
    pods = sorted(job.pods("launcher"), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    return job.namespace.kubectl("logs", pods[-1]["metadata"]["name"]).stdout.splitlines()


def last_messages(job: MpiJob) -> list[str]:
    """What the containers of its launchers have left, for whom a test fails."""
    states = [one["state"] for pod in job.pods("launcher") for one in pod["status"]["containerStatuses"]]
    return [str(state["terminated"].get("message")) for state in states if "terminated" in state]


def worker(job: MpiJob) -> str:
    """The worker that is struck."""
    return f"{job.name}-worker-1"


def kill_worker_for_memory(job: MpiJob) -> None:
    faults.oom(job.namespace.kubectl, worker(job))


def evict_worker(job: MpiJob) -> None:
    """As `kubectl drain` does it."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": worker(job), "namespace": job.namespace.name},
    }
    path = f"/api/v1/namespaces/{job.namespace.name}/pods/{worker(job)}/eviction"
    job.namespace.kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(body))


# Several times what Open MPI itself writes.
LITTLE_DISK = {"ephemeral-storage": "64Mi"}


def fill_disk_of_worker(job: MpiJob) -> None:
    """Its node evicts it for that, if it has LITTLE_DISK: at times before all is written."""
    fill = ("dd", "if=/dev/zero", "of=/big", "bs=1M", "count=96")
    job.namespace.kubectl("exec", worker(job), "--", *fill, check=False)


def delete_worker(job: MpiJob) -> None:
    job.namespace.kubectl("delete", "pod", worker(job), "--wait=false")


def end_worker(job: MpiJob) -> None:
    """Its first process, which takes a TERM for a good end."""
    job.namespace.kubectl("exec", worker(job), "--", "/bin/sh", "-c", "kill -TERM 1", check=False)


def fail_probe_of_worker(job: MpiJob) -> None:
    """Its kubelet starts its container again."""
    job.namespace.kubectl("exec", worker(job), "--", "touch", _FAILS, check=False)


def delete_worker_by_force(job: MpiJob) -> None:
    """The StatefulSet makes another at once, so its termination can't be observed."""
    job.namespace.kubectl("delete", "pod", worker(job), "--grace-period=0", "--force")


def kill_launcher(job: MpiJob) -> None:
    """Its mpirun, by SIGKILL."""
    [pod] = job.pods("launcher")
    node = faults.node_named(pod["spec"]["nodeName"])
    [mpirun] = [pid for pid in nodes.container_pids(node, pod["metadata"]["uid"]) if command(pid) == "mpirun"]
    os.kill(mpirun, signal.SIGKILL)


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def long_program(*, first: float = 180.0, again: float = 0.0, last: float = 0.0) -> str:
    """The program, whose attempts take so many seconds; its ranks leave MPI `last` seconds before their end."""
    return _SOURCE.replace("AGAIN", str(again)).replace("FIRST", str(first)).replace("LAST", str(last))


_SOURCE = """
import ctypes, os, socket, time

def handle(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
try:
    mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
    world, integer, largest, total = map(
        handle, ("ompi_mpi_comm_world", "ompi_mpi_int", "ompi_mpi_op_max", "ompi_mpi_op_sum"))
    ignored = None
except OSError:
    # MPICH, whose handles are numbers.
    mpi = ctypes.CDLL("libmpich.so.12", mode=ctypes.RTLD_GLOBAL)
    world, integer, largest, total = 0x44000000, 0x4C000405, 0x58000001, 0x58000003
    ignored = ctypes.c_void_p(1)
def over_all(value, how):
    mine, found, request, done = ctypes.c_int(value), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    mpi.MPI_Iallreduce(ctypes.byref(mine), ctypes.byref(found), 1, integer, how, world, ctypes.byref(request))
    while not done.value:
        time.sleep(0.01)
        mpi.MPI_Test(ctypes.byref(request), ctypes.byref(done), ignored)
    return found.value

trace, host = "/tmp/was-here", socket.gethostname()
mpi.MPI_Init(None, None)
again = over_all(os.path.exists(trace), largest)
open(trace, "w").close()
print(f"{host} runs {'again' if again else 'first'}", flush=True)
until, ranks = time.monotonic() + (AGAIN if again else FIRST), over_all(1, total)
while over_all(time.monotonic() < until, largest):
    time.sleep(0.1)
mpi.MPI_Finalize()
time.sleep(LAST)
print(f"{host} is one of {ranks}", flush=True)
"""
