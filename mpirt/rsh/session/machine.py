"""
The states of a session, what takes it from one to another, and what every phase of it is made of.

Owns: the table, of which a peer that tries what isn't in it breaks the protocol; the actions that are to be done;
and the pod's watch, begun once. No I/O, no clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request.channels import stdin_messages
from mpirt.rsh.session import events
from mpirt.values import Value

if TYPE_CHECKING:
    from mpirt.rsh.protocol.keeperframes import Usage
    from mpirt.rsh.session.task import Task


class State(Enum):
    """How far a session has come."""

    DIAL = "dial"
    """Nothing is open."""
    HELLO = "hello"
    """The connection is open, the shell was greeted, a keeper's first line is awaited."""
    GO = "go"
    """START is on its way to the keeper: from here on the command may be running."""
    RUNNING = "running"
    """The keeper has started it."""
    DETACHED = "detached"
    """The connection is lost; a keeper in the pod holds the command, and is looked for."""
    TERMINATING = "terminating"
    """It is being ended."""
    EXITED = "exited"
    """Its end was reported; the rest of its output, and the server's word, are on their way."""
    DONE = "done"
    """There is nothing more to do."""


class Step(Enum):
    """What takes a session on."""

    OPEN = "the connection is open"
    FAIL = "the attempt has failed"
    HELLO = "a keeper answers"
    START = "the keeper starts the command"
    LOSE = "the connection is lost"
    ATTACH = "the keeper is found again"
    TERMINATE = "the command is to end"
    EXIT = "the keeper reports the end"
    REFUSE = "the keeper can't start it"
    FINISH = "there is an outcome"


TRANSITIONS: dict[tuple[State, Step], State] = {
    (State.DIAL, Step.OPEN): State.HELLO,
    (State.DIAL, Step.FAIL): State.DIAL,
    (State.HELLO, Step.FAIL): State.DIAL,
    (State.HELLO, Step.HELLO): State.GO,
    (State.GO, Step.START): State.RUNNING,
    (State.GO, Step.TERMINATE): State.TERMINATING,
    (State.RUNNING, Step.TERMINATE): State.TERMINATING,
    (State.TERMINATING, Step.START): State.TERMINATING,
    **{(state, Step.LOSE): State.DETACHED for state in (State.GO, State.RUNNING, State.TERMINATING)},
    (State.DETACHED, Step.ATTACH): State.GO,
    (State.DETACHED, Step.TERMINATE): State.DETACHED,
    (State.RUNNING, Step.EXIT): State.EXITED,
    (State.TERMINATING, Step.EXIT): State.EXITED,
    (State.GO, Step.REFUSE): State.EXITED,
    (State.TERMINATING, Step.REFUSE): State.EXITED,
    **{(state, Step.FINISH): State.DONE for state in State if state is not State.DONE},
}


_BEGUN = frozenset({State.GO, State.RUNNING, State.TERMINATING, State.DETACHED})


class Entered(Value):
    """How the pod was entered, for the phase that goes on from there."""

    protocol: str
    container: str
    nonce: str
    """That of the attempt which is gone on with: it names one keeper, and no other."""
    watching: bool = False
    """Whether the pod is watched already."""


class Machine(ABC):
    """A phase: events go in, actions come out."""

    def __init__(self, task: Task, state: State, *, watching: bool = False) -> None:
        self.state = state
        self.end_is_unknown = False
        """Whether it is over, and the command, which may have been started, has not reported how it ended."""
        self._task = task
        self._actions: list[events.Action] = []
        self._watching = watching
        self._watch_at: float | None = None
        self.usage: Usage | None = None
        """What the command's processes use, as the keeper said last on this connection."""
        self.usage_measured: tuple[float, float] | None = None
        """Between which moments the keeper has measured it: the question and the answer."""

    # What can be looked at

    is_held = False
    """Whether a keeper holds the command."""

    @property
    def awaits_usage(self) -> bool:
        """Whether the keeper was asked for the usage, and may still answer."""
        return False

    @property
    def node(self) -> str:
        """The pod's node, as far as it is known."""
        return ""

    @property
    def container(self) -> str:
        """The container that was entered, as far as its name is known."""
        return ""

    @property
    def pod(self) -> str:
        """The pod's name."""
        return self._task.pod

    def silence(self, now: float) -> float | None:  # noqa: ARG002  phases with a command need it
        """Seconds since the last sign of life from the pod; None before the first."""
        return None

    # Events

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

    @abstractmethod
    def _happened(self, event: events.Event, now: float) -> None:
        """What follows from it: each phase has its own."""

    def _step(self, step: Step) -> None:
        following = TRANSITIONS.get((self.state, step))
        if following is None:
            raise PeerError(f"pod {self._task.pod}: {step.value}, which can't be in the state {self.state.value}")
        self.state = following

    def _finish(self, code: int, line: str = "") -> None:
        self.end_is_unknown = self.state in _BEGUN
        self._step(Step.FINISH)
        if line and self._task.host:
            line = f"host {self._task.host}: {line}"
        self._actions += [events.HangUp(), events.Finish(code, line)]

    def _tell(self, data: bytes) -> None:
        self._actions += [events.Send(message) for message in stdin_messages(data)]

    def _look(self) -> None:
        """Something looks wrong: what is known of the pod is not enough."""
        self._actions.append(events.LookAtPod() if self._watching else events.WatchPod())
        self._watching, self._watch_at = True, None

    def _watch_in_time(self, now: float) -> None:
        """Begin to watch when the command has run for a while."""
        if self._watch_at is not None and now >= self._watch_at:
            self._actions.append(events.WatchPod(anew=False))
            self._watching, self._watch_at = True, None
