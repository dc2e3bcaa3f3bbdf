"""
How a command is to be held in its pod, as settings.

Owns: what the environment may change about it, and START, which tells the keeper. No I/O.
"""

from __future__ import annotations

from mpirt.rsh.invocation.order import Order
from mpirt.rsh.protocol import keeperframes
from mpirt.rsh.protocol.greeting import Keepers
from mpirt.rsh.protocol.keeperframes import Fence
from mpirt.rsh.session.ending import Grace
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# execve takes 128 KiB for one argument.
_LONGEST_ARGUMENT = 120_000
# Puts together what had to be cut, and leaves nothing of it behind for the command to see.
_JOINED = b'mpirt=; for mpirt_x do mpirt=$mpirt$mpirt_x; done; set --; unset mpirt_x; eval "unset mpirt;$mpirt"'


class Patience(Value):
    """How long a command is waited for, in seconds."""

    lease: float = 180.0
    """How long the keeper holds it with nobody connected."""
    node: float = 20.0
    """How long its node may be out of reach while the API server answers."""


class Holding(Value):
    """The settings of one command's keeper."""

    keepers: Keepers
    patience: Patience = Patience()
    fence: Fence = Fence()
    """What earlier launchers of the job have left is ended first."""
    ask_every: Callable[[], float] | None = None
    """How seldom a keeper is asked for a sign of life, at this moment, where one process asks a thousand."""

    def start(self, order: Order, grace: Grace) -> bytes:
        """START for an order."""
        environment = {name: text.encode(errors="surrogateescape") for name, text in order.environment.items()}
        return keeperframes.start(
            _argv(order),
            environment,
            lease=self.patience.lease,
            grace=grace.left if self.patience.lease else grace.told,
            has_stdin=order.has_stdin,
            fence=self.fence,
        )


def _argv(order: Order) -> list[bytes]:
    shell, command = order.shell.encode(errors="surrogateescape"), order.command
    if len(command) <= _LONGEST_ARGUMENT:
        return [shell, b"-c", command]
    parts = [command[at : at + _LONGEST_ARGUMENT] for at in range(0, len(command), _LONGEST_ARGUMENT)]
    return [shell, b"-c", _JOINED, shell, *parts]
