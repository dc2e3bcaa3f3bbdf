"""
One command in one pod: the state machine.

Owns: which phase has the word: everything before GO, a command that a keeper holds, or one whose outcome is known.
Events in, actions out; it never waits, and has no clock but the `now` that is handed in. Must not import: socket,
os, time.

    DIAL <-> HELLO -> GO -> RUNNING <-> DETACHED
                       '-------'-> TERMINATING -> EXITED -> DONE
    and from each to DONE, with a cause

The rules, to which a property test holds it: a command is started at most once, and never where no keeper can hold
it. 0 comes out only where the keeper reported 0 and the command's whole output is here. It always ends.

The caller's duty: carry out the actions in their order, hand in a Tick at `wake`, and after a HangUp drop
whatever that connection still says. `stdin_room` is how much of our own stdin may be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpirt.rsh.protocol.conversation import Conversation
from mpirt.rsh.session import events
from mpirt.rsh.session.held import Held
from mpirt.rsh.session.machine import Entered, Machine, State
from mpirt.rsh.session.starting import Starting

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.rsh.session.task import Resumption, Task


class Session:
    """The session of one task, or what is left of one that another process has begun."""

    __slots__ = ("_phase",)

    def __init__(
        self, task: Task, *, now: float, jitter: Callable[[], float], resumption: Resumption | None = None
    ) -> None:
        """With a `resumption` the task has the pod of its record."""
        self._phase: Starting | Held | KnownOutcome
        if resumption is None:
            self._phase = Starting(task, now=now, jitter=jitter)
        else:
            self._phase = _resumed(task, resumption, now=now, jitter=jitter)

    @property
    def state(self) -> State:
        """How far it has come."""
        return self._phase.state

    @property
    def stdin_room(self) -> int:
        """How many bytes of our own stdin may be read now; 0 is: leave it alone."""
        return self._phase.stdin_room

    @property
    def wake(self) -> float | None:
        """When to hand in a Tick, at the latest; None once it is done."""
        return None if self.state is State.DONE else self._phase.wake

    @property
    def stdin_taken(self) -> int:
        """How many bytes of stdin need not be given again to a process that resumes this."""
        return self._phase.stdin_taken

    @property
    def phase(self) -> Machine:
        """The part of it that decides now. To look at only."""
        return self._phase

    def receive(self, event: events.Event, now: float) -> list[events.Action]:
        """What to do about what has happened."""
        actions = self._phase.receive(event, now)
        if isinstance(self._phase, Starting) and self._phase.following is not None:
            self._phase = self._phase.following
        return actions


class KnownOutcome(Machine):
    """A command of which another process has learned how it ended: that only has to be reported."""

    __slots__ = ("_outcome", "wake")

    stdin_room = stdin_taken = 0

    def __init__(self, task: Task, code: int, line: str, *, now: float) -> None:
        super().__init__(task, State.EXITED)
        self.wake = now
        self._outcome = code, line

    def _happened(self, event: events.Event, now: float) -> None:  # noqa: ARG002  whatever it is
        self._finish(*self._outcome)


def _resumed(
    task: Task, resumption: Resumption, *, now: float, jitter: Callable[[], float]
) -> Held | KnownOutcome:
    """The phase in which a command is now that another process has started."""
    record = resumption.record
    if record.code is not None:
        return KnownOutcome(task, record.code, record.line, now=now)
    talk = Conversation()
    talk.resume(
        resumption.generation,
        resumption.output,
        resumption.stdin_at,
        resumption.stdin,
        stdin_ended=resumption.stdin_ended,
    )
    entered = Entered(task.protocol, record.container, record.nonce)
    held = Held(task, None, entered, now=now, jitter=jitter, talk=talk)
    held.resume(record.container_start, resumption.signals, now)
    return held
