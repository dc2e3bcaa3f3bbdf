"""
Many sessions at once into one worker, beside ssh, which mpi-operator's launchers use.

Owns: what is run on either side. Clients run on this machine, as in a launcher. What a worker spends is not
measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from benchmarks.agents import agent, switchboard_folder
from benchmarks.frame import Report, Row, command, compared, in_turn
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
_WHAT = {
    "launch": "until the last is up, s",
    "cpu": "CPU of all clients until then, s",
    "memory": "memory of all clients, MB",
}


@command(
    click.option("--sessions", type=click.IntRange(1), default=64, show_default=True, help="Held by each."),
    click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Pairs of such crowds."),
    ACCESS,
)  # fmt: skip
def ssh(*, sessions: int, rounds: int, access: str) -> Report:
    """Sessions at once into one worker: the launcher's half of mpirt-rsh beside ssh. Needs an ssh client."""
    with fresh_namespace() as namespace:
        with step("a worker with sshd"):
            [pod] = jobworkers.start(namespace, 1, _IMAGE)
        with environment(access, namespace, pod) as env, _admitting(namespace, pod) as client:
            ours, theirs = partial(_ours, pod, env, sessions), partial(_theirs, client, sessions)
            with step(f"{rounds} times {sessions} sessions of each"):
                pair = in_turn(rounds, ours, theirs, warm_up=True)
    rows = [
        Row(f"{key}_ratio_{sessions}", f"{sessions}: {what}", *([each[key] for each in side] for side in pair))
        for key, what in _WHAT.items()
    ]
    return compared(rows, ours="mpirt", theirs="ssh", notes=[f"{rounds} rounds; access as {access}"])


@contextmanager
def _admitting(namespace: Namespace, pod: str) -> Iterator[Sequence[str]]:
    """The words of a client that the pod lets in, once it does."""
    key = namespace.folder / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    public = Path(f"{key}.pub").read_text().strip()
    namespace.kubectl.execute(pod, "sh", "-c", f"{_SERVE} && echo '{public}' > /root/.ssh/authorized_keys")
    address = namespace.kubectl.get("pod", pod)["status"]["podIP"]
    client = (*_CLIENT, "-i", str(key), f"root@{address}")
    until(lambda: run(*client, "true", check=False).returncode == 0, within=_WITHIN, what=f"ssh to {address}")
    yield client


def _ours(pod: str, env: Mapping[str, str], count: int) -> dict[str, float]:
    """The agents and the switchboard that the first of them starts."""
    with switchboard_folder() as board:
        return _held(agent(pod, _HOLD), {**env, SWITCHBOARD: str(board)}, count, lambda: [pid_of(board)])


def _theirs(client: Sequence[str], count: int) -> dict[str, float]:
    return _held([*client, _HOLD], plain_environment(), count, list)


def _held(
    argv: Sequence[str], env: Mapping[str, str], count: int, others: Callable[[], list[int]]
) -> dict[str, float]:
    """So many of these programs, and what they have started beside them."""
    with crowd([argv] * count, env=env, sign=_UP) as held:
        pids = others()
        cpu = held.cpu_seconds + sum(map(cpu_seconds, pids))
        time.sleep(_SETTLED_AFTER)
        memory = held.pss_bytes() + sum(map(pss_bytes, pids))
        return {"launch": held.up_seconds, "cpu": cpu, "memory": memory / 1e6}
