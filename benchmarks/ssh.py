"""
Many sessions at once into one worker, beside ssh, which mpi-operator's launchers use.

Owns: what is run on either side. Clients run on this machine. Of a worker, its cgroup's figures are read before
and with all sessions: so what a session costs there is known for both sides in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from benchmarks.agents import agent, switchboard_folder
from benchmarks.frame import Report, Row, Unmeasured, command, compared, in_turn
from benchmarks.place import ACCESS, environment, fresh_namespace, plain_environment
from benchmarks.programs import cpu_seconds, crowd, pss_bytes
from testbed.ground import Namespace
from testbed.kube.progress import step
from testbed.kube.shell import run
from testbed.kube.wait import until
from tests.e2e.rsh import jobworkers
from tests.support.switchboards import SWITCHBOARD, pid_of

_IMAGE = "openmpi4-sshd"
_UP = "up"
_HOLD = f"echo {_UP}; exec sleep 600"
_WITHIN = 60.0
_SETTLED_AFTER = 5.0
# By default sshd refuses some of more than ten that come at once. As a worker's command it would not be started.
_SERVE = "mkdir -p /run/sshd /root/.ssh && /usr/sbin/sshd -o MaxStartups=10000"
_CLIENT = (
    "ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
    "-o", "LogLevel=ERROR",
)  # fmt: skip
# A page of a program that several run is not counted for each.
_FIGURES = "grep '^anon ' /sys/fs/cgroup/memory.stat; grep '^usage_usec ' /sys/fs/cgroup/cpu.stat"
_WHAT = {
    "launch": "until the last is up, s",
    "clients_cpu": "clients: CPU until all are up, s",
    "clients_memory": "clients: memory of all, MB",
    "worker_cpu": "worker: CPU until all are up, s",
    "worker_memory": "worker: memory of all, MB",
}


@command(
    click.option("--sessions", type=click.IntRange(1), default=64, show_default=True, help="Held at once."),
    click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Pairs of such crowds."),
    ACCESS,
)  # fmt: skip
def ssh(*, sessions: int, rounds: int, access: str) -> Report:
    """Sessions at once into one worker: mpirt-rsh beside ssh, clients and worker. Needs an ssh client."""
    with fresh_namespace() as namespace:
        with step("a worker with sshd"):
            [pod] = jobworkers.start(namespace, 1, _IMAGE)
        worker = _Worker(namespace, pod)
        with environment(access, namespace, pod) as env, worker.admitting() as client:
            ours, theirs = partial(_ours, worker, env, sessions), partial(_theirs, worker, client, sessions)
            with step(f"{rounds} times {sessions} sessions of each"):
                pair = in_turn(rounds, ours, theirs, warm_up=True)
    rows = [
        Row(f"{key}_ratio_{sessions}", f"{sessions}: {what}", *([each[key] for each in side] for side in pair))
        for key, what in _WHAT.items()
    ]
    return compared(rows, ours="mpirt", theirs="ssh", notes=[f"{rounds} rounds; access as {access}"])


@dataclass(frozen=True, slots=True)
class _Worker:
    namespace: Namespace
    pod: str

    @contextmanager
    def admitting(self) -> Iterator[Sequence[str]]:
        """The words of a client that it lets in, once it does."""
        key = self.namespace.folder / "key"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        public = Path(f"{key}.pub").read_text()
        self._execute(_SERVE)
        self._execute(f"echo '{public.strip()}' > /root/.ssh/authorized_keys")
        address = self.namespace.kubectl.get("pod", self.pod)["status"]["podIP"]
        client = (*_CLIENT, "-i", str(key), f"root@{address}")
        until(lambda: run(*client, "true", check=False).returncode == 0, within=_WITHIN, what=f"ssh to {address}")
        yield client

    def figures(self) -> tuple[float, float]:
        """Seconds of CPU time so far, and megabytes of memory, of all that runs in it."""
        found = dict(line.split() for line in self._execute(_FIGURES).splitlines())
        try:
            return int(found["usage_usec"]) / 1e6, int(found["anon"]) / 1e6
        except KeyError as error:
            raise Unmeasured(f"the worker's cgroup has no {error}") from error

    def _execute(self, line: str) -> str:
        return self.namespace.kubectl.execute(self.pod, "sh", "-c", line)


def _ours(worker: _Worker, env: Mapping[str, str], count: int) -> dict[str, float]:
    """The agents and the switchboard that the first of them starts."""
    with switchboard_folder() as board:
        env, argv = {**env, SWITCHBOARD: str(board)}, agent(worker.pod, _HOLD)
        return _held(worker, argv, env, count, lambda: [pid_of(board)])


def _theirs(worker: _Worker, client: Sequence[str], count: int) -> dict[str, float]:
    return _held(worker, [*client, _HOLD], plain_environment(), count, list)


def _held(
    worker: _Worker, argv: Sequence[str], env: Mapping[str, str], count: int, others: Callable[[], list[int]]
) -> dict[str, float]:
    """So many of these programs, and what they have started beside them."""
    worker_cpu, worker_memory = worker.figures()
    with crowd([argv] * count, env=env, sign=_UP) as held:
        pids = others()
        cpu = held.cpu_seconds + sum(map(cpu_seconds, pids))
        time.sleep(_SETTLED_AFTER)
        worker_cpu_now, worker_memory_now = worker.figures()
        return {
            "launch": held.up_seconds,
            "clients_cpu": cpu,
            "clients_memory": (held.pss_bytes() + sum(map(pss_bytes, pids))) / 1e6,
            "worker_cpu": worker_cpu_now - worker_cpu,
            "worker_memory": worker_memory_now - worker_memory,
        }
