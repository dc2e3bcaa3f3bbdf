"""
One command in one pod: the state machine, and all of it that comes before GO.

Owns: which phase has the word (before GO, a command that a keeper holds, or one whose outcome is known), and of
the first: when to dial, with which sub-protocol and for which container, what is said to the shell in the pod, and
when to give up. All of that may be repeated without harm: a keeper that gets no START starts nothing. Events in,
actions out; it never waits, and has no clock but the `now` that is handed in. Must not import: socket, os, time.

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

from mpirt.errors import ConfigError, MpirtError, NoPod, NoShell
from mpirt.rsh.pod.facts import NAME_ONE, choose_container
from mpirt.rsh.protocol.conversation import Conversation
from mpirt.rsh.protocol.entrance import Entrance, KeeperFound, NoKeeper, NoSession, NotAnswered, NotStarted, ToSend
from mpirt.rsh.session import events
from mpirt.rsh.session.held import SIGNALLED, Held, broken_stdout
from mpirt.rsh.session.machine import Entered, Machine, State, Step
from mpirt.rsh.session.retry import Attempts, GiveUp, not_started
from mpirt.rsh.session.task import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.kubeapi.request.channels import Channels
    from mpirt.rsh.pod.facts import Container, Pod
    from mpirt.rsh.session.task import Resumption, Task

# One attempt; a second address, or a second try, may do better than a first that hangs.
_DIAL_SECONDS = 15.0
# From the end of a dial's time to its error.
_LAST_WORD_SECONDS = 0.5
# A runtime under load takes a few seconds to start a shell.
_HELLO_SECONDS = 15.0
# How often news of the pod may bring the next attempt forward.
_HASTENED_EVERY = 5.0


class Session:
    """The session of one task, or what is left of one that another process has begun."""

    def __init__(
        self, task: Task, *, now: float, jitter: Callable[[], float], resumption: Resumption | None = None
    ) -> None:
        """With a `resumption` the task has the pod of its record."""
        self.phase: Starting | Held | KnownOutcome
        """The part of it that decides now. To look at only."""
        if resumption is None:
            self.phase = Starting(task, now=now, jitter=jitter)
        else:
            self.phase = _resumed(task, resumption, now=now, jitter=jitter)

    @property
    def wake(self) -> float | None:
        """When to hand in a Tick, at the latest; None once it is done."""
        return None if self.phase.state is State.DONE else self.phase.wake

    def receive(self, event: events.Event, now: float) -> list[events.Action]:
        """What to do about what has happened."""
        actions = self.phase.receive(event, now)
        if isinstance(self.phase, Starting) and self.phase.following is not None:
            self.phase = self.phase.following
        return actions


class KnownOutcome(Machine):
    """A command of which another process has learned how it ended: that only has to be reported."""

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


class Starting(Machine):
    """The attempts to find a keeper in the pod, or to bring one there."""

    stdin_room = stdin_taken = 0

    def __init__(self, task: Task, *, now: float, jitter: Callable[[], float]) -> None:
        super().__init__(task, State.DIAL)
        self.following: Held | None = None
        """What goes on from GO."""
        self._jitter = jitter
        self._dials = _Dials(task, now=now, jitter=jitter)
        self._protocol = task.protocol
        # The number of the attempt.
        self._attempt = 0
        # Of the connection that there is.
        self._entrance: Entrance | None = None
        # The keeper that gets START once the record is kept.
        self._found: tuple[Channels, KeeperFound] | None = None

    @property
    def wake(self) -> float | None:
        """When to hand in a Tick, at the latest."""
        return self._dials.wake

    @property
    def container(self) -> str:
        """The container that is to be entered, as far as its name is known."""
        return self._dials.container

    @property
    def _nonce(self) -> str:
        """
        Of this attempt: a keeper that an earlier one has left can't be taken for this one's.

        The connection of an attempt that is given up may still bring its greeting to the pod, much later.
        """
        return f"{self._task.order.nonce}a{self._attempt}"

    def _happened(self, event: events.Event, now: float) -> None:
        match event:
            case events.Tick():
                self._dial(now)
            case events.Signalled(_, number):
                self._finish(SIGNALLED + number)
            case events.StdoutBroken(why):
                ending = broken_stdout(self.pod, why)
                self._finish(ending.code, ending.line)
            case events.PodSeen(pod):
                self._actions += self._dials.pod_seen(pod, now)
                self._dial(now)
            case events.PodHidden(why):
                self._dials.pod_hidden(why)
            case events.PodFound(pod):
                self._task = self._task.in_pod(pod)
                self._dials.pod_found(self._task)
            case _:
                self._connection(event, now)

    def _connection(self, event: events.Event, now: float) -> None:
        match event:
            case events.Opened(protocol):
                self._step(Step.OPEN)
                self._protocol = protocol
                self._attempt += 1
                self._dials.opened(now)
                self._entrance = Entrance(self._nonce, self._task.holding.keepers)
                self._tell(self._entrance.greeting())
            case events.NotOpened(error):
                self._try_again(error, now)
            case events.Received(message) if self._entrance is not None:
                self._enter(self._entrance, message, now)
            case events.Closed(how) if self._entrance is not None:
                self._try_again(not_started(self.pod, None, how), now)
            case events.Kept(Record()) if self._found is not None:
                self._go(*self._found, now)

    def _dial(self, now: float) -> None:
        overdue = self._dials.overdue(now)
        if overdue is not None:
            self._try_again(overdue, now)
        self._actions += self._dials.dial(now)

    def _try_again(self, error: MpirtError, now: float) -> None:
        if self._entrance is not None:
            self._entrance = None
            self._actions.append(events.HangUp())
        self._step(Step.FAIL)
        if self._found is not None:
            self._found = None
            self._actions.append(events.Keep(None))
        if self._dials.failed(error, now):
            self._look()

    def _enter(self, entrance: Entrance, message: bytes, now: float) -> None:
        match entrance.receive(message):
            case ToSend(data):
                self._tell(data)
            case KeeperFound() as found:
                # What it takes to find the command is kept before the command may be started.
                self._found = entrance.channels, found
                container = self._dials.container
                self._actions.append(events.Keep(Record(self.pod, self._nonce, container, found.container_start)))
            case NoKeeper(why):
                raise NoShell(f"no keeper can hold the command in pod {self.pod}, so it is not started: {why}")
            case None | NoSession():
                # Only an entrance that attaches finds none.
                pass
            case status:
                self._try_again(not_started(self.pod, status, ""), now)

    def _go(self, channels: Channels, found: KeeperFound, now: float) -> None:
        """The command may be started from here on."""
        self._step(Step.HELLO)
        entered = Entered(self._protocol, self._dials.container, self._nonce, self._watching)
        self.following = held = Held(self._task, channels, entered, now=now, jitter=self._jitter)
        self._actions += held.begin(found, now)


class _Dials:
    """When to dial, and what for. Where a method raises, it is over."""

    def __init__(self, task: Task, *, now: float, jitter: Callable[[], float]) -> None:
        self.container = task.container
        self._task = task
        self._deadline = now + task.connect_seconds
        self._attempts = Attempts(
            now, task.connect_seconds, limit=task.attempts, protocol=task.protocol, jitter=jitter,
            is_early=task.is_early,
        )  # fmt: skip
        self._dial_at: float | None = now
        self._hello_by: float | None = None
        self._opened = now
        self._choosing = self._is_dialling = False
        self._waits_for = ""
        self._seen: Container | None = None
        self._hastened_at = now - _HASTENED_EVERY

    def pod_found(self, task: Task) -> None:
        """The pod has another name."""
        self._task = task

    @property
    def wake(self) -> float:
        """When to tick next, at the latest."""
        moments = (self._dial_at if not self._choosing else None, self._hello_by, self._ends_at)
        return min(moment for moment in moments if moment is not None)

    @property
    def _ends_at(self) -> float:
        """When it is over without another word: a dial that is under way has its time, and says what was wrong."""
        return self._deadline + (_LAST_WORD_SECONDS if self._is_dialling else 0.0)

    def overdue(self, now: float) -> MpirtError | None:
        """The error of a shell that has not answered in time."""
        if self._hello_by is None or now < self._hello_by:
            return None
        # A dial may take a little longer than it may: it opens when the time is over.
        waited = max(self._hello_by - self._opened, 0)
        return NotAnswered(f"no shell in pod {self._task.pod} answered for {waited:.0f} s")

    def dial(self, now: float) -> list[events.Action]:
        """Dial, when it is time."""
        if self._hello_by is None and now >= self._ends_at:
            raise self._out_of_time(now)
        if self._choosing or self._dial_at is None or now < self._dial_at:
            return []
        self._dial_at = None
        self._is_dialling = True
        left = self._deadline - now
        protocol = self._attempts.protocol
        return [events.Dial(protocol, self.container, min(_DIAL_SECONDS, left), credentials_seconds=left)]

    def opened(self, now: float) -> None:
        """The connection is there: from now on the answer of the shell at its other end is awaited."""
        self._opened, self._is_dialling = now, False
        self._attempts.opened(now)
        self._hello_by = min(now + _HELLO_SECONDS, self._deadline)

    def failed(self, error: MpirtError, now: float) -> bool:
        """The attempt has failed. Whether the pod is worth a look until the next."""
        self._hello_by, self._is_dialling = None, False
        plan = self._attempts.failed(error, now)
        if isinstance(plan, GiveUp):
            raise self._with_reason(plan.error)
        self._dial_at, self._choosing = plan.at, plan.choose
        return plan.look

    def pod_seen(self, pod: Pod, now: float) -> list[events.Action]:
        """The pod, while it is waited for."""
        if self._dial_at is None:
            return []
        if pod.has_ended:
            raise NoPod(f"pod {self._task.pod} has ended: {pod.phase}{f' ({pod.reason})' if pod.reason else ''}")
        if self._choosing:
            self._choosing = False
            self.container, remark = choose_container(pod, self._task.container)
            return [events.Say(f"pod {self._task.pod}: {remark}")] if remark else []
        before, self._seen = self._seen, pod.container(self.container)
        if not self._seen.running:
            self._waits_for = pod.waits_for
        # One that ran already, as the pod has it, when the attempt failed runs no better now. And one that is
        # another at every look keeps its pauses: it crashes, or two API servers don't agree on it.
        elif self._seen != before and now >= self._hastened_at + _HASTENED_EVERY:
            self._dial_at, self._hastened_at = min(self._dial_at, now), now
        return []

    def pod_hidden(self, why: str) -> None:
        """The pod can't be looked at, and that won't change: silence of the API server may."""
        if self._choosing:
            pod = self._task.pod
            raise ConfigError(f"which container of pod {pod}? It can't be looked up ({why}); {NAME_ONE}")

    def _out_of_time(self, now: float) -> MpirtError:
        if self._choosing:
            self.pod_hidden("no answer came")
        if self._waits_for:
            return NoPod(f"pod {self._task.pod} is not running: {self._waits_for}")
        return self._attempts.out_of_time(now) or NotStarted(f"no time was left to reach pod {self._task.pod}")

    def _with_reason(self, error: MpirtError) -> MpirtError:
        return (
            NoPod(f"{error}; it is {self._waits_for}") if self._waits_for and isinstance(error, NoPod) else error
        )
