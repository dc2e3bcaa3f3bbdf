"""
The I/O of one session: its ports on a loop, what happens there as events, and what the session wants carried out.

No decisions. Nothing grows without bound: while output waits for a slow reader a keeper sends no more, the
wrapper's exec isn't read, and stdin is read as far as the session has room.
"""

from __future__ import annotations

import errno
import os
import select
import time

from mpirt.errors import ExitCode, MpirtError
from mpirt.kubeapi.answers import NotFound
from mpirt.kubeapi.asks import exec_in_pod
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.execs import ExecDial
from mpirt.rsh.ports.descriptors import Stdin
from mpirt.rsh.ports.execlink import ExecLink
from mpirt.rsh.ports.loop import FOR_EVER
from mpirt.rsh.ports.output import OutputPort
from mpirt.rsh.protocol.greeting import BOOTSTRAP
from mpirt.rsh.session import events
from mpirt.rsh.session.ending import SIGNALLED, broken_pipe
from mpirt.rsh.session.machine import PASSED_ON, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.kubeapi.execs import ExecApi
    from mpirt.rsh.pod.lookup import HostName
    from mpirt.rsh.ports.log import Log
    from mpirt.rsh.ports.loop import Loop
    from mpirt.rsh.ports.podlookup import PodLookup
    from mpirt.rsh.ports.podwatch import PodWatchPort
    from mpirt.rsh.session.session import Session

# Output that waits for its reader: above the one the exec is left alone, below the other it is read again.
_FULL = 256 * 1024
_ROOM = 64 * 1024
# How much output is written before the session is told: the pod has room for several times as much.
_WORTH_TELLING = 256 * 1024
# Told to end, we give a reader that doesn't read no more than this.
_LAST_SECONDS = 1.0
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class SessionIO:
    """One session, carried out."""

    # fmt: off
    __slots__ = (
        "_api", "_asked", "_dialing", "_ended_by", "_exec", "_finish", "_host_name", "_jitter", "_listening",
        "_log", "_lookup", "_loop", "_namespace", "_outputs", "_over_at", "_pod", "_service", "_session", "_stdin",
        "_stdout_is_lost", "_watch", "_written",
    )
    # fmt: on

    def __init__(
        self,
        session: Session,
        loop: Loop,
        api: ExecApi,
        *,
        namespace: str,
        pod: str,
        jitter: Callable[[], float],
        service: str = "",
        log: Log | None = None,
    ) -> None:
        """`service` is the second label of a host name: no pod may have its first as a name."""
        self._session, self._loop, self._api = session, loop, api
        self._namespace, self._pod, self._service = namespace, pod, service
        self._jitter, self._log = jitter, log
        self._host_name: HostName | None = None
        self._lookup: PodLookup | None = None
        self._asked: events.Dial | None = None
        self._dialing: ExecDial | None = None
        self._exec: ExecLink | None = None
        self._watch: PodWatchPort | None = None
        self._outputs = {fd: OutputPort(fd) for fd in (_STDOUT, _STDERR)}
        self._stdin = _StdinPort(session)
        self._listening = True
        self._written: tuple[int, ...] = (0, 0)
        self._stdout_is_lost = False
        self._ended_by = 0
        self._finish: events.Finish | None = None
        self._over_at = FOR_EVER
        for output in self._outputs.values():
            loop.add(output, self._drainer(output))
        loop.add(self._stdin, self._read_stdin)
        loop.add_clock(self, self._tick)

    def begin(self) -> None:
        """Let the session say what it wants first."""
        self._happened(events.Tick())

    @property
    def code(self) -> int | None:
        """The code to end with, once the session is over and what it received is written."""
        if self._finish is None:
            return None
        code, is_told = int(self._finish.code), bool(self._finish.line)
        if any(output.waiting for output in self._outputs.values()):
            # Output that was lost is never a success.
            return (code or SIGNALLED + self._ended_by) if time.monotonic() >= self._over_at else None
        # Whatever the command made of being ended: for who started us it was the reader that went away.
        is_lost = self._outputs[_STDOUT].broken_by is not None
        if is_lost and not is_told:
            return broken_pipe().code
        # There is nowhere to say it. A reader of stderr that went away wanted no more of it.
        error = self._outputs[_STDERR].broken_by
        is_cut = error is not None and error.errno != errno.EPIPE
        return ExitCode.UNKNOWN_END if code == 0 and is_cut else code

    def timeout(self) -> float:
        """In how many seconds the session's clock has to be looked at."""
        wake = self._session.wake if self._finish is None else self._over_at
        return FOR_EVER if wake is None else max(0.0, wake - time.monotonic())

    def signalled(self, name: str, number: int) -> None:
        """A signal has come: its name without SIG, and its number."""
        if name not in PASSED_ON:
            self._ended_by = number
            self._limit_the_rest()
        self._happened(events.Signalled(name, number))

    # What happens

    def _happened(self, event: events.Event) -> None:
        """Hand an event to the session and do what it wants, and what it wants because of that."""
        waiting = [event]
        while waiting and self._finish is None:
            following, now = waiting.pop(0), time.monotonic()
            actions = self._session.receive(following, now)
            if self._log is not None:
                for line in self._log.lines(following, actions, self._session.state, now):
                    self._say(line)
            for action in actions:
                self._do(action)
            waiting += self._about_output()

    def _tick(self) -> None:
        self._happened(events.Tick())

    def _drainer(self, output: OutputPort) -> Callable[[], None]:
        def drain() -> None:
            output.drain()
            for event in self._about_output():
                self._happened(event)

        return drain

    def _about_output(self) -> list[events.Event]:
        """What the session should know of our outputs: whether stdout is lost, whether we still listen."""
        told: list[events.Event] = []
        error = self._outputs[_STDOUT].broken_by
        if error is not None and not self._stdout_is_lost:
            self._stdout_is_lost = True
            if error.errno != errno.EPIPE:
                self._say(f"cannot write the output of pod {self._pod}: {os.strerror(error.errno or 0)}")
            told.append(events.StdoutBroken())
        told += self._about_written()
        waiting = max(output.waiting for output in self._outputs.values())
        listening = self._session.bounds_output or waiting < (_FULL if self._listening else _ROOM)
        if listening != self._listening:
            self._listening = listening
            if self._exec is not None:
                self._exec.listening = listening
            told.append(events.Listening(listening))
        return told

    def _about_written(self) -> list[events.Event]:
        """What has been written since it was told the last time, where that is worth telling."""
        done = tuple(map(max, self._written, (output.done for output in self._outputs.values())))
        if not self._session.bounds_output or sum(done) - sum(self._written) < _WORTH_TELLING:
            return []
        self._written = done
        return [events.Written(*done)]

    def _read_stdin(self) -> None:
        if not self._session.stdin_room:
            return
        try:
            data = self._stdin.read(self._session.stdin_room)
        except OSError as error:
            self._happened(events.StdinBroken(os.strerror(error.errno or 0)))
            return
        if data is not None:
            self._happened(events.StdinRead(data))

    def _step_exec(self) -> None:
        link = self._exec
        if link is None:
            return
        for event in link.step():
            if self._exec is not link:
                # The session has hung up.
                return
            self._happened(event)

    def _step_dialing(self) -> None:
        dialing = self._dialing
        if dialing is None:
            return
        try:
            upgraded = dialing.step()
        except MpirtError as error:
            self._stop_dialing()
            self._not_opened(error)
            return
        if upgraded is not None:
            self._stop_dialing()
            self._exec = ExecLink(upgraded)
            self._exec.listening = self._listening
            self._loop.add(self._exec, self._step_exec)
            self._happened(events.Opened(upgraded.protocol))

    def _step_watch(self) -> None:
        if self._watch is not None:
            for event in self._watch.learn():
                self._happened(event)

    # What the session wants

    def _do(self, action: events.Action) -> None:
        match action:
            case events.Dial():
                self._dial(action)
            case events.Write(stream, data):
                self._outputs[stream].add(data)
            case events.Say(line):
                self._say(line)
            case events.Finish():
                self._finished(action)
            case events.WatchPod() | events.LookAtPod():
                self._look(action)
            case events.HangUp():
                self._hang_up()
            case _ if self._exec is not None:
                self._do_with_exec(self._exec, action)

    @staticmethod
    def _do_with_exec(link: ExecLink, action: events.Action) -> None:
        match action:
            case events.Send(message):
                link.send(message)
            case events.Ping():
                link.ping()

    def _dial(self, dial: events.Dial) -> None:
        ask = exec_in_pod(self._namespace, self._pod, container=dial.container, command=BOOTSTRAP)
        within, credentials_by = Deadline(dial.seconds), Deadline(dial.credentials_seconds)
        self._asked = dial
        self._dialing = ExecDial(self._api, ask, [dial.protocol], within, credentials_by=credentials_by)
        self._loop.add(self._dialing, self._step_dialing)

    def _not_opened(self, error: MpirtError) -> None:
        # A kubelet's 404, which is none of the API server's, comes from a node that knows the pod's name.
        # One that has entered its pod once looks for no other.
        if self._session.state is State.DIAL and isinstance(error, NotFound) and error.failure.is_status:
            self._look_up(error)
        else:
            self._happened(events.NotOpened(error))

    def _look_up(self, error: NotFound) -> None:
        # Most names are those of pods.
        from mpirt.rsh.pod.lookup import HostName  # noqa: PLC0415
        from mpirt.rsh.ports.podlookup import PodLookup  # noqa: PLC0415

        if self._host_name is None:
            self._host_name = HostName(self._api.list_steps, self._namespace, self._pod, service=self._service)
        self._lookup = PodLookup(self._host_name.pod(error))
        self._loop.add(self._lookup, self._step_lookup)

    def _step_lookup(self) -> None:
        event = None if self._lookup is None else self._lookup.learn()
        if event is None:
            return
        self._stop_dialing()
        if isinstance(event, events.PodFound):
            self._pod = event.pod
        self._happened(event)
        if isinstance(event, events.PodFound) and self._asked is not None:
            self._dial(self._asked)

    def _hang_up(self) -> None:
        self._stop_dialing()
        if self._exec is not None:
            self._loop.remove(self._exec)
            self._exec.close()
            self._exec = None

    def _stop_dialing(self) -> None:
        for port in (self._dialing, self._lookup):
            if port is not None:
                self._loop.remove(port)
                port.close()
        self._dialing = self._lookup = None

    def _look(self, action: events.WatchPod | events.LookAtPod) -> None:
        if self._watch is None:
            # Commands that are over within a second never get here.
            from mpirt.rsh.ports.podwatch import PodWatchPort  # noqa: PLC0415

            self._watch = PodWatchPort(self._api.dialer, self._namespace, self._pod, jitter=self._jitter)
            self._loop.add(self._watch, self._step_watch)
        elif isinstance(action, events.LookAtPod):
            self._watch.look(anew=action.anew)

    def _say(self, line: str) -> None:
        """Tell the person a line."""
        self._outputs[_STDERR].say(line)

    def _finished(self, finish: events.Finish) -> None:
        """What was received is written, however slowly it is read, unless somebody wants an end to it."""
        self._finish = finish
        if finish.line:
            self._say(finish.line)
        self._hang_up()
        self._loop.remove(self._stdin)
        if self._watch is not None:
            self._loop.remove(self._watch)
            self._watch.drop()
        self._limit_the_rest()

    def _limit_the_rest(self) -> None:
        if self._finish is not None and self._ended_by:
            self._over_at = time.monotonic() + _LAST_SECONDS


class _StdinPort(Stdin):
    """Our stdin, as far as the session has room for it."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        super().__init__(_STDIN)
        self._session = session

    @property
    def wants(self) -> int:
        return select.POLLIN if self._session.stdin_room else 0

    @staticmethod
    def timeout() -> float:
        return FOR_EVER
