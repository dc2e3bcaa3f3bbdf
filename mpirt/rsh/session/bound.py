"""
A command that is bound to its connection: what follows GO where the pod's shell runs the wrapper.

Owns: the order of things from GO to the last word, and the outcome. When the connection ends, the command does.
Events in, actions out; it never waits.
"""

from __future__ import annotations

from mpirt.errors import ExitCode, PeerError
from mpirt.kubeapi.request.channels import V5, Output, Status
from mpirt.rsh.pod.liveness import Liveness
from mpirt.rsh.protocol import markers, wrapper
from mpirt.rsh.protocol.streams import Part, Streams
from mpirt.rsh.session import events
from mpirt.rsh.session.ending import Ending, left_open
from mpirt.rsh.session.findings import Findings
from mpirt.rsh.session.machine import TERM, Entered, Running, State, Step
from mpirt.rsh.session.report import Report, Termination
from mpirt.rsh.session.stdinflow import StdinFlow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.rsh.session.starting import Task

# What looks like the beginning of a marker is shown when nothing has followed for so long.
_FLUSH_AFTER = 0.1
# From GO to START. A shell reads the script byte by byte, and a command may be megabytes.
_START_SECONDS = 60.0


class Bound(Running):
    """One command, over one connection."""

    # fmt: off
    __slots__ = (
        "_findings", "_flush_at", "_guarded", "_liveness", "_report", "_start_by", "_stdin", "_streams",
        "_termination", "_v5",
    )
    # fmt: on

    def __init__(self, task: Task, streams: Streams, entered: Entered, *, now: float) -> None:
        super().__init__(task, State.GO, watching=entered.watching)
        self._streams = streams
        self._liveness = Liveness(now, task.pace)
        self._stdin = StdinFlow()
        self._findings = Findings(task.pod, task.pace)
        self._findings.container = entered.container
        self._report = Report()
        self._termination: Termination | None = None
        self._v5 = entered.protocol == V5
        self._guarded = False
        self._watch_at = now + task.watch_after
        self._start_by: float | None = now + _START_SECONDS
        self._flush_at: float | None = None

    bounds_output = False

    @property
    def stdin_taken(self) -> int:
        """All of it that was read: nothing of this command can be resumed."""
        return self._stdin.taken

    @property
    def stdin_room(self) -> int:
        """How many bytes of our own stdin may be read now; 0 is: leave it alone."""
        return self._stdin.room if self.state is State.RUNNING else 0

    @property
    def wake(self) -> float | None:
        """When to hand in a Tick, at the latest."""
        termination = None if self._termination is None else self._termination.wake
        doubt = None if self.state is State.EXITED else self._findings.wake
        moments = (
            *(self._liveness.wake, doubt, self._report.wake, termination),
            *(self._watch_at, self._flush_at, self._start_by if termination is None else None),
        )
        return min(moment for moment in moments if moment is not None)

    @property
    def node(self) -> str:
        """The pod's node, as far as it is known."""
        return self._findings.node

    @property
    def container(self) -> str:
        """The container that was entered, as far as its name is known."""
        return self._findings.used_container

    def silence(self, now: float) -> float | None:
        """Seconds since the last sign of life from the pod, as far as they count."""
        return self._liveness.silence(now)

    def _happened(self, event: events.Event, now: float) -> None:
        match event:
            case events.Tick():
                self._tick(now)
            case events.Received(message):
                self._take(message, now)
            case events.Closed(how):
                self._closed(how, now)
            case events.StdinRead(data):
                self._tell(self._stdin.piece(data) if data else self._stdin.end())
            case events.Signalled() | events.StdinBroken() | events.StdoutBroken():
                self._of_ours(event, now, is_ending=self._termination is not None)
            case events.Listening(listening):
                self._liveness.listen(now, listening=listening)
                self._report.listen(now, listening=listening)
            case _:
                self._learn(event, now)
        self._weigh(now)

    def _pass_on(self, number: int) -> None:
        self._tell(wrapper.passing_on(number))

    def _learn(self, event: events.Event, now: float) -> None:
        match event:
            case events.Pong() if self._liveness.heard(now, pong=True):
                self._findings.trust()
            case events.PodSeen(pod):
                self._findings.learn(event)
                self._liveness.ask_the_pod(beats=self._guarded and (self._v5 or pod.cut_off))
            case _:
                self._findings.learn(event)

    def _take(self, message: bytes, now: float) -> None:
        self._liveness.heard(now)
        self._findings.trust()
        for part in self._streams.receive(message):
            self._take_part(part, now)
        self._flush_at = now + _FLUSH_AFTER if self._streams.holds_back else None

    def _take_part(self, part: Part, now: float) -> None:
        if isinstance(part, Output):
            self._report.output(now)
            self._actions.append(events.Write(part.stream, part.data))
        elif isinstance(part, Status):
            self._take_status(part, now)
        else:
            self._take_marker(part, now)

    def _take_marker(self, marker: markers.Marker, now: float) -> None:
        match marker:
            case markers.Started():
                self._started(marker, now)
            case markers.Exit(code):
                self._step(Step.EXIT)
                self._report.exited(code, now)
            case markers.End(is_open) if not self._report.has_output:
                self._report.output_is_complete(now, left_open=is_open)
            case markers.Ack() if self._stdin.acknowledged():
                pass
            case markers.Beat():
                pass
            case _:
                raise PeerError(f"the wrapper in pod {self._task.pod} said {marker} out of turn")

    def _started(self, marker: markers.Started, now: float) -> None:
        self._step(Step.START)
        self._start_by = None
        self._guarded = marker.guarded
        self._liveness.started(now, beats=self._v5 and marker.guarded)
        if self._task.order.has_stdin:
            self._stdin.started(raw=marker.raw_stdin)

    def _take_status(self, status: Status, now: float) -> None:
        self._report.server_says(status)
        if self.state is not State.EXITED:
            self._findings.status = status
            # Who delivered this is alive, and so is the watch: what is on its way to us must not be lost.
            self._doubt(now, anew=False)

    def _closed(self, how: str, now: float) -> None:
        try:
            self._streams.cut_off()
        except PeerError as error:
            how = str(error)
        self._findings.closed = how or "it ended without a word"
        self._doubt(now)

    def _tick(self, now: float) -> None:
        due = self._liveness.tick(now)
        if not self._findings.is_over:
            self._actions += [events.Ping()] if due.ping else []
            self._tell((wrapper.BEAT if due.beat else b"") + (wrapper.ALIVE if due.keep_alive else b""))
        if self._liveness.is_dead(now):
            self._doubt(now)
        self._watch_in_time(now)
        if self._flush_at is not None and now >= self._flush_at:
            self._flush()
        if self._termination is not None:
            self._tell(self._termination.step(now))

    def _doubt(self, now: float, *, anew: bool = True) -> None:
        """Something looks wrong. With `anew`, the watch that there is may be as dead as what raised the doubt."""
        if self._findings.doubt(now):
            self._look(anew=anew)

    def _terminate(
        self,
        ending: Ending,
        signal: int,
        grace: float,
        now: float,
        *,
        is_asked: bool = False,  # noqa: ARG002  nobody takes such a command over
    ) -> None:
        if self._termination is None:
            if self.state is not State.EXITED:
                self._step(Step.TERMINATE)
            self._termination = Termination(ending, signal, grace, now)
        else:
            self._termination.shorten(grace, now)
        self._tell(self._termination.step(now))

    def _weigh(self, now: float) -> None:
        """Whether what is known by now is an outcome."""
        if self.state is State.EXITED:
            self._weigh_report(now)
            return
        verdict = self._findings.verdict(now, self._liveness.silence(now))
        if self._termination is not None:
            cannot_end = self._findings.doubts or (verdict is not None and not verdict.leaving)
            if cannot_end or self._termination.is_over(now):
                self._finish(self._termination.ending.code, self._termination.ending.line)
        elif verdict is not None and verdict.leaving and not self._findings.is_over:
            grace = self._task.grace.deleted(verdict.grace)
            self._terminate(Ending(verdict.code, verdict.cause), TERM, grace, now)
        elif verdict is not None:
            self._finish(verdict.code, verdict.cause)
        elif self._start_by is not None and now >= self._start_by:
            # Not that it was not started: this may be all that was lost.
            line = f"the shell in pod {self._task.pod} did not start the command within {_START_SECONDS:.0f} s"
            self._finish(ExitCode.UNKNOWN_END, line)

    def _weigh_report(self, now: float) -> None:
        termination = self._termination
        is_dead = bool(self._findings.closed) or self._liveness.is_dead(now)
        over = is_dead or self._report.is_settled(now)
        if not over and termination is not None:
            over = self._report.has_output or termination.is_over(now)
        if over and termination is not None and not termination.ending.is_ours:
            self._finish(*termination.ending.after(self._report.code))
        elif over:
            self._finish(*self._report.outcome(self._task.pod))

    def _finish(self, code: int, line: str = "") -> None:
        self._flush()
        if self._report.is_cut:
            self._actions.append(events.Say(left_open(self._task.pod)))
        super()._finish(code, line)

    def _flush(self) -> None:
        self._flush_at = None
        self._actions += [events.Write(output.stream, output.data) for output in self._streams.flush()]
