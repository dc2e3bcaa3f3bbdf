"""
The I/O of one session: its ports on a loop, what happens there as events, and what the session wants carried out.

No decisions. Nothing grows without bound: while output waits for a slow reader a keeper sends no more, and stdin
is read as far as the session has room.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mpirt.errors import ExitCode, MpirtError
from mpirt.kubeapi.access.steps import Deadline, Pending
from mpirt.kubeapi.request.answers import NotFound
from mpirt.kubeapi.request.asks import exec_in_pod
from mpirt.kubeapi.request.execs import ExecApi, Upgraded
from mpirt.rsh.pod.lookup import HostName
from mpirt.rsh.protocol.entrance import BOOTSTRAP
from mpirt.rsh.session import events
from mpirt.rsh.session.held import PASSED_ON, SIGNALLED, broken_stdout
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.session import Session, Starting
from mpirt.rsh.switchboard.links import ExecLink, PodLookup
from mpirt.rsh.switchboard.log import Log
from mpirt.rsh.watches.followers import Follower
from mpirt.rsh.watches.loop import FOR_EVER
from mpirt.rsh.watches.podhub import PodHub

if TYPE_CHECKING:
    # They import this module.
    from mpirt.rsh.switchboard.agentlink import AgentLink
    from mpirt.rsh.switchboard.call import Call, Wish

# How much output is written before the session is told: the pod has room for several times as much.
_WORTH_TELLING = 256 * 1024
# Told to end, we give a reader that doesn't read no more than this.
_LAST_SECONDS = 1.0
# A node that is gone takes all the time of a dial. Those behind it, whose nodes may be well, don't wait for that.
_SLOW_SECONDS = 1.0
_STDOUT, _STDERR = 1, 2


class SessionIO:
    """One session, carried out."""

    def __init__(
        self, session: Session, agent: AgentLink, call: Call, wish: Wish, hub: PodHub, *, log: Log | None
    ) -> None:
        """`call` hears whenever there may be a code."""
        self.session, self._agent, self._call, self._wish, self._hub = session, agent, call, wish, hub
        self._loop, self._log, self._api = call.loop, log, ExecApi(wish.cluster.dialer)
        self._waiting: list[events.Event] = []
        self._is_hearing = False
        self._host_name: HostName | None = None
        self._lookup: PodLookup | None = None
        self._asked: events.Dial | None = None
        self._dialing: Pending[Upgraded] | None = None
        self._slow_at = FOR_EVER
        self._exec: ExecLink | None = None
        self._follower: Follower | None = None
        self._listening = True
        self._written: tuple[int, ...] = (0, 0)
        self._stdout_is_lost = False
        self._seen: tuple[State, bool] | None = None
        """What the call knows of it."""
        self._ended_by = 0
        self.finish: events.Finish | None = None
        self._over_at = FOR_EVER
        agent.serve(self)
        self._loop.add_clock(self, self.begin, group=self)

    def begin(self) -> None:
        """Let the session say what it wants: first, and whenever its clock says so."""
        if time.monotonic() >= self._slow_at:
            self._slow_at = FOR_EVER
            self._wish.cluster.gate.leave(self._call)
        self.hear(events.Tick())

    @property
    def code(self) -> int | None:
        """The code to end with, once the session is over and what it received is written."""
        if self.finish is None:
            return None
        code, is_told = int(self.finish.code), bool(self.finish.line)
        if self._agent.waiting:
            # Output that was lost is never a success.
            return (code or SIGNALLED + self._ended_by) if time.monotonic() >= self._over_at else None
        # Whatever the command made of being ended: for who started us it was the reader that went away.
        if self._agent.broken[_STDOUT] == errno.EPIPE and not is_told:
            return broken_stdout(self.session.phase.pod, "").code
        # The command may have ended before. A reader of stderr that went away wanted no more of it.
        is_cut = any(self._agent.broken[stream] not in (0, errno.EPIPE) for stream in (_STDOUT, _STDERR))
        return ExitCode.UNKNOWN_END if code == 0 and is_cut else code

    def timeout(self) -> float:
        """In how many seconds the session's clock has to be looked at."""
        wake = self.session.wake if self.finish is None else self._over_at
        return max(0.0, min(FOR_EVER if wake is None else wake, self._slow_at) - time.monotonic())

    def signalled(self, name: str, number: int) -> None:
        """A signal has come: its name without SIG, and its number."""
        if name not in PASSED_ON:
            self._ended_by = number
            self._limit_the_rest()
        self.hear(events.Signalled(name, number))

    def abandon(self) -> None:
        """Let go of everything, after an unforeseen error."""
        self.finish = self.finish or events.Finish(ExitCode.INTERNAL)
        self._loop.drop(self)
        self._hang_up()
        if self._follower is not None:
            self._follower.drop()

    # What happens

    def hear(self, *happened: events.Event) -> None:
        """
        Hand events to the session and do what it wants, and what it wants because of that.

        What happens while something is done comes next, and not in the middle of it.
        """
        if self._deal_with(happened):
            self._settle()

    def _deal_with(self, happened: Iterable[events.Event]) -> bool:
        """Hand events to the session. False if it is busy with earlier ones: these come next, then."""
        self._waiting += happened
        if self._is_hearing:
            return False
        self._is_hearing = True
        while self._waiting and self.finish is None:
            self._hear_one(self._waiting.pop(0), time.monotonic())
        self._waiting.clear()
        self._is_hearing = False
        return True

    def _settle(self) -> None:
        """Send what is queued on either side, and report what has changed."""
        if self._exec is not None:
            self._exec.flush()
        self._agent.settle(self.session.phase.stdin_room, self.session.phase.stdin_taken)
        self._loop.touch(self)
        seen = self.session.phase.state, self._agent.is_gone
        if seen != self._seen or self.finish is not None or self._call.is_surveyed:
            self._seen = seen
            self._call.moved()

    def _hear_one(self, event: events.Event, now: float) -> None:
        actions = self.session.receive(event, now)
        if self._log is not None:
            for line in self._log.lines(event, actions, self.session.phase.state, now):
                self._agent.say(line)
        for action in actions:
            self._do(action)
        if actions:
            self._waiting += self._about_output()

    def output_moved(self) -> None:
        """Some of the output was written, or can't be."""
        self.hear(*self._about_output())

    def _about_output(self) -> list[events.Event]:
        """What the session should know of our outputs: whether stdout is lost, whether we still listen."""
        told: list[events.Event] = []
        error = self._agent.broken[_STDOUT]
        if error and not self._stdout_is_lost:
            self._stdout_is_lost = True
            why = "" if error == errno.EPIPE else os.strerror(error)
            if why and self.finish is not None and not self.finish.line:
                self._agent.say(broken_stdout(self.session.phase.pod, why).line)
            told.append(events.StdoutBroken(why))
        told += self._about_written()
        if (listening := self._may_listen()) != self._listening:
            self._listening = listening
            if self._exec is not None:
                self._exec.listening, self._exec.notices_end = listening, True
            told.append(events.Listening(listening))
        return told

    def _may_listen(self) -> bool:
        # A connection on which a keeper is looked for, or that says how it ended, is read in any case.
        return self.session.phase.state is not State.RUNNING or not self._agent.is_crowded

    def _about_written(self) -> list[events.Event]:
        """What has been written since it was told the last time, where that is worth telling."""
        done = tuple(map(max, self._written, self._agent.done))
        if sum(done) - sum(self._written) < _WORTH_TELLING:
            return []
        self._written = done
        return [events.Written(*done)]

    def _step_exec(self) -> None:
        link = self._exec
        if link is None:
            return
        happened = link.step()
        for event in happened:
            # The session may have hung up.
            if self._exec is link:
                self._deal_with((event,))
        if self._exec is link and link.has_ended:
            self._leave_exec()
        if happened:
            self._settle()

    def _step_dialing(self) -> None:
        dialing = self._dialing
        if dialing is None:
            return
        try:
            upgraded = dialing.result if dialing.advance() else None
        except MpirtError as error:
            self._wish.cluster.refused(error)
            self._stop_dialing()
            self._not_opened(error)
            return
        if upgraded is not None:
            self._stop_dialing()
            self._exec = ExecLink(upgraded)
            self._exec.listening = self._listening
            self._loop.add(self._exec, self._step_exec, group=self)
            self.hear(events.Opened(upgraded.protocol))

    # What the session wants

    def _do(self, action: events.Action) -> None:
        match action:
            case events.Dial():
                self._dial(action)
            case events.Write(stream, data):
                self._agent.write(stream, data)
            case events.Say(line):
                self._agent.say(line)
            case events.Finish():
                self._finished(action)
            case events.WatchPod() | events.LookAtPod():
                self._look(action)
            case events.HangUp():
                self._hang_up()
            case _:
                self._do_more(action)

    def _do_more(self, action: events.Action) -> None:
        link = self._exec
        match action:
            case events.Keep(record):
                self._agent.keep(record)
            case events.Send(message) if link is not None:
                link.send(message)

    def _dial(self, dial: events.Dial) -> None:
        self._wish.cluster.gate.enter(self._call, lambda: self._call.guard(lambda: self._begin_to_dial(dial)))

    def _begin_to_dial(self, dial: events.Dial) -> None:
        ask = exec_in_pod(
            self._wish.namespace, self.session.phase.pod, container=dial.container, command=BOOTSTRAP
        )
        within, credentials_by = Deadline(dial.seconds), Deadline(dial.credentials_seconds)
        self._asked = dial
        if self.session.phase.is_held:
            self._slow_at = time.monotonic() + _SLOW_SECONDS
        self._dialing = Pending(self._api.upgrade(ask, [dial.protocol], within, credentials_by))
        self._loop.add(self._dialing, self._step_dialing, group=self)

    def _not_opened(self, error: MpirtError) -> None:
        # A kubelet's 404, which is none of the API server's, comes from a node that knows the pod's name.
        # One that has entered its pod once looks for no other.
        if self.session.phase.state is State.DIAL and isinstance(error, NotFound) and error.failure.is_status:
            self._look_up(error)
        else:
            self.hear(events.NotOpened(error))

    def _look_up(self, error: NotFound) -> None:
        if self._host_name is None:
            self._host_name = HostName(
                self._api.list_steps,
                self._wish.namespace,
                self.session.phase.pod,
                service=self._wish.asked.service,
            )
        self._lookup = PodLookup(self._host_name.pod(error))
        self._loop.add(self._lookup, self._step_lookup, group=self)

    def _step_lookup(self) -> None:
        event = None if self._lookup is None else self._lookup.learn()
        if event is None:
            return
        self._stop_dialing()
        self.hear(event)
        if isinstance(event, events.PodFound) and self._asked is not None:
            self._dial(self._asked)

    def _hang_up(self) -> None:
        self._stop_dialing()
        self._leave_exec()

    def _leave_exec(self) -> None:
        if self._exec is not None:
            self._loop.remove(self._exec)
            self._exec.close()
            self._exec = None

    def _stop_dialing(self) -> None:
        self._slow_at = FOR_EVER
        self._wish.cluster.gate.leave(self._call)
        for port in (self._dialing, self._lookup):
            if port is not None:
                self._loop.remove(port)
                port.close()
        self._dialing = self._lookup = None

    def _look(self, action: events.WatchPod | events.LookAtPod) -> None:
        before = self._follower
        if before is not None and isinstance(action, events.LookAtPod):
            return before.look(anew=True)
        self._follower = follower = self._hub.follow(self.session.phase.pod, self._hear_of_pod)
        if before is not None:
            before.drop()
        return follower.look(anew=True) if isinstance(action, events.LookAtPod) or action.anew else None

    def _hear_of_pod(self, told: Sequence[events.Event]) -> None:
        """The hub tells it in the middle of its own acts."""

        def hear() -> None:
            self._call.note_pod(told)
            self.hear(*told)

        self._call.guard(hear)

    def _finished(self, finish: events.Finish) -> None:
        """What was received is written, however slowly it is read, unless a signal limits that."""
        if isinstance(self.session.phase, Starting) and self._call.waits_again(finish.code):
            return
        self.finish = finish
        if finish.line:
            self._agent.say(finish.line)
        self._hang_up()
        self._agent.read_no_more()
        if self._follower is not None:
            self._follower.drop()
        self._limit_the_rest()

    def _limit_the_rest(self) -> None:
        if self.finish is not None and self._ended_by:
            self._over_at = time.monotonic() + _LAST_SECONDS
