"""
Going on with a command that another process has started.

Owns: what there is to go on with: its keeper, the outcome that was known already, or the end of a command that was
bound to the other process's connection. No I/O. Imported only where a process was killed.
"""

from __future__ import annotations

from mpirt.errors import ConfigError, ExitCode
from mpirt.rsh.protocol.conversation import Conversation
from mpirt.rsh.session import events
from mpirt.rsh.session.held import Held
from mpirt.rsh.session.machine import Entered, Machine, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.rsh.session.holding import Holding
    from mpirt.rsh.session.record import Resumption
    from mpirt.rsh.session.starting import Task


class Over(Machine):
    """A command whose outcome is known: it only has to be told."""

    __slots__ = ("_outcome", "wake")

    stdin_room = stdin_taken = 0
    bounds_output = False

    def __init__(self, task: Task, code: int, line: str, *, now: float) -> None:
        super().__init__(task, State.EXITED)
        self.wake = now
        self._outcome = code, line

    def _happened(self, event: events.Event, now: float) -> None:  # noqa: ARG002  whatever it is
        self._finish(*self._outcome)


def resume(task: Task, resumption: Resumption, *, now: float, jitter: Callable[[], float]) -> Held | Over:
    """The phase in which the command is now. The task has the pod of the record."""
    record = resumption.record
    if record.code is not None:
        return Over(task, record.code, record.line, now=now)
    if not record.is_held:
        line = f"the command in pod {record.pod} ended with its connection: the process that had it was killed"
        return Over(task, ExitCode.CONNECTION_LOST, line, now=now)
    if task.holding is None:
        raise ConfigError(f"a keeper holds the command in pod {record.pod}, and none is wanted any more")
    return _held(task, task.holding, resumption, now=now, jitter=jitter)


def _held(
    task: Task, holding: Holding, resumption: Resumption, *, now: float, jitter: Callable[[], float]
) -> Held:
    talk = Conversation()
    talk.resume(
        resumption.generation,
        resumption.output,
        resumption.stdin_at,
        resumption.stdin,
        stdin_ended=resumption.stdin_ended,
    )
    held = Held(
        task,
        holding,
        None,
        Entered(task.protocol, resumption.record.container, resumption.record.nonce),
        now=now,
        jitter=jitter,
        talk=talk,
    )
    held.resume(resumption.record.container_start, resumption.signals, now)
    return held
