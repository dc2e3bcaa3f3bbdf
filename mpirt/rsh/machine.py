"""
What every phase of a session is made of.

Owns: the state, the actions that are to be done, and the pod's watch, begun once. No I/O, no clock.
"""

from __future__ import annotations

from mpirt.errors import MpirtError, PeerError
from mpirt.rsh import events
from mpirt.rsh.channels import stdin_messages
from mpirt.rsh.states import TRANSITIONS, State, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.rsh.starting import Task


# Short commands pay nothing for a watch.
WATCH_AFTER = 1.0
# What batch systems send to announce something; the other signals ask for an end.
PASSED_ON = ("USR1", "USR2")


class Machine:
    """A phase: events go in, actions come out."""

    __slots__ = ("_actions", "_task", "_watch_at", "_watching", "state")

    def __init__(self, task: Task, state: State, *, watching: bool = False) -> None:
        self.state = state
        self._task = task
        self._actions: list[events.Action] = []
        self._watching = watching
        self._watch_at: float | None = None

    def receive(self, event: events.Event, now: float) -> list[events.Action]:
        """What to do about what has happened."""
        if self.state is State.DONE:
            return []
        try:
            self._happened(event, now)
        except MpirtError as error:
            self._finish(error.code, str(error))
        actions, self._actions = self._actions, []
        return actions

    def _happened(self, event: events.Event, now: float) -> None:
        """What follows from it: each phase has its own."""

    def _step(self, step: Step) -> None:
        following = TRANSITIONS.get((self.state, step))
        if following is None:
            raise PeerError(f"pod {self._task.pod}: {step.value}, which can't be in the state {self.state.value}")
        self.state = following

    def _finish(self, code: int, line: str = "") -> None:
        self._step(Step.FINISH)
        if line and self._task.host:
            line = f"host {self._task.host}: {line}"
        self._actions += [events.HangUp(), events.Finish(code, line)]

    def _tell(self, data: bytes) -> None:
        self._actions += [events.Send(message) for message in stdin_messages(data)]

    def _look(self, *, anew: bool = True) -> None:
        self._actions.append(events.LookAtPod(anew) if self._watching else events.WatchPod())
        self._watching, self._watch_at = True, None
