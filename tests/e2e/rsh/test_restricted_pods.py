"""
A keeper works in pods that allow little: without libc, with nothing to write to, for a user without a name, with a
/tmp that executes nothing, with a tiny /dev/shm, and all of that together.

In a job's workers it always does, for it is mounted. Elsewhere it takes a folder that can be written and executed
from; where there is none, no command is started.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from mpirt.errors import ExitCode
from testbed.ground import Namespace
from testbed.kube.wait import Moment
from tests.e2e.rsh import agent, jobworkers
from tests.e2e.rsh.proxy import Break, Harm, Proxy, Way, served
from tests.e2e.rsh.starts import ENDS_WITHIN, kubeconfig_by_way_of, server_address
from tests.promises import promise

MIB = 1 << 20
UNKNOWN_USER = 2_000_000_123

# Gives back what it gets, then who started it.
COMMAND = "cat; tr '\\0' ' ' </proc/$PPID/cmdline; exit 7"
# Behind the greetings, in the midst of what flows both ways.
IN_THE_MIDST = Break(Way.DOWN, 24, Harm.RESET)


@dataclass(frozen=True)
class Restriction:
    """What a pod's container and spec say."""

    name: str
    container: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)

    def worker_of_job(self, namespace: Namespace) -> str:
        """With the keeper mounted as the controller mounts it."""
        [pod] = jobworkers.start(namespace, 1, "busybox", container=self.container, **self.spec)
        return pod

    def plain_worker(self, namespace: Namespace) -> str:
        """With nothing of mpirt's."""
        [pod] = namespace.workers(1, "busybox", container=self.container, **self.spec)
        return pod


def mounted(path: str, **empty_dir: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A volume of the pod's own at that path: fields of the container and of the spec."""
    return (
        {"volumeMounts": [{"name": "scratch", "mountPath": path}]},
        {"volumes": [{"name": "scratch", "emptyDir": empty_dir}]},
    )


TINY_SHM = mounted("/dev/shm", medium="Memory", sizeLimit="64Ki")
TMP = mounted("/tmp")

READ_ONLY = {"readOnlyRootFilesystem": True}
UNKNOWN = {"runAsNonRoot": True, "runAsUser": UNKNOWN_USER, "runAsGroup": UNKNOWN_USER}
BARRED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

# No volume is mounted so, therefore the main process does it.
_MOUNT = "mount -t tmpfs -o noexec,mode=1777 tmpfs /tmp"
_WAIT = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
NOEXEC_TMP = {
    "command": ["/bin/sh", "-c", f"{_MOUNT} && {_WAIT}"],
    "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}},
    # Ready means that it is mounted.
    "readinessProbe": {"exec": {"command": ["grep", "-q", "/tmp tmpfs rw,noexec", "/proc/mounts"]}},
}

# The test image has one static program, and no library.
NO_LIBC = Restriction("no libc")
READ_ONLY_ROOT = Restriction("read-only root", {"securityContext": READ_ONLY})
NO_SUCH_USER = Restriction("unknown user", {"securityContext": UNKNOWN})
NOEXEC = Restriction("noexec tmp", NOEXEC_TMP)
SMALL = Restriction("64 KiB of shm", *TINY_SHM)
READ_ONLY_BUT_TMP = Restriction("read-only root but /tmp", {"securityContext": READ_ONLY, **TMP[0]}, TMP[1])
# What can be written, the default /dev/shm, is mounted noexec.
NOEXEC_ALL = Restriction("only noexec is writable", {"securityContext": {**READ_ONLY, **UNKNOWN, **BARRED}})
ALL = Restriction(
    "all together", {"securityContext": {**READ_ONLY, **UNKNOWN, **BARRED}, **TINY_SHM[0]}, TINY_SHM[1]
)

OF_JOBS = (NO_LIBC, READ_ONLY_ROOT, NO_SUCH_USER, NOEXEC, SMALL, NOEXEC_ALL, ALL)
WHERE_IT_CAN_BE_SENT = (NO_LIBC, NO_SUCH_USER, NOEXEC, SMALL, READ_ONLY_BUT_TMP)
WHERE_IT_CANNOT = (READ_ONLY_ROOT, NOEXEC_ALL)


@promise("In a job's worker a command outlives its connection, however restricted the pod is.", of="mpirt-rsh")
@pytest.mark.sample(3)
@pytest.mark.parametrize("restriction", OF_JOBS, ids=lambda restriction: restriction.name)
def test_in_a_worker_of_a_job_the_command_survives_its_connection(
    namespace: Namespace, restriction: Restriction
) -> None:
    ended = asyncio.run(run(namespace, restriction.worker_of_job(namespace)))

    assert ended.is_right
    assert ended.parent.startswith("/etc/mpi/keeper-1-")


@promise("Without the controller, the agent uploads the keeper to a folder that allows execution.", of="mpirt-rsh")
@pytest.mark.sample(3)
@pytest.mark.parametrize("restriction", WHERE_IT_CAN_BE_SENT, ids=lambda restriction: restriction.name)
def test_in_another_pod_the_command_survives_its_connection(
    namespace: Namespace, restriction: Restriction
) -> None:
    ended = asyncio.run(run(namespace, restriction.plain_worker(namespace)))

    assert ended.is_right
    assert "/mpirt-keeper-1-" in ended.parent


@promise("Without a place for a keeper no command is started: 252, with the remedy.", of="mpirt-rsh")
@pytest.mark.parametrize("restriction", WHERE_IT_CANNOT, ids=lambda restriction: restriction.name)
def test_without_a_place_for_a_keeper_no_command_is_started(
    namespace: Namespace, restriction: Restriction
) -> None:
    pod = restriction.plain_worker(namespace)
    with agent.rsh(namespace, pod, "echo ran") as running:
        began = Moment.now()
        ended = running.end(within=20, since=began)

    assert (ended.code, ended.output) == (ExitCode.NO_SHELL, b"")
    assert f"no keeper can hold the command in pod {pod}, so it is not started" in ended.errors
    assert "mount an emptyDir at /tmp, without noexec, or the ConfigMap of an mpirt job" in ended.errors
    # Of which the agent's start and an exec take a part.
    assert ended.seconds < 3


@dataclass(frozen=True)
class Echoed:
    """How the command ended."""

    sent: bytes
    code: int | None
    output: bytes
    log: str

    @property
    def is_right(self) -> bool:
        """Its connection was lost, its code is right, and all that was sent came back. Says what is wrong."""
        assert "] state: detached" in self.log
        assert self.code == 7, self.log
        assert self.output[: len(self.sent)] == self.sent
        return True

    @property
    def parent(self) -> str:
        """The command line of the command's parent."""
        return self.output[len(self.sent) :].decode()


async def run(namespace: Namespace, pod: str) -> Echoed:
    """The command with a mebibyte of stdin, on a connection that is reset in the midst of it."""
    noise = os.urandom(MIB)
    proxy = Proxy(server_address(namespace), IN_THE_MIDST)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = kubeconfig_by_way_of(namespace, listener.getsockname()[1])
        env = {**os.environ, "KUBECONFIG": str(config), "MPIRT_LOG": "debug"}
        async with served(proxy, listener):
            process = await asyncio.create_subprocess_exec(
                str(agent.RSH),
                pod,
                COMMAND,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                output, log = await asyncio.wait_for(process.communicate(noise), ENDS_WITHIN)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
    return Echoed(noise, process.returncode, output, log.decode())
