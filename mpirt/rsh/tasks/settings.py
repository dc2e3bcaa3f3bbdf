"""
What the environment says about holding a command in its pod.

Owns: the variables' form and their limits, and the files of the keepers that this installation has.
"""

from __future__ import annotations

import mpirt.keeper
from mpirt import names
from mpirt.errors import UsageError
from mpirt.rsh.invocation.seconds import LONGEST, of_variable
from mpirt.rsh.pod.liveness import ASK_EVERY, DEAD_AFTER, Pace
from mpirt.rsh.protocol.entrance import Keepers
from mpirt.rsh.protocol.keeperframes import LONGEST_JOB, Fence
from mpirt.rsh.session.ending import Grace
from mpirt.rsh.session.task import Holding, Patience
from mpirt.rsh.tasks.launcher import launcher_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A keeper counts what it hears from us: at least three times in a lease.
_BEATS_PER_LEASE = 3
_LARGEST_ATTEMPT = 2**64 - 1
_MOST_DIGITS = 20
# A keeper takes silence for our end after 40 s.
_LARGEST_PAUSE = 10.0
# ssh's own.
_ALIVE_COUNT = 3


def keepers() -> Keepers:
    """Those that this installation has."""
    files = {arch: mpirt.keeper.read(arch) for arch in mpirt.keeper.ARCHITECTURES}
    return Keepers({arch: data for arch, data in files.items() if data is not None})


def holding(
    environ: Mapping[str, str], *, held: Keepers | None = None, ask_every: Callable[[], float] | None = None
) -> Holding:
    """
    How a keeper is to hold the command.

    A process with many commands has read the keepers already, and asks them less often (Holding.ask_every).
    """
    patience = Patience(
        lease=of_variable(environ, names.LEASE_VARIABLE, Patience().lease),
        node=of_variable(environ, names.NODE_PATIENCE_VARIABLE, Patience().node),
    )
    return Holding(held or keepers(), patience=patience, fence=_fence(environ), ask_every=ask_every)


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
    """As JOB:ATTEMPT, or as JOB alone, and then launchers are told apart by what they are."""
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
    is_number = attempt.isascii() and attempt.isdigit() and len(attempt) <= _MOST_DIGITS
    if not is_number or int(attempt) > _LARGEST_ATTEMPT:
        raise UsageError(f"{names.FENCE_VARIABLE}={text[:60]}: expected JOB or JOB:ATTEMPT, the attempt a number")
    return Fence(job, int(attempt))
