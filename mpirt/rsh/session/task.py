"""
What a session is to do, and what another process needs to go on with it.

Owns: the task with all its settings, START for the keeper, and the record of a command that was started.
Values only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpirt.kubeapi.request.channels import V4
from mpirt.rsh.pod.liveness import DEFAULT_PACE, Pace
from mpirt.rsh.protocol import keeperframes
from mpirt.rsh.protocol.keeperframes import NO_FENCE, Fence
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.rsh.invocation.order import Order
    from mpirt.rsh.protocol.entrance import Keepers

# From TERM to KILL when a signal ends the agent: a launcher that ends its agents waits 5 s.
_SIGNALLED_SECONDS = 3.0
# The same when the lease is over: what Kubernetes gives a pod by default.
_LEASE_SECONDS = 30.0
# Of a deleted pod's grace, for the command's end to be reported: its last output, its code, our own words on it.
_REPORT_SECONDS = 3.0
# A watch of its own costs a command more than the command.
WATCH_AFTER = 1.0
# execve takes 128 KiB for one argument.
_LONGEST_ARGUMENT = 120_000
# Puts together what had to be cut, and leaves nothing of it behind for the command to see.
_JOINED = b'mpirt=; for mpirt_x do mpirt=$mpirt$mpirt_x; done; set --; unset mpirt_x; eval "unset mpirt;$mpirt"'


class Grace(Value):
    """How many seconds a command has from TERM to KILL."""

    asked: float | None = None
    """As many as the environment wants, whatever the reason is."""

    @property
    def on_signal(self) -> float:
        """When a signal to the agent ends it."""
        return _SIGNALLED_SECONDS if self.asked is None else self.asked

    @property
    def after_lease(self) -> float:
        """When its lease is over."""
        return _LEASE_SECONDS if self.asked is None else self.asked

    def deleted(self, seconds: float | None) -> float:
        """
        When its pod is deleted, whose own grace period has so many, as far as is known.

        They are counted from when the deletion is seen: the moment in the pod object is by the API server's clock.
        """
        if seconds is None:
            return self.on_signal
        ours = max(seconds - _REPORT_SECONDS, seconds / 2)
        return ours if self.asked is None else min(ours, self.asked)


DEFAULT_GRACE = Grace()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a command is waited for, in seconds."""

    lease: float = 180.0
    """How long the keeper holds it without a connection."""
    node: float = 20.0
    """How long its node may be out of reach while the API server answers."""


@dataclass(frozen=True, slots=True)
class Holding:
    """How a keeper is to hold the command."""

    keepers: Keepers
    patience: Patience = Patience()
    fence: Fence = NO_FENCE
    """What earlier launchers of the job have left is ended first."""
    ask_every: Callable[[], float] | None = None
    """How seldom a keeper is asked for a sign of life, at this moment, where one process asks a thousand."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a session is to do."""

    pod: str
    order: Order
    holding: Holding
    container: str = ""
    """Empty: the only one, or what the pod names as its default, or the first."""
    connect_seconds: float = 60.0
    attempts: int = 0
    """How many there may be; 0 is as many as fit into the time."""
    protocol: str = V4
    """The one to begin with; the other one follows where it is refused."""
    grace: Grace = DEFAULT_GRACE
    pace: Pace = DEFAULT_PACE
    host: str = ""
    """The host name or address that was given, where it is not the pod's name."""
    watch_after: float = WATCH_AFTER
    """Seconds after its start from which on the pod is watched. Most commands are over before."""
    is_early: bool = False
    """Whether the pod's container may not run yet: that is not waited for, but for seconds."""

    def in_pod(self, pod: str) -> Task:
        """The same in the pod that was found by what was taken for a pod's name."""
        return replace(self, pod=pod, host=self.pod)

    def start(self) -> bytes:
        """START: what the keeper has to start, and how to hold it."""
        order, patience = self.order, self.holding.patience
        environment = {name: text.encode(errors="surrogateescape") for name, text in order.environment.items()}
        return keeperframes.start(
            _argv(order),
            environment,
            lease=patience.lease,
            grace=self.grace.after_lease if patience.lease else self.grace.on_signal,
            has_stdin=order.has_stdin,
            fence=self.holding.fence,
        )


def _argv(order: Order) -> list[bytes]:
    shell, command = order.shell.encode(errors="surrogateescape"), order.command
    if len(command) <= _LONGEST_ARGUMENT:
        return [shell, b"-c", command]
    parts = [command[at : at + _LONGEST_ARGUMENT] for at in range(0, len(command), _LONGEST_ARGUMENT)]
    return [shell, b"-c", _JOINED, shell, *parts]


@dataclass(frozen=True, slots=True)
class Record:
    """A command that was started, or is about to be: kept by the process that writes its output."""

    pod: str
    nonce: str
    container: str
    container_start: int = 0
    """When the first process of its container started; 0 where that is not known."""
    code: int | None = None
    """The code to end with, once that is known."""
    line: str = ""
    """What to say then."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """A command that another process has started, and what has become of its streams."""

    record: Record
    generation: int
    """How many processes had it before: from 1 on."""
    output: tuple[int, int] = (0, 0)
    """How many bytes of stdout and of stderr have been received."""
    stdin_at: int = 0
    """The offset of the first byte of stdin that may not have been taken."""
    stdin: bytes = b""
    """What was read of it from there on."""
    stdin_ended: bool = False
    signals: tuple[tuple[str, int], ...] = ()
    """The names and numbers of all signals so far, in order."""
