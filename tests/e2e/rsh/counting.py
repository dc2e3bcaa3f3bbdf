"""
Jobs that count: each rank says who it is and its next number, until it is told that it is enough.

Owns: the kinds of jobs, starting one in a launcher pod with either agent, and what it said by now.
A job that nothing disturbed has numbers from 1 on, each once and in order, always by the same processes.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.ground import Namespace
from testbed.kube.errors import ClusterError
from testbed.kube.wait import until
from tests.e2e import files, kubectl_agent
from tests.e2e.elastic import training
from tests.e2e.horovod import PATIENT
from tests.e2e.rsh import launcher

ENOUGH = "/tmp/enough"
_DISCOVERY = "/usr/local/bin/mpirt-discover"
_OUT, _ERR = "/tmp/out", "/tmp/err"
_WORKERS = 2
_RANKS = 4
_LAST_LINES = 30
# Seconds between two numbers of a rank.
_PAUSE = 1

_SHELL = f'h=$(hostname); n=0; until [ -e {ENOUGH} ]; do n=$((n + 1)); echo "$h $$ $n"; sleep {_PAUSE}; done'

_TRAINING = f"""
import os, socket, sys, time, torch, horovod.torch as hvd

def train(state):
    while not state.is_over:
        time.sleep({_PAUSE})
        told = torch.tensor([float(os.path.exists("{ENOUGH}"))])
        state.is_over = bool(hvd.allreduce(told, op=hvd.Sum, name="told").item())
        state.step += 1
        print(socket.gethostname(), os.getpid(), state.step, flush=True)
        state.commit()

class Plain:
    step, is_over = 0, False
    commit = staticmethod(lambda: None)

hvd.init()
if "elastic" in sys.argv:
    hvd.elastic.run(train)(hvd.elastic.TorchState(step=0, is_over=False))
else:
    train(Plain())
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to start ranks on two workers."""

    name: str
    image: str
    ranks: int
    command: tuple[str, ...]
    """It reads the hosts from /etc/mpi/hostfile, or is told them."""
    agent: str
    """The variable that holds the agent's path."""
    variables: Mapping[str, str] = field(default_factory=dict)
    host_line: str = "{} slots=2"


# Both nodes may have fewer processors than ranks: Open MPI 5 then starts none that it would have to bind to one.
_MPIRUN = ("mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", str(_RANKS), "sh", "-c", _SHELL)

KINDS = (
    Kind(
        "Open MPI 4",
        "openmpi4",
        _RANKS,
        _MPIRUN,
        "OMPI_MCA_plm_rsh_agent",
        {"OMPI_MCA_orte_default_hostfile": launcher.HOSTFILE},
    ),
    Kind(
        "Open MPI 5",
        "openmpi5",
        _RANKS,
        _MPIRUN,
        "PRTE_MCA_plm_ssh_agent",
        {"PRTE_MCA_prte_default_hostfile": launcher.HOSTFILE},
    ),
    Kind(
        "MPICH",
        "mpich",
        _RANKS,
        ("mpiexec.hydra", "-n", str(_RANKS), "sh", "-c", _SHELL),
        "HYDRA_LAUNCHER_EXEC",
        {"HYDRA_LAUNCHER": "rsh", "HYDRA_HOST_FILE": launcher.HOSTFILE},
        host_line="{}:2",
    ),
    Kind(
        "horovodrun",
        "horovod",
        2,
        ("horovodrun", *PATIENT, "-np", "2", "-H", "worker-0:1,worker-1:1", "python3", "-c", _TRAINING),
        "OMPI_MCA_plm_rsh_agent",
        training.SELDOM,
    ),
    Kind(
        "horovodrun, elastic",
        "horovod",
        2,
        (
            *("horovodrun", *PATIENT, "-np", "2", "--min-np", "2"),
            *("--host-discovery-script", "mpirt-discover", "python3", "-c", _TRAINING, "elastic"),
        ),
        "OMPI_MCA_plm_rsh_agent",
        {"MPIRT_STATEFULSET": "worker", **training.SELDOM},
    ),
)


Numbers = Mapping[tuple[str, str], list[int]]
"""What each process has counted, by its host and pid."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was begun."""

    kind: Kind
    namespace: Namespace
    workers: list[str]

    def numbers(self) -> Numbers:
        """What each process has counted; nothing while that can't be asked."""
        counted: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for line in self._lines():
            words = line.rpartition("<stdout>:")[2].split()
            if len(words) == 3:
                host, pid, number = words
                counted[host, pid].append(int(number))
        return dict(counted)

    def code(self) -> int | None:
        """The launcher's exit code, once there is one."""
        last = (self._lines() or [""])[-1].split()
        return int(last[1]) if last[:1] == ["code"] else None

    def errors(self) -> str:
        """The end of what it wrote on stderr."""
        return "\n".join((self._file(_ERR) or "").splitlines()[-_LAST_LINES:])

    def wait_for_ranks(self, *, within: float) -> None:
        """Wait until every rank has begun to count."""
        until(
            lambda: len(self.numbers()) == self.kind.ranks or self.code() is not None,
            within=within,
            what=f"every rank of {self.kind.name}",
            instead=self.errors,
        )
        if self.code() is not None:
            raise ClusterError(f"{self.kind.name} has ended: {self.errors()}")

    def goes_on(self, before: Numbers, more: int = 4) -> bool:
        """Whether each of those processes has counted on since."""
        now = self.numbers()
        return all(len(now.get(who, [])) >= len(numbers) + more for who, numbers in before.items())

    def enough(self) -> None:
        """Tell the ranks to end."""
        for worker in self.workers:
            self.namespace.kubectl.execute(worker, "touch", ENOUGH)

    def _lines(self) -> list[str]:
        """The whole lines of its output. A kubelet that has just begun may know nothing of the pod yet."""
        return (self._file(_OUT) or "").rpartition("\n")[0].splitlines()

    def _file(self, path: str) -> str | None:
        done = self.namespace.kubectl("exec", "launcher", "--", "cat", path, check=False)
        return done.stdout if done.returncode == 0 else None


def begun(namespace: Namespace, kind: Kind, *, by_kubectl: bool = False) -> Job:
    """Start two workers, a launcher, and the job in it, in the background of that pod."""
    workers = namespace.workers(_WORKERS, kind.image)
    program = kubectl_agent.AGENT
    if by_kubectl:
        # orted wants to find its agent in the workers, too; their own sh will do.
        program += " : sh" if kind.image.startswith("openmpi") else ""
        kubectl_agent.launcher(namespace, kind.image, hosts=workers, host_line=kind.host_line)
        files.put(namespace, "launcher", _DISCOVERY, _static_discovery(workers), mode="755")
    else:
        launcher.start(namespace, kind.image, workers=workers, host_line=kind.host_line)
    # Hydra's proxies ask once, and a Service's name takes a moment.
    until(
        lambda: namespace.kubectl("exec", workers[0], "--", "getent", "hosts", "launcher", check=False).stdout,
        within=60,
        what="the launcher's name in the DNS",
    )
    settings = dict(kind.variables) | {kind.agent: program}
    line = shlex.join(["env", *(f"{name}={value}" for name, value in settings.items()), *kind.command])
    namespace.kubectl.execute("launcher", "sh", "-c", f"({line}; echo code $?) >{_OUT} 2>{_ERR} </dev/null &")
    return Job(kind, namespace, workers)


def _static_discovery(hosts: list[str]) -> bytes:
    """What people have where there is no mpirt-discover: a script that always says the same."""
    return "".join(["#!/bin/sh\n", *(f"echo {host}:1\n" for host in hosts)]).encode()


def is_whole(numbers: Numbers) -> bool:
    """Whether nothing was lost, written twice or out of order."""
    return all(each == list(range(1, len(each) + 1)) for each in numbers.values())


def ended(job: Job) -> int:
    """The code of a job that was told to end."""
    until(lambda: job.code() is not None, within=60, what=f"the end of {job.kind.name}", instead=job.errors)
    code = job.code()
    assert code is not None
    return code
