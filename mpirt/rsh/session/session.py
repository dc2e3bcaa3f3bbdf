"""
One command in one pod: the state machine.

Owns: the order of things from the first dial to GO, and who goes on from there: a command that a keeper holds, or
one that is bound to its connection. Events in, actions out; it never waits, and has no clock but the `now` that is
handed in. Must not import: socket, os, time.

    DIAL <-> HELLO -> GO -> RUNNING <-> DETACHED
                       '-------'-> TERMINATING -> EXITED -> DONE
    and from each to DONE, with a cause

The rules, to which a property test holds it: a command is started at most once, and without a keeper nothing is
dialled after GO. 0 comes out only where the pod's side reported 0 and the command's whole output is here. It
always ends.

The caller's duty: carry out the actions in their order, hand in a Tick at `wake`, and after a HangUp drop
whatever that connection still says. `stdin_room` is how much of our own stdin may be read.
"""

from __future__ import annotations

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request.channels import V4, Output, Status
from mpirt.rsh.protocol.entrance import Entrance, KeeperFound, NoKeeper, NoSession, Say
from mpirt.rsh.protocol.markers import Hello, Marker
from mpirt.rsh.session import events
from mpirt.rsh.session.ending import SIGNALLED, broken_stdout
from mpirt.rsh.session.machine import Entered, Machine, State, Step
from mpirt.rsh.session.record import Record
from mpirt.rsh.session.starting import Starting, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.rsh.protocol.streams import Streams
    from mpirt.rsh.session.bound import Bound
    from mpirt.rsh.session.held import Held
    from mpirt.rsh.session.holding import Holding
    from mpirt.rsh.session.record import Resumption
    from mpirt.rsh.session.resuming import Over


class Session:
    """The session of one task, or what is left of one that another process has begun."""

    __slots__ = ("_now",)

    def __init__(
        self, task: Task, *, now: float, jitter: Callable[[], float], resumption: Resumption | None = None
    ) -> None:
        self._now: _Opening | Bound | Held | Over
        if resumption is None:
            self._now = _Opening(task, now=now, jitter=jitter)
        else:
            from mpirt.rsh.session.resuming import resume  # noqa: PLC0415  processes mostly live

            self._now = resume(task, resumption, now=now, jitter=jitter)

    @property
    def state(self) -> State:
        """How far it has come."""
        return self._now.state

    @property
    def stdin_room(self) -> int:
        """How many bytes of our own stdin may be read now; 0 is: leave it alone."""
        return self._now.stdin_room

    @property
    def wake(self) -> float | None:
        """When to hand in a Tick, at the latest; None once it is done."""
        return None if self.state is State.DONE else self._now.wake

    @property
    def bounds_output(self) -> bool:
        """Whether the pod's side sends no more than it was told that we have written, and a little: read on."""
        return self._now.bounds_output

    @property
    def stdin_taken(self) -> int:
        """How many bytes of stdin need not be given again to a process that resumes this."""
        return self._now.stdin_taken

    @property
    def phase(self) -> Machine:
        """The part of it that decides now. To look at only."""
        return self._now

    def receive(self, event: events.Event, now: float) -> list[events.Action]:
        """What to do about what has happened."""
        actions = self._now.receive(event, now)
        if isinstance(self._now, _Opening) and self._now.following is not None:
            self._now = self._now.following
        return actions


class _Opening(Machine):
    """Everything before GO: all of it may be repeated."""

    __slots__ = ("_go", "_greetings", "_jitter", "_protocol", "_starting", "_take", "following")

    stdin_room = stdin_taken = 0
    bounds_output = False

    def __init__(self, task: Task, *, now: float, jitter: Callable[[], float]) -> None:
        super().__init__(task, State.DIAL)
        self.following: Bound | Held | None = None
        self._jitter = jitter
        self._starting = Starting(task, now=now, jitter=jitter)
        self._protocol = V4
        self._greetings = 0
        # What follows once the record is kept.
        self._go: Callable[[float], None] | None = None
        # What a message leads to, once a connection is open.
        self._take: Callable[[bytes, float], None]

    @property
    def wake(self) -> float | None:
        """When to hand in a Tick, at the latest."""
        return self._starting.wake

    @property
    def container(self) -> str:
        """The container that is to be entered, as far as its name is known."""
        return self._starting.container

    @property
    def _nonce(self) -> str:
        """
        Of this attempt: a keeper that an earlier one has left can't be taken for this one's.

        The connection of an attempt that is given up may still bring its greeting to the pod, much later.
        """
        return f"{self._task.order.nonce}a{self._greetings}"

    def _happened(self, event: events.Event, now: float) -> None:
        match event:
            case events.Tick():
                self._start(now)
            case events.Signalled(_, number):
                self._finish(SIGNALLED + number)
            case events.StdoutBroken(why):
                ending = broken_stdout(self.pod, why)
                self._finish(ending.code, ending.line)
            case events.PodSeen(pod):
                self._actions += self._starting.pod_seen(pod, now)
                self._start(now)
            case events.PodHidden(why):
                self._starting.pod_not_told(why)
            case _:
                self._connect(event, now)

    def _connect(self, event: events.Event, now: float) -> None:
        match event:
            case events.Opened(protocol):
                self._step(Step.OPEN)
                self._protocol = protocol
                self._greet(now)
            case events.NotOpened(error):
                self._try_again(error, now)
            case events.PodFound(pod):
                self._task = self._task.in_pod(pod)
                self._starting.pod_found(self._task)
            case events.Received(message) if self.state is State.HELLO:
                self._take(message, now)
            case events.Closed(how) if self.state is State.HELLO:
                self._try_again(self._not_started(None, how), now)
            case events.Kept(record) if record is not None and self._go is not None:
                self._go(now)

    def _greet(self, now: float) -> None:
        order, holding = self._task.order, self._task.holding
        self._greetings += 1
        self._starting.opened(now)
        if holding is None:
            from mpirt.rsh.protocol import streams, wrapper  # noqa: PLC0415  who has a keeper does without

            parts = streams.Streams(order.nonce)
            self._take = lambda message, at: self._take_parts(parts, message, at)
            self._tell(wrapper.payload(order))
        else:
            entrance = Entrance(self._nonce, holding.keepers)
            self._take = lambda message, at: self._enter(entrance, holding, message, at)
            self._tell(entrance.greeting())

    def _start(self, now: float) -> None:
        overdue = self._starting.overdue(now)
        if overdue is not None:
            self._try_again(overdue, now)
        self._actions += self._starting.dial(now)

    def _try_again(self, error: MpirtError, now: float) -> None:
        if self.state is State.HELLO:
            self._actions.append(events.HangUp())
        self._step(Step.FAIL)
        if self._go is not None:
            self._go = None
            self._actions.append(events.Keep(None))
        if self._starting.failed(error, now):
            self._look()

    def _settle(self, go: Callable[[float], None], *, container_start: int = 0, is_held: bool) -> None:
        """The command may be started from here on: what it takes to find it is kept before."""
        self._go = go
        record = Record(self._task.pod, self._nonce, self._starting.container, container_start, is_held)
        self._actions.append(events.Keep(record))

    def _take_parts(self, streams: Streams, message: bytes, now: float) -> None:
        for part in streams.receive(message):
            # What comes before GO isn't the command's: a runtime's complaint, which its status repeats.
            if isinstance(part, Status):
                self._try_again(self._not_started(part), now)
            elif not isinstance(part, Output):
                self._greeted_by(part, streams)

    def _greeted_by(self, marker: Marker, streams: Streams) -> None:
        if not isinstance(marker, Hello):
            raise PeerError(f"the wrapper in pod {self._task.pod} said {marker} out of turn")
        self._settle(lambda at: self._bind(streams, at), is_held=False)

    def _enter(self, entrance: Entrance, holding: Holding, message: bytes, now: float) -> None:
        match entrance.receive(message):
            case Say(data):
                self._tell(data)
            case KeeperFound() as found:
                start = found.container_start
                self._settle(
                    lambda at: self._hold(entrance, holding, found, at), container_start=start, is_held=True
                )
            case NoKeeper(why):
                self._settle(lambda at: self._go_without(why, at), is_held=False)
            case None | NoSession():
                pass
            case status:
                self._try_again(self._not_started(status), now)

    def _go_without(self, why: str, now: float) -> None:
        """There is a shell, but no keeper."""
        from mpirt.rsh.protocol import streams, wrapper  # noqa: PLC0415  who has a keeper does without

        self._actions.append(events.Note(f"this command can't outlive its connection: {why}"))
        self._tell(wrapper.script(self._task.order))
        self._bind(streams.Streams(self._task.order.nonce), now)

    @property
    def _entered(self) -> Entered:
        return Entered(self._protocol, self._starting.container, self._nonce, self._watching)

    def _bind(self, streams: Streams, now: float) -> None:
        """The wrapper runs the command: it ends with this connection."""
        from mpirt.rsh.protocol import wrapper  # noqa: PLC0415  who has a keeper does without
        from mpirt.rsh.session import bound  # noqa: PLC0415  who has a keeper does without

        self._step(Step.HELLO)
        self._tell(wrapper.GO)
        self.following = bound.Bound(self._task, streams, self._entered, now=now)

    def _hold(self, entrance: Entrance, holding: Holding, found: KeeperFound, now: float) -> None:
        """A keeper runs the command."""
        # Who has no keeper in the pod does without its half of this program.
        from mpirt.rsh.session.held import Held  # noqa: PLC0415

        self._step(Step.HELLO)
        self.following = held = Held(
            self._task, holding, entrance.channels, self._entered, now=now, jitter=self._jitter
        )
        self._actions += held.begin(found, now)
