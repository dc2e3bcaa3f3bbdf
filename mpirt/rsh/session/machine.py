"""
The states of a session, what takes it from one to another, and what every phase of it is made of.

Owns: the table, of which a peer that tries what isn't in it breaks the protocol; the actions that are to be done;
and the pod's watch, begun once. No I/O, no clock.
"""

from __future__ import annotations

from enum import Enum

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request.channels import stdin_messages
from mpirt.rsh.session import events
from mpirt.rsh.session.ending import SIGNALLED, Ending, broken_stdin, broken_stdout
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.kubeapi.request.channels import Status
    from mpirt.rsh.protocol.keeperframes import Usage
    from mpirt.rsh.session.starting import Task


# What batch systems send to announce something; the other signals ask for an end.
PASSED_ON = ("USR1", "USR2")
# Also says that whoever started us is gone: it follows by itself when a launcher has told us to end, or a terminal
# is closed, so it is no request to hurry.
_HUP = "HUP"
TERM = 15
_KILL = 9


class State(Enum):
    """How far a session has come."""

    DIAL = "dial"
    """Nothing is open."""
    HELLO = "hello"
    """The connection is open, the wrapper was sent, its HELLO is awaited."""
    GO = "go"
    """GO was sent: from here on the command may be running."""
    RUNNING = "running"
    """The wrapper has started it."""
    DETACHED = "detached"
    """The connection is lost; a keeper in the pod holds the command, and is looked for."""
    TERMINATING = "terminating"
    """It was told to end."""
    EXITED = "exited"
    """Its end was reported; the rest of its output, and the server's word, are on their way."""
    DONE = "done"
    """There is nothing more to do."""


class Step(Enum):
    """What takes a session on."""

    OPEN = "the connection is open"
    FAIL = "the attempt has failed"
    HELLO = "the wrapper says HELLO"
    START = "the wrapper says START"
    LOSE = "the connection is lost"
    ATTACH = "the keeper is found again"
    TERMINATE = "the command is to end"
    EXIT = "the wrapper reports the end"
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


class Machine:
    """A phase: events go in, actions come out."""

    __slots__ = ("_actions", "_task", "_watch_at", "_watching", "end_is_unknown", "state")

    def __init__(self, task: Task, state: State, *, watching: bool = False) -> None:
        self.state = state
        self.end_is_unknown = False
        """Whether it is over, and the command, which may have been started, has not told how it ended."""
        self._task = task
        self._actions: list[events.Action] = []
        self._watching = watching
        self._watch_at: float | None = None

    # For whoever wants to know how it is

    is_held = False
    """Whether a keeper holds the command."""

    @property
    def pod(self) -> str:
        """The pod's name."""
        return self._task.pod

    @property
    def node(self) -> str:
        """The pod's node, as far as it is known."""
        return ""

    @property
    def container(self) -> str:
        """The container that was entered, as far as its name is known."""
        return ""

    def silence(self, now: float) -> float | None:  # noqa: ARG002  phases with a command need it
        """Seconds since the last sign of life from the pod; None before the first."""
        return None

    @property
    def usage(self) -> Usage | None:
        """What the command's processes use, as its keeper said last; None if that is not known."""
        return None

    @property
    def awaits_usage(self) -> bool:
        """Whether the keeper was asked for it, and may still answer."""
        return False

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

    def _not_started(self, status: Status | None, how: str = "") -> MpirtError:
        """What to call it when a connection ends before the pod's side says a word."""
        from mpirt.rsh.session.retry import not_started  # noqa: PLC0415  most connections last

        return not_started(self._task.pod, status, how)

    def _tell(self, data: bytes) -> None:
        self._actions += [events.Send(message) for message in stdin_messages(data)]

    def _look(self, *, anew: bool = True) -> None:
        """Something looks wrong: what is known of the pod is not enough."""
        self._actions.append(events.LookAtPod(anew) if self._watching else events.WatchPod())
        self._watching, self._watch_at = True, None

    def _watch_in_time(self, now: float) -> None:
        """Begin to watch when the command has run for a while."""
        if self._watch_at is not None and now >= self._watch_at:
            self._actions.append(events.WatchPod(anew=False))
            self._watching, self._watch_at = True, None


class Running(Machine):
    """A phase in which there is a command: what our own signals and streams mean to it."""

    __slots__ = ("_was_signalled",)

    def __init__(self, task: Task, state: State, *, watching: bool) -> None:
        super().__init__(task, state, watching=watching)
        self._was_signalled = False

    def _pass_on(self, number: int) -> None:
        """Give the command a signal that ends nothing."""

    def _pass_over(self) -> None:
        """A signal means nothing to the command."""

    def _terminate(self, ending: Ending, signal: int, grace: float, now: float, *, is_asked: bool = False) -> None:
        """
        End the command. The first reason counts; later ones may shorten the grace.

        `is_asked`: a signal to us asks for it, which the command gets in any case.
        """

    def _of_ours(self, event: events.Event, now: float, *, is_ending: bool) -> None:
        grace = self._task.grace.told
        match event:
            case events.Signalled(name, number) if name in PASSED_ON:
                self._pass_on(number)
            case events.Signalled(name, _) if name == _HUP and is_ending:
                # The command is saving what it has, and by default a HUP kills.
                self._pass_over()
            case events.Signalled(name, number):
                # Only a second signal hurries: a pod that is being deleted and a lost reader are no requests.
                number, grace = (_KILL, 0.0) if self._was_signalled else (number, grace)
                ending = Ending(SIGNALLED + number, "", is_ours=True)
                self._was_signalled = name != _HUP
                self._terminate(ending, number, grace, now, is_asked=True)
            case events.StdinBroken(why) if not is_ending:
                self._terminate(broken_stdin(why), TERM, grace, now)
            # One that is being ended already has lost its reader to the same Ctrl-C.
            case events.StdoutBroken(why) if not is_ending:
                self._terminate(broken_stdout(self.pod, why), TERM, grace, now)
