"""
One command in one pod: the state machine.

Owns: the order of things from the first dial to the last word, at-most-once, and the outcome. Events in,
actions out; it never waits, and has no clock but the `now` that is handed in. Must not import: socket, os,
time.

    DIAL <-> HELLO -> GO -> RUNNING -> EXITED -> DONE
                       '-------'-> TERMINATING -> EXITED
    and from each to DONE, with a cause

The rules, to which a property test holds it: GO is sent at most once, and nothing is dialled after it. 0 comes
out only where the wrapper reported 0, the server didn't contradict and the command's whole output is here. It
always ends.

The caller's duty: carry out the actions in their order, hand in a Tick at `wake`, and after a HangUp drop
whatever that connection still says. `stdin_room` is how much of our own stdin may be read.
"""

from __future__ import annotations

from mpirt.errors import MpirtError, PeerError
from mpirt.rsh import events, markers, wrapper
from mpirt.rsh.channels import V5, Output, Status, stdin_messages
from mpirt.rsh.ending import Ending, Report, Termination
from mpirt.rsh.inquest import Inquest
from mpirt.rsh.liveness import DEAD_AFTER, Liveness
from mpirt.rsh.retry import not_started
from mpirt.rsh.starting import Starting, Task
from mpirt.rsh.states import TRANSITIONS, State, Step
from mpirt.rsh.stdin import StdinFlow
from mpirt.rsh.streams import Part, Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Short commands pay nothing for a watch.
_WATCH_AFTER = 1.0
# What looks like the beginning of a marker is shown when nothing has followed for so long.
_FLUSH_AFTER = 0.1
_SIGNALLED = 128
_SIGPIPE = 13
# What batch systems send to announce something; the other signals ask for an end.
_PASSED_ON = ("USR1", "USR2")


class Session:
    """The session of one task."""

    # fmt: off
    __slots__ = (
        "_actions", "_flush_at", "_guarded", "_inquest", "_liveness", "_report", "_starting", "_stdin", "_streams",
        "_task", "_termination", "_v5", "_watch_at", "_watching", "state",
    )
    # fmt: on

    def __init__(self, task: Task, *, now: float, jitter: Callable[[], float]) -> None:
        self.state = State.DIAL
        self._task = task
        self._actions: list[events.Action] = []
        self._starting = Starting(task, now=now, jitter=jitter)
        self._streams = Streams(task.order.nonce)
        self._liveness = Liveness(now)
        self._stdin = StdinFlow()
        self._inquest = Inquest(task.pod)
        self._report = Report()
        self._termination: Termination | None = None
        self._v5 = False
        self._guarded = False
        self._watching = False
        self._watch_at: float | None = None
        self._flush_at: float | None = None

    @property
    def stdin_room(self) -> int:
        """How many bytes of our own stdin may be read now; 0 is: leave it alone."""
        return self._stdin.room if self.state is State.RUNNING else 0

    @property
    def wake(self) -> float | None:
        """When to hand in a Tick, at the latest; None once it is done."""
        if self.state is State.DONE:
            return None
        if self.state in (State.DIAL, State.HELLO):
            return self._starting.wake
        termination = None if self._termination is None else self._termination.wake
        doubt = None if self.state is State.EXITED else self._inquest.wake
        moments = (self._liveness.wake, doubt, self._report.wake, termination, self._watch_at, self._flush_at)
        return min(moment for moment in moments if moment is not None)

    def receive(self, event: events.Event, now: float) -> list[events.Action]:
        """What to do about what has happened."""
        if self.state is State.DONE:
            return []
        try:
            if self.state in (State.DIAL, State.HELLO):
                self._before_go(event, now)
            else:
                self._after_go(event, now)
        except MpirtError as error:
            self._finish(error.code, str(error))
        actions, self._actions = self._actions, []
        return actions

    # Before GO

    def _before_go(self, event: events.Event, now: float) -> None:
        match event:
            case events.Tick():
                self._start(now)
            case events.Signalled(_, number):
                self._finish(_SIGNALLED + number)
            case events.StdoutBroken():
                self._finish(_SIGNALLED + _SIGPIPE)
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
                self._v5 = protocol == V5
                self._streams = Streams(self._task.order.nonce)
                self._actions += self._starting.opened(now)
            case events.NotOpened(error):
                self._try_again(error, now)
            case events.Received(message) if self.state is State.HELLO:
                self._take(message, now)
            case events.Closed(how) if self.state is State.HELLO:
                self._try_again(not_started(self._task.pod, None, how), now)

    def _start(self, now: float) -> None:
        overdue = self._starting.overdue(now)
        if overdue is not None:
            self._try_again(overdue, now)
        self._actions += self._starting.dial(now)

    def _try_again(self, error: MpirtError, now: float) -> None:
        if self.state is State.HELLO:
            self._actions.append(events.HangUp())
        self._step(Step.FAIL)
        if self._starting.failed(error, now):
            self._look()

    def _go(self, now: float) -> None:
        self._step(Step.HELLO)
        self._tell(wrapper.GO)
        self._liveness = Liveness(now)
        self._inquest.container = self._starting.container
        self._watch_at = now + _WATCH_AFTER

    # After GO

    def _after_go(self, event: events.Event, now: float) -> None:
        match event:
            case events.Tick():
                self._tick(now)
            case events.Received(message):
                self._take(message, now)
            case events.Closed(how):
                self._closed(how, now)
            case events.StdinRead(data):
                self._tell(self._stdin.piece(data) if data else self._stdin.end())
            case events.Signalled(name, number):
                self._signalled(name, number, now)
            case events.StdoutBroken():
                self._terminate(Ending(_SIGNALLED + _SIGPIPE, "", is_ours=True), "TERM", now)
            case events.Listening(listening):
                self._liveness.listen(now, listening=listening)
                self._report.listen(now, listening=listening)
            case _:
                self._learn(event, now)
        self._weigh(now)

    def _signalled(self, name: str, number: int, now: float) -> None:
        if name in _PASSED_ON:
            self._tell(wrapper.passing_on(name))
        else:
            self._terminate(Ending(_SIGNALLED + number, "", is_ours=True), name, now)

    def _learn(self, event: events.Event, now: float) -> None:
        match event:
            case events.Pong() if self._liveness.heard(now, pong=True):
                self._inquest.trust()
            case events.PodSeen(pod):
                self._inquest.pod_seen(pod)
                self._liveness.ask_the_pod(beats=self._guarded and (self._v5 or pod.cut_off))
            case events.PodGone():
                self._inquest.pod_gone()
            case events.PodHidden():
                self._inquest.pod_hidden()
            case events.ApiAnswers():
                self._inquest.api_silent = ""
            case events.ApiSilent(why):
                self._inquest.api_says_nothing(why)

    def _take(self, message: bytes, now: float) -> None:
        self._liveness.heard(now)
        self._inquest.trust()
        for part in self._streams.receive(message):
            self._take_part(part, now)
        self._flush_at = now + _FLUSH_AFTER if self._streams.holds_back else None

    def _take_part(self, part: Part, now: float) -> None:
        if isinstance(part, Output):
            # What comes before GO isn't the command's: a runtime's complaint, which its status repeats.
            if self.state is not State.HELLO:
                self._report.output(now)
                self._actions.append(events.Write(part.stream, part.data))
        elif isinstance(part, Status):
            self._take_status(part, now)
        else:
            self._take_marker(part, now)

    def _take_marker(self, marker: markers.Marker, now: float) -> None:
        match marker:
            case markers.Hello():
                self._go(now)
            case markers.Started():
                self._started(marker, now)
            case markers.Exit(code):
                self._step(Step.EXIT)
                self._report.exited(code, now)
            case markers.End() if self.state is not State.HELLO and not self._report.has_output:
                self._report.output_is_complete(now)
            case markers.Ack() if self._stdin.acknowledged():
                pass
            case markers.Beat():
                pass
            case _:
                raise PeerError(f"the wrapper in pod {self._task.pod} said {marker} out of turn")

    def _started(self, marker: markers.Started, now: float) -> None:
        self._step(Step.START)
        self._guarded = marker.guarded
        self._liveness.started(now, beats=self._v5 and marker.guarded)
        if self._task.order.has_stdin:
            self._stdin.started(raw=marker.raw_stdin)

    def _take_status(self, status: Status, now: float) -> None:
        if self.state is State.HELLO:
            self._try_again(not_started(self._task.pod, status, ""), now)
            return
        self._report.server_says(status)
        if self.state is not State.EXITED:
            self._inquest.status = status
            # Who delivered this is alive, and so is the watch: what is on its way to us must not be lost.
            self._doubt(now, anew=False)

    def _closed(self, how: str, now: float) -> None:
        try:
            self._streams.cut_off()
        except PeerError as error:
            how = str(error)
        self._inquest.closed = how or "it ended without a word"
        self._doubt(now)

    def _tick(self, now: float) -> None:
        due = self._liveness.tick(now)
        if not self._inquest.is_over:
            self._actions += [events.Ping()] if due.ping else []
            self._tell((wrapper.BEAT if due.beat else b"") + (wrapper.ALIVE if due.keep_alive else b""))
        if self._liveness.silence(now) >= DEAD_AFTER:
            self._doubt(now)
        if self._watch_at is not None and now >= self._watch_at:
            self._look()
        if self._flush_at is not None and now >= self._flush_at:
            self._flush()
        if self._termination is not None:
            self._tell(self._termination.step(now))

    def _doubt(self, now: float, *, anew: bool = True) -> None:
        """Something looks wrong. With `anew`, the watch that there is may be as dead as what raised the doubt."""
        if self._inquest.doubt(now):
            self._look(anew=anew)

    def _terminate(self, ending: Ending, signal: str, now: float) -> None:
        if self._termination is None:
            if self.state is not State.EXITED:
                self._step(Step.TERMINATE)
            self._termination = Termination(ending, now)
            self._tell(wrapper.ending_by(signal))
        else:
            self._termination.hurry(now)
            self._tell(self._termination.step(now))

    def _weigh(self, now: float) -> None:
        """Whether what is known by now is an outcome."""
        if self.state is State.EXITED:
            self._weigh_report(now)
            return
        verdict = self._inquest.verdict(now, self._liveness.silence(now))
        if self._termination is not None:
            cannot_end = self._inquest.doubts or (verdict is not None and not verdict.leaving)
            if cannot_end or self._termination.is_over(now):
                self._finish(self._termination.ending.code, self._termination.ending.line)
        elif verdict is not None and verdict.leaving and not self._inquest.is_over:
            self._terminate(Ending(verdict.code, verdict.cause), "TERM", now)
        elif verdict is not None:
            self._finish(verdict.code, verdict.cause)

    def _weigh_report(self, now: float) -> None:
        termination = self._termination
        is_dead = bool(self._inquest.closed) or self._liveness.silence(now) >= DEAD_AFTER
        over = is_dead or self._report.is_settled(now)
        if not over and termination is not None:
            over = self._report.has_output or termination.is_over(now)
        if over and termination is not None and not termination.ending.is_ours:
            self._finish(
                termination.ending.code, f"{termination.ending.line}; the command ended with {self._report.code}"
            )
        elif over:
            self._finish(*self._report.outcome(self._task.pod))

    # Both

    def _step(self, step: Step) -> None:
        following = TRANSITIONS.get((self.state, step))
        if following is None:
            raise PeerError(f"pod {self._task.pod}: {step.value}, which can't be in the state {self.state.value}")
        self.state = following

    def _finish(self, code: int, line: str = "") -> None:
        self._step(Step.FINISH)
        self._flush()
        self._actions += [events.HangUp(), events.Finish(code, line)]

    def _tell(self, line: bytes) -> None:
        self._actions += [events.Send(message) for message in stdin_messages(line)]

    def _flush(self) -> None:
        self._flush_at = None
        self._actions += [events.Write(output.stream, output.data) for output in self._streams.flush()]

    def _look(self, *, anew: bool = True) -> None:
        self._actions.append(events.LookAtPod(anew) if self._watching else events.WatchPod())
        self._watching, self._watch_at = True, None
