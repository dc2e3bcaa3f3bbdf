"""
Many sessions at once into one worker, beside ssh, which mpi-operator's launchers use.

Owns: what is run on either side. Clients run on this machine, as in a launcher. What a worker spends is not
measured.
"""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks import held
from benchmarks.frame import Report, command, compared
from benchmarks.place import ACCESS, environment, fresh_namespace
from testbed.ground import Namespace
from testbed.kube.progress import step
from testbed.kube.shell import run
from testbed.kube.wait import until
from tests.e2e.rsh import jobworkers

_IMAGE = "openmpi4-sshd"
_WITHIN = 60.0
# By default sshd refuses some of more than ten that come at once. As a worker's command it would not be started.
_SERVE = "mkdir -p /run/sshd /root/.ssh && /usr/sbin/sshd -o MaxStartups=10000"
_CLIENT = (
    "ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
    "-o", "LogLevel=ERROR",
)  # fmt: skip


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
        client = _admitted(namespace, pod)
        with environment(access, namespace, pod) as env:
            rows = held.beside(pod, [*client, held.HOLD], env, sessions, rounds)
    return compared(rows, ours="mpirt", theirs="ssh", notes=[f"{rounds} rounds; access as {access}"])


def _admitted(namespace: Namespace, pod: str) -> list[str]:
    """The words of a client, once the pod lets it in."""
    key = namespace.folder / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    public = Path(f"{key}.pub").read_text().strip()
    namespace.kubectl.execute(pod, "sh", "-c", f"{_SERVE} && echo '{public}' > /root/.ssh/authorized_keys")
    address = namespace.kubectl.get("pod", pod)["status"]["podIP"]
    client = [*_CLIENT, "-i", str(key), f"root@{address}"]
    until(lambda: run(*client, "true", check=False).returncode == 0, within=_WITHIN, what=f"ssh to {address}")
    return client
