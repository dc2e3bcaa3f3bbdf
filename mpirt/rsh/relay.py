"""
One loop that does what a session asks for: bytes between our descriptors, the exec and the pod's watch.

Owns: the only poll, and everything that it waits for. No decisions: what happens becomes an event, what comes
back is carried out. Nothing grows without bound: while output waits for a slow reader a keeper sends no more, the
wrapper's exec isn't read, and stdin is read as far as the session has room.
"""

from __future__ import annotations

import errno
import os
import select
import time

from mpirt.errors import MpirtError
from mpirt.kubeapi.answers import NotFound
from mpirt.kubeapi.asks import exec_in_pod
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.execs import ExecDial
from mpirt.rsh import events
from mpirt.rsh.descriptors import Stdin
from mpirt.rsh.ending import SIGNALLED, broken_pipe
from mpirt.rsh.greeting import BOOTSTRAP
from mpirt.rsh.machine import PASSED_ON
from mpirt.rsh.outlets import Outlet
from mpirt.rsh.states import State
from mpirt.rsh.transport import ExecLink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.kubeapi.execs import ExecApi
    from mpirt.rsh.hostlookup import HostName
    from mpirt.rsh.log import Log
    from mpirt.rsh.lookout import Lookout
    from mpirt.rsh.session import Session
    from mpirt.rsh.signals import Signals

# Output that waits for its reader: above the one the exec is left alone, below the other it is read again.
_FULL = 256 * 1024
_ROOM = 64 * 1024
# How much output is written before the session is told: the pod has room for several times as much.
_WORTH_TELLING = 64 * 1024
# Told to end, we give a reader that doesn't read no more than this.
_LAST_SECONDS = 1.0
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Relay:
    """The I/O of one session."""

    # fmt: off
    __slots__ = (
        "_api", "_dial_again", "_dialing", "_ended_by", "_exec", "_finish", "_host_name", "_jitter", "_listening",
        "_log", "_namespace", "_outlets", "_parent", "_pod", "_service", "_session", "_signals", "_stdin",
        "_stdout_is_lost", "_watch", "_written",
    )
    # fmt: on

    def __init__(
        self,
        session: Session,
        api: ExecApi,
        signals: Signals,
        *,
        namespace: str,
        pod: str,
        jitter: Callable[[], float],
        service: str = "",
        log: Log | None = None,
        parent: int = 0,
    ) -> None:
        """
        With a `parent`, the session ends when we are not its child any more.

        `service` is the second label of a host name: no pod may have its first as a name.
        """
        self._session, self._api, self._signals = session, api, signals
        self._namespace, self._pod, self._service = namespace, pod, service
        self._host_name: HostName | None = None
        self._dial_again: events.Dial | None = None
        self._jitter, self._log, self._parent = jitter, log, parent
        self._dialing: ExecDial | None = None
        self._exec: ExecLink | None = None
        self._watch: Lookout | None = None
        self._outlets = {fd: Outlet(fd) for fd in (_STDOUT, _STDERR)}
        self._stdin = Stdin(_STDIN)
        self._listening = True
        self._written: tuple[int, ...] = (0, 0)
        self._stdout_is_lost = False
        self._ended_by = 0
        self._finish: events.Finish | None = None

    def run(self) -> int:
        """See the session through. Returns the code to end with."""
        self._happened(events.Tick())
        while self._finish is None:
            self._step(self._wait())
        line, code = self._finish.line, int(self._finish.code)
        if line:
            self._say(line)
        code = self._write_the_rest(code)
        # Whatever the command made of being ended: for who started us it was the reader that went away.
        is_lost = self._outlets[_STDOUT].broken_by is not None
        return broken_pipe().code if is_lost and not line else code

    def _step(self, ready: dict[int, int]) -> None:
        """Let everything that can go on go on, once."""
        self._take_signals()
        for outlet in self._outlets.values():
            if outlet.fileno() in ready:
                outlet.drain()
        self._tell(self._about_output())
        self._step_dialing(ready)
        self._step_exec(ready)
        if self._stdin.fileno() in ready and self._session.stdin_room:
            self._read_stdin()
        self._step_watch(ready)
        wake = self._session.wake
        if wake is not None and time.monotonic() >= wake:
            self._happened(events.Tick())

    def _wait(self) -> dict[int, int]:
        """Wait until something is ready, or it is time."""
        poll = select.poll()
        poll.register(self._signals.fileno(), select.POLLIN)
        timeout = self._register(poll)
        # A millisecond more rather than less: poll cuts fractions off, and would spin through the last one.
        return dict(poll.poll(int(timeout * 1000) + 1 if timeout > 0 else 0))

    def _register(self, poll: select.poll) -> float:
        wake = self._session.wake
        timeout = 0.0 if wake is None else max(0.0, wake - time.monotonic())
        link, watch, dialing = self._exec, self._watch, self._dialing
        if link is not None and link.fileno() >= 0 and link.wants:
            poll.register(link.fileno(), link.wants)
        if link is not None and link.has_more:
            timeout = 0.0
        if dialing is not None:
            timeout = min(timeout, dialing.timeout())
            if dialing.fileno() >= 0:
                poll.register(dialing.fileno(), dialing.wants)
        if watch is not None:
            timeout = min(timeout, watch.timeout())
            if watch.fileno() >= 0:
                poll.register(watch.fileno(), watch.wants)
        if self._session.stdin_room and self._stdin.fileno() >= 0:
            poll.register(self._stdin.fileno(), select.POLLIN)
        self._register_outlets(poll)
        return timeout

    def _register_outlets(self, poll: select.poll) -> None:
        for outlet in self._outlets.values():
            if outlet.waiting:
                poll.register(outlet.fileno(), outlet.wants)

    def _take_signals(self) -> None:
        for name, number in self._signals.take():
            self._note(name, number)
            self._happened(events.Signalled(name, number))
        if self._parent and os.getppid() != self._parent:
            self._parent = 0
            self._note("HUP", 1)
            self._happened(events.Signalled("HUP", 1))

    def _note(self, name: str, number: int) -> None:
        if name not in PASSED_ON:
            self._ended_by = number

    def _step_exec(self, ready: dict[int, int]) -> None:
        link = self._exec
        if link is None or not (link.fileno() in ready or link.has_more):
            return
        for event in link.step():
            if self._exec is not link:
                # The session has hung up.
                return
            self._happened(event)

    def _step_watch(self, ready: dict[int, int]) -> None:
        watch = self._watch
        if watch is None or not (watch.fileno() in ready or watch.timeout() <= 0):
            return
        self._tell(watch.learn())

    def _about_output(self) -> list[events.Event]:
        """What the session should know of our outlets: whether stdout is lost, whether we still listen."""
        told: list[events.Event] = []
        error = self._outlets[_STDOUT].broken_by
        if error is not None and not self._stdout_is_lost:
            self._stdout_is_lost = True
            if error.errno != errno.EPIPE:
                self._say(f"cannot write the output of pod {self._pod}: {os.strerror(error.errno or 0)}")
            told.append(events.StdoutBroken())
        told += self._about_written()
        waiting = max(outlet.waiting for outlet in self._outlets.values())
        listening = self._session.bounds_output or waiting < (_FULL if self._listening else _ROOM)
        if listening != self._listening:
            self._listening = listening
            if self._exec is not None:
                self._exec.listening = listening
            told.append(events.Listening(listening))
        return told

    def _about_written(self) -> list[events.Event]:
        """What has been written since it was told the last time, where that is worth telling."""
        done = tuple(map(max, self._written, (outlet.done for outlet in self._outlets.values())))
        if not self._session.bounds_output or sum(done) - sum(self._written) < _WORTH_TELLING:
            return []
        self._written = done
        return [events.Written(*done)]

    def _read_stdin(self) -> None:
        try:
            data = self._stdin.read(self._session.stdin_room)
        except OSError as error:
            self._happened(events.StdinBroken(os.strerror(error.errno or 0)))
            return
        if data is not None:
            self._happened(events.StdinRead(data))

    def _tell(self, told: list[events.Event]) -> None:
        for event in told:
            self._happened(event)

    def _happened(self, event: events.Event) -> None:
        """Hand an event to the session and do what it wants, and what it wants because of that."""
        waiting = [event]
        while waiting:
            following, now = waiting.pop(0), time.monotonic()
            actions = self._session.receive(following, now)
            if self._log is not None:
                for line in self._log.lines(following, actions, self._session.state, now):
                    self._say(line)
            for action in actions:
                self._do(action)
            waiting += self._about_output()

    def _do(self, action: events.Action) -> None:
        match action:
            case events.Dial():
                self._dial(action)
            case events.Write(stream, data):
                self._outlets[stream].add(data)
            case events.Say(line):
                self._say(line)
            case events.Finish():
                self._finish = action
            case events.WatchPod() | events.LookAtPod():
                self._look(action)
            case events.HangUp():
                self._hang_up()
            case _:
                self._do_with_exec(action)

    def _do_with_exec(self, action: events.Action) -> None:
        link = self._exec
        if link is None:
            return
        match action:
            case events.Send(message):
                link.send(message)
            case events.Ping():
                link.ping()

    def _hang_up(self) -> None:
        for opened in (self._exec, self._dialing):
            if opened is not None:
                opened.close()
        self._exec = self._dialing = None

    def _dial(self, dial: events.Dial) -> None:
        ask = exec_in_pod(self._namespace, self._pod, container=dial.container, command=BOOTSTRAP)
        within, credentials_by = Deadline(dial.seconds), Deadline(dial.credentials_seconds)
        self._dialing = ExecDial(self._api, ask, [dial.protocol], within, credentials_by=credentials_by)
        self._dial_again = dial

    def _step_dialing(self, ready: dict[int, int]) -> None:
        dialing = self._dialing
        if dialing is None or not (dialing.fileno() in ready or dialing.timeout() <= 0):
            return
        try:
            upgraded = dialing.step()
        except MpirtError as error:
            self._dialing = None
            self._not_opened(error)
            return
        if upgraded is not None:
            self._dialing = None
            self._exec = ExecLink(upgraded)
            self._exec.listening = self._listening
            self._happened(events.Opened(upgraded.protocol))

    def _not_opened(self, error: MpirtError) -> None:
        # A kubelet's 404, which is none of the API server's, comes from a node that knows the pod's name.
        # One that has entered its pod once looks for no other.
        is_first = self._session.state is State.DIAL
        if is_first and isinstance(error, NotFound) and error.failure.is_status and self._dial_again is not None:
            try:
                self._pod = self._looked_up(error)
            except MpirtError as other:
                error = other
            else:
                self._happened(events.PodFound(self._pod))
                self._dial(self._dial_again)
                return
        self._happened(events.NotOpened(error))

    def _looked_up(self, error: NotFound) -> str:
        if self._host_name is None:
            # Most names are those of pods.
            from mpirt.rsh.hostlookup import HostName  # noqa: PLC0415

            lists = self._api.list_pods
            self._host_name = HostName(lists, self._namespace, self._pod, service=self._service)
        return self._host_name.pod(error)

    def _look(self, action: events.WatchPod | events.LookAtPod) -> None:
        if self._watch is None:
            # Commands that are over within a second never get here.
            from mpirt.rsh.lookout import Lookout  # noqa: PLC0415

            self._watch = Lookout(self._api.dialer, self._namespace, self._pod, jitter=self._jitter)
        elif isinstance(action, events.LookAtPod):
            self._watch.look(anew=action.anew)

    def _say(self, line: str) -> None:
        """Tell the person a line."""
        self._outlets[_STDERR].say(line)

    def _write_the_rest(self, code: int) -> int:
        """What was received is written, however slowly it is read, unless somebody wants an end to it."""
        while any(outlet.waiting for outlet in self._outlets.values()):
            poll = select.poll()
            poll.register(self._signals.fileno(), select.POLLIN)
            self._register_outlets(poll)
            ready = poll.poll(_LAST_SECONDS * 1000 if self._ended_by else None)
            for name, number in self._signals.take():
                self._note(name, number)
            if not ready:
                # Output that was lost is never a success.
                return code or SIGNALLED + self._ended_by
            for outlet in self._outlets.values():
                outlet.drain()
        return code
