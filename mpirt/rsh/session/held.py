"""
A command that a keeper in the pod holds: what follows GO where one was found.

Owns: the order of things over any number of connections (connected.py), from the first word to the keeper to the
outcome; and the reasons for which it is ended. Events in, actions out; it never waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.channels import Channels, ExitedWith, Output, Status
from mpirt.rsh.protocol import conversation
from mpirt.rsh.protocol import keeperframes as frames
from mpirt.rsh.protocol.keeperframes import EndedBy
from mpirt.rsh.session import events
from mpirt.rsh.session.connected import Connected
from mpirt.rsh.session.machine import Entered, State, Step
from mpirt.rsh.session.patience import KILLED_SECONDS
from mpirt.rsh.session.task import Record
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mpirt.rsh.pod.evidence import Verdict
    from mpirt.rsh.protocol.entrance import KeeperFound
    from mpirt.rsh.session.task import Task


SIGNALLED = 128
# What batch systems send to announce something; the other signals ask for an end.
PASSED_ON = ("USR1", "USR2")
_SIGPIPE = 13
# From KILL to the report of it.
LAST_WORD = 1.5
# From the report to the server's own word on it, which comes when all output is through. It changes the outcome
# only where it contradicts.
STATUS_SECONDS = 0.5
_KILL, _TERM, _CONT = 9, 15, 18
# Also says that our parent is gone: it follows by itself when a launcher has ended us, or a terminal is closed, so
# it is no request to hurry.
_HUP = "HUP"


class Ending(Value):
    """Why a running command is ended."""

    code: int
    line: str
    is_ours: bool = False
    """A signal to us ends it: then its own code counts, as when it had ended by itself."""

    def after(self, code: int | None) -> tuple[int, str]:
        """The outcome of a command that ended with a code when it was ended for a reason of the pod's."""
        return self.code, f"{self.line}; the command ended with {code}"


def broken_stdout(pod: str, why: str) -> Ending:
    """Our stdout has no reader any more; or it can't be written, which must not look like a reader's wish."""
    if why:
        return Ending(ExitCode.UNKNOWN_END, f"the output of pod {pod} can't be written: {why}")
    return Ending(SIGNALLED + _SIGPIPE, "", is_ours=True)


class Held(Connected):
    """One command, over one connection after the other."""

    def __init__(
        self,
        task: Task,
        channels: Channels | None,
        entered: Entered,
        *,
        now: float,
        jitter: Callable[[], float],
        talk: conversation.Conversation | None = None,
    ) -> None:
        super().__init__(task, channels, entered, now=now, jitter=jitter, talk=talk)
        self._outcome: tuple[int, str] = (ExitCode.UNKNOWN_END, "")
        self._ending: Ending | None = None
        self._over_at: float | None = None
        self._is_done = False
        self._was_signalled = False
        # Whether the command has ended, and the pod may say why.
        self._asks_why = False

    def begin(self, found: KeeperFound, now: float) -> list[events.Action]:
        """The first words to the keeper."""
        self._findings.container_start = found.container_start
        self._talk.control(*self._start_controls())
        self._greet_keeper(now)
        if found.leftover:
            self._listen(found.leftover, now)
        actions, self._actions = self._actions, []
        return actions

    def resume(self, container_start: int, signals: Sequence[tuple[str, int]], now: float) -> None:
        """Another process has begun it, or was about to. The keeper ignores controls that it has had before."""
        self._findings.container_start = container_start
        self._talk.control(*self._start_controls())
        self._lost("the process that had it was killed", now)
        for name, number in signals:
            self._signalled(name, number, now)

    def _start_controls(self) -> Iterator[bytes]:
        return frames.start_controls(self._task.start())

    @property
    def wake(self) -> float:
        """When to hand in a Tick, at the latest."""
        wake = super().wake
        return wake if self._over_at is None else min(wake, self._over_at)

    @property
    def stdin_taken(self) -> int:
        """How many bytes of stdin the keeper has taken."""
        return self._talk.stdin_taken

    @property
    def stdin_room(self) -> int:
        """How many bytes of our own stdin may be read now; 0 is: leave it alone."""
        wants = self.state is State.RUNNING and self._task.order.has_stdin
        return self._talk.stdin_room if wants else 0

    def _happened(self, event: events.Event, now: float) -> None:
        match event:
            case events.Tick():
                self._tick(now)
            case events.Received(message):
                self._received(message, now)
            case events.Written(stdout, stderr):
                self._tell(self._talk.written(stdout, stderr))
            case events.Listening(listening) if self._is_attached:
                self._listening(now, listening=listening)
            case events.Kept(Record(code=int())):
                self._done(now)
            case events.StdinRead(data):
                self._tell(self._talk.stdin(data))
            case events.Signalled() | events.StdinBroken() | events.StdoutBroken():
                self._local_event(event, now)
            case _:
                self._of_the_connection(event, now)
                self._learn(event, now)
        self._weigh(now)

    def _local_event(self, event: events.Event, now: float) -> None:
        """What happens to our own signals and streams, as the command's."""
        grace = self._task.grace.on_signal
        match event:
            case events.Signalled(name, number):
                self._signalled(name, number, now)
            case events.StdinBroken(why) if self._ending is None:
                # A command that takes the beginning of its stdin for the whole must not succeed.
                line = f"the command was ended because its stdin can't be read: {why}"
                self._terminate(Ending(ExitCode.UNKNOWN_END, line), _TERM, grace, now)
            # One that is being ended already has lost its reader to the same Ctrl-C.
            case events.StdoutBroken(why) if self._ending is None:
                self._terminate(broken_stdout(self.pod, why), _TERM, grace, now)

    def _signalled(self, name: str, number: int, now: float) -> None:
        if name == _HUP and self._ending is not None:
            # The command is saving what it has, and by default a HUP kills. What it gets instead does nothing, and
            # has the signal's number: another process that goes on gives all signals again.
            number = _CONT
        elif name not in PASSED_ON:
            # Only a second signal hurries: a pod that is being deleted and a lost reader are no requests.
            is_second, self._was_signalled = self._was_signalled, name != _HUP
            number, grace = (_KILL, 0.0) if is_second else (number, self._task.grace.on_signal)
            self._terminate(Ending(SIGNALLED + number, "", is_ours=True), number, grace, now, is_asked=True)
            return
        self._tell(self._talk.control(frames.signal_control(number)))

    def _take(self, fact: conversation.Fact, now: float) -> None:
        match fact:
            case Output(stream, data):
                self._actions.append(events.Write(stream, data))
            case conversation.Attached() if self._reattaching is not None:
                self._attached(now)
            case conversation.Used(usage):
                self._used(usage, now)
            case conversation.Started(can_attach):
                self._started(can_attach=can_attach)
            case conversation.Ended():
                self._exited(fact)
            case conversation.NotStartable(why):
                self._refused(why)
            case conversation.Fenced() if self.state is not State.EXITED:
                line = f"the command in pod {self.pod} was ended by a later launcher of its job (MPIRT_FENCE)"
                self._finish(ExitCode.CONNECTION_LOST, line)

    def _started(self, *, can_attach: bool) -> None:
        self._can_attach = can_attach and self._task.holding.patience.lease > 0
        self._was_started = True
        if self.state is State.GO:
            self._go_on()

    def _go_on(self) -> None:
        """From GO to where a command that was started is."""
        self._step(Step.START)
        if self._ending is not None:
            self._step(Step.TERMINATE)

    def _refused(self, why: str) -> None:
        self._step(Step.REFUSE)
        line = f"the command could not be started in pod {self._task.pod}: {why}"
        # It may have been ended before it was started.
        ending = self._ending or Ending(ExitCode.NO_SHELL, line)
        self._outcome = ending.code, ending.line
        self._keep_outcome()

    def _exited(self, end: conversation.Ended) -> None:
        self._step(Step.EXIT)
        if end.left_open:
            cut = "something that the command left behind still has its output open; what that writes is lost"
            self._actions.append(events.Say(f"pod {self.pod}: {cut}"))
        self._outcome = self._outcome_of(end)
        self._keep_outcome()

    def _keep_outcome(self) -> None:
        """From DONE on the keeper can't be asked again: so the outcome is kept before."""
        found, (code, line) = self._findings, self._outcome
        record = Record(self._task.pod, self._nonce, found.container, found.container_start, code=code, line=line)
        self._actions.append(events.Keep(record))

    def _outcome_of(self, end: conversation.Ended) -> tuple[int, str]:
        """Only its own 0 is a 0: a program that is ended may end with it, too."""
        pod, ending = self._task.pod, self._ending
        if ending is not None and not ending.is_ours:
            return ending.after(end.code)
        if end.by is EndedBy.LEASE:
            # The keeper has ended it without a connection, and could not report that before.
            lease = f"{self._task.holding.patience.lease:.0f} s"
            line = f"the command in pod {pod} was ended there: it had no connection for its lease of {lease}"
            ending = Ending(ExitCode.CONNECTION_LOST, line)
        elif end.by is EndedBy.SIGNAL:
            # As any other process that something in the pod ends, it has its own code, unless that is 0.
            line = f"something in pod {pod} has signalled the command's keeper"
            ending = Ending(end.code or ExitCode.UNKNOWN_END, line)
        elif end.by is EndedBy.END and ending is None:
            line = f"the command in pod {pod} was ended by a switchboard that was killed before it could say why"
            ending = Ending(ExitCode.UNKNOWN_END, line)
        else:
            return end.code, ""
        return ending.after(end.code)

    def _done(self, now: float) -> None:
        """Nobody will have to ask the keeper again."""
        self._tell_done()
        # The keeper's last act is to clean up, and its bridge's to end: who hangs up first may keep DONE from it.
        self._over_at = now + STATUS_SECONDS

    def _tell_done(self) -> None:
        if not self._is_done:
            self._is_done = True
            self._tell(self._talk.done())

    # The outcome

    def _terminate(self, ending: Ending, signal: int, grace: float, now: float, *, is_asked: bool = False) -> None:
        """
        End the command. The first reason counts; later ones may shorten the grace.

        `is_asked`: a signal to us asks for it, which the command gets in any case.
        """
        self._ending = self._ending or ending
        if self.state in (State.GO, State.RUNNING, State.DETACHED):
            self._step(Step.TERMINATE)
        over_at = now + grace + LAST_WORD
        self._over_at = over_at if self._over_at is None else min(self._over_at, over_at)
        end = frames.end_control(signal, grace)
        self._tell(self._talk.control(end) if is_asked else self._talk.end(end))

    def _weigh(self, now: float) -> None:
        """Whether what is known by now is an outcome."""
        if self.state is State.DONE:
            return
        if self.state is State.EXITED:
            verdict = self._findings.verdict(now, 0.0) if self._asks_why else None
            if verdict is not None:
                self._outcome = Ending(verdict.code, verdict.cause).after(self._outcome[0])
            if verdict is not None or (self._over_at is not None and now >= self._over_at):
                self._conclude()
            return
        verdict = self._verdict(now)
        if self._ending is not None:
            self._weigh_ending(self._ending, verdict, now)
        elif verdict is not None and verdict.leaving and self._is_attached:
            ending, grace = Ending(verdict.code, verdict.cause), self._task.grace.deleted(verdict.grace)
            self._terminate(ending, _TERM, grace, now)
        elif verdict is not None:
            self._finish(verdict.code, verdict.cause)

    def _verdict(self, now: float) -> Verdict | None:
        self._findings.can_wait = self._can_attach
        found = self._findings.verdict(now, self._liveness.silence(now) if self._is_attached else 0.0)
        return found or (self._patience_is_over(now) if self._can_attach else None)

    def _patience_is_over(self, now: float) -> Verdict | None:
        if self._reattaching is None:
            return None
        return self._reattaching.verdict(now, self._task.pod, self._findings.node)

    def _weigh_ending(self, ending: Ending, verdict: Verdict | None, now: float) -> None:
        # A pod that is being deleted takes a command along whose connection has ended.
        is_left_alone = not self._is_attached and (not ending.is_ours or self._is_given_up(now))
        is_gone = verdict is not None and (is_left_alone or not verdict.leaving)
        if not is_gone and (self._over_at is None or now < self._over_at):
            return
        line = ending.line
        if ending.is_ours and not self._is_attached and self._can_attach:
            lease = self._task.holding.patience.lease
            line = f"pod {self._task.pod} is out of reach; its command ends there within {lease:.0f} s"
        elif ending.is_ours and not self._is_attached and verdict is not None:
            line = verdict.cause
        self._finish(ending.code, line)

    def _is_given_up(self, now: float) -> bool:
        """Whether there is no way back to the keeper, or no more use in looking for one."""
        return not self._can_attach or self._patience_is_over(now) is not None

    def _finish(self, code: int, line: str = "") -> None:
        if self.state is not State.EXITED and self._is_attached:
            # Whatever the reason is, no other process will come back for it.
            self._tell(self._talk.end(frames.end_control(_TERM, self._task.grace.on_signal)))
        super()._finish(code, line)

    def _over(self, how: str, now: float, status: Status | None) -> None:
        is_killed = self._outcome[0] == SIGNALLED + _KILL and self._ending is None
        if not (is_killed and isinstance(status, ExitedWith) and status.code):
            self._conclude()
            return
        # The keeper's bridge was killed, too, be it before or after the keeper: by what has ended the container?
        self._drop_connection()
        self._findings.lost(how, status)
        self._asks_why, self._over_at = True, now + KILLED_SECONDS
        self._look()

    def _conclude(self) -> None:
        self._tell_done()
        self._finish(*self._outcome)
