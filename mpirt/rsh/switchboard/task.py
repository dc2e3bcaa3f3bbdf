"""
The task of one command: what its words ask for, and what the environment does.

Owns: the variables that are about one command only, their form and limits, the keepers that this installation has,
and what tells one start of a launcher's container from every other. It tells launchers apart and does not order
them, which would take a clock. The environment is handed in: it is another process's.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import mpirt.keeper
from mpirt import names
from mpirt.errors import UsageError
from mpirt.kubeapi.request.channels import V4, V5
from mpirt.rsh.invocation.argv import Invocation
from mpirt.rsh.invocation.options import LONGEST, of_variable, read_number
from mpirt.rsh.invocation.order import SHELL, Order, command_line, exported
from mpirt.rsh.pod.liveness import ASK_EVERY, DEAD_AFTER, Pace
from mpirt.rsh.protocol.entrance import Keepers
from mpirt.rsh.protocol.keeperframes import LONGEST_JOB, Fence
from mpirt.rsh.session.task import WATCH_AFTER, Grace, Holding, Patience, Task

CONNECT_TIMEOUT = "MPIRT_CONNECT_TIMEOUT"

_DEFAULT_CONNECT_SECONDS = 60.0
_PROTOCOLS = {"v4": V4, "v5": V5}


def make_task(
    asked: Invocation,
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    pod: str,
    nonce: str,
    has_stdin: bool,
    holding: Holding,
    watch_after: float = WATCH_AFTER,
    is_early: bool = False,
) -> Task:
    """`words` are those of the command as they are sent."""
    order = Order(
        nonce,
        command_line(words),
        has_stdin=has_stdin and not asked.null_stdin,
        environment=exported(asked.send_env, asked.set_env, environ),
        shell=environ.get(names.SHELL_VARIABLE) or SHELL,
    )
    return Task(
        pod,
        order,
        container=asked.container or environ.get(names.CONTAINER_VARIABLE, ""),
        connect_seconds=connect_seconds(asked, environ),
        attempts=asked.attempts,
        protocol=_protocol(environ),
        holding=holding,
        grace=grace(environ),
        pace=pace(holding, alive_seconds=asked.alive_seconds, alive_count=asked.alive_count),
        host=asked.pod if asked.is_address else "",
        watch_after=watch_after,
        is_early=is_early,
    )


def connect_seconds(asked: Invocation, environ: Mapping[str, str]) -> float:
    """For how long a shell in the pod is looked for."""
    if asked.connect_seconds is not None:
        return asked.connect_seconds
    return of_variable(environ, CONNECT_TIMEOUT, _DEFAULT_CONNECT_SECONDS, may_be_zero=False)


def wait_seconds(environ: Mapping[str, str]) -> float:
    """For how long its pod may take to be Ready; 0: that is not waited for."""
    return of_variable(environ, names.WAIT_VARIABLE, 0.0)


def wants_log(asked: Invocation, environ: Mapping[str, str]) -> bool:
    """Whether the person wants to see everything."""
    return asked.verbose or environ.get(names.LOG_VARIABLE) == "debug"


def _protocol(environ: Mapping[str, str]) -> str:
    name = environ.get(names.PROTOCOL_VARIABLE) or "v4"
    if name not in _PROTOCOLS:
        raise UsageError(f"{names.PROTOCOL_VARIABLE}={name[:20]}: expected {' or '.join(_PROTOCOLS)}")
    return _PROTOCOLS[name]


# A keeper counts what it hears from us: at least three times in a lease.
_BEATS_PER_LEASE = 3
_LARGEST_ATTEMPT = 2**64 - 1
# A keeper takes silence for our end after 40 s.
_LARGEST_PAUSE = 10.0
# ssh's own.
_ALIVE_COUNT = 3


def installed_keepers() -> Keepers:
    """Those that this installation has."""
    files = {arch: mpirt.keeper.read(arch) for arch in mpirt.keeper.ARCHITECTURES}
    return Keepers({arch: data for arch, data in files.items() if data is not None})


def holding(
    environ: Mapping[str, str], keepers: Keepers, *, ask_every: Callable[[], float] | None = None
) -> Holding:
    """How a keeper is to hold the command. A process with many commands asks it less often (Holding.ask_every)."""
    patience = Patience(
        lease=of_variable(environ, names.LEASE_VARIABLE, Patience().lease),
        node=of_variable(environ, names.NODE_PATIENCE_VARIABLE, Patience().node),
    )
    return Holding(keepers, patience=patience, fence=_fence(environ), ask_every=ask_every)


def grace(environ: Mapping[str, str]) -> Grace:
    """How long a command that is to end has for that."""
    asked = environ.get(names.GRACE_VARIABLE)
    return Grace(of_variable(environ, names.GRACE_VARIABLE, 0.0)) if asked else Grace()


def pace(held: Holding, *, alive_seconds: float | None, alive_count: int | None) -> Pace:
    """
    How often to ask for a sign of life, and how long to bear that there is none.

    As ssh's ServerAliveInterval and ServerAliveCountMax have it, None where they are not given; and often enough
    for the pod's side to know that we are there.
    """
    asked = ASK_EVERY if alive_seconds is None else alive_seconds
    lease = held.patience.lease
    often_enough = min(asked or ASK_EVERY, _LARGEST_PAUSE, lease / _BEATS_PER_LEASE or _LARGEST_PAUSE)
    if alive_seconds is None and alive_count is None:
        return Pace(often_enough, DEAD_AFTER)
    # 0 switches it off, for either of them.
    return Pace(often_enough, asked * (_ALIVE_COUNT if alive_count is None else alive_count) or LONGEST)


def _fence(environ: Mapping[str, str]) -> Fence:
    """Of JOB:ATTEMPT; of JOB alone, with a number that differs for each start of a launcher."""
    text = environ.get(names.FENCE_VARIABLE, "")
    job, colon, attempt = text.partition(":")
    if not job:
        return Fence()
    size = len(job.encode(errors="surrogateescape"))
    if size > LONGEST_JOB:
        raise UsageError(
            f"{names.FENCE_VARIABLE}={text[:60]}...: the job's name has {size} bytes, {LONGEST_JOB} is the most"
        )
    if not colon:
        return Fence(job, launcher=launcher_number())
    number = read_number(attempt)
    if number is None or number > _LARGEST_ATTEMPT:
        raise UsageError(f"{names.FENCE_VARIABLE}={text[:60]}: expected JOB or JOB:ATTEMPT, the attempt a number")
    return Fence(job, number)


# Those of this process; and of the container's first one, should this one have lost some of them.
_MOUNTS = ("/proc/self/mountinfo", "/proc/1/mountinfo")


@functools.cache
def launcher_number() -> int:
    """The same for all processes of a launcher, and for no other launcher's; 0 if nothing is known."""
    known = next(filter(None, map(start_of_container, map(_read, _MOUNTS))), b"") or _first_process()
    return int.from_bytes(hashlib.sha256(known).digest()[:8], "little") if known else 0


def start_of_container(mountinfo: bytes) -> bytes:
    """
    The kubelet's own name for this start of the container, by its mounts; empty if they don't have it.

    For the termination message the kubelet makes a file each time it starts a container, .../pods/UID/containers/
    NAME/RANDOM, and mounts it there, wherever the pod wants it. The pod's shared namespaces make no difference.
    """
    found = set()
    for line in mountinfo.splitlines():
        _, is_there, path = b"".join(line.split(b" ", 4)[3:4]).rpartition(b"/pods/")
        # Once the file is deleted, its name ends with //deleted.
        match path.removesuffix(b"//deleted").split(b"/"):
            case [pod, b"containers", name, start] if is_there:
                found.add(b"/".join((pod, name, start)))
    return b" ".join(sorted(found))


def _first_process() -> bytes:
    """The start of the container's first process, and of its pod and kernel; empty if that can't be read."""
    ticks = _read("/proc/1/stat").rpartition(b") ")[2].split()[19:20]
    try:
        made = str(int(Path("/etc/hostname").stat().st_mtime)).encode()
    except OSError:
        made = b""
    return b" ".join([*ticks, made, _read("/proc/sys/kernel/random/boot_id")]).strip()


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
