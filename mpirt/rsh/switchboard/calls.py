"""
The commands that agents have handed over, from HANDOVER to FINISH.

Owns: what becomes of each: a session, the direct form, or an error in one line. Decides nothing about a session.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mpirt.errors import ExitCode, MpirtError, our_mistake
from mpirt.kubeapi.execs import ExecApi
from mpirt.rsh.invocation import launchers
from mpirt.rsh.invocation.argv import Wants, parse
from mpirt.rsh.ports.chance import jitter, nonce
from mpirt.rsh.ports.log import Log
from mpirt.rsh.ports.podwatch import OwnWatch, PodWatchPort
from mpirt.rsh.ports.sessionio import SessionIO
from mpirt.rsh.ports.signals import MEANT_FOR_THE_COMMAND
from mpirt.rsh.session.session import Session
from mpirt.rsh.switchboard.clusters import Clusters, NotHere, check
from mpirt.rsh.switchboard.gate import Gate
from mpirt.rsh.switchboard.records import resumption
from mpirt.rsh.tasks.task import make_task, wants_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.kubeapi.dial import Dialer
    from mpirt.rsh.invocation.argv import Invocation
    from mpirt.rsh.ports.loop import Loop
    from mpirt.rsh.ports.sessionio import Follow, Follower, Hear
    from mpirt.rsh.session.record import Resumption
    from mpirt.rsh.switchboard.agentlink import AgentLink
    from mpirt.rsh.switchboard.frames import Handover

# Words and variables are bytes to everybody but us.
_ENCODING = "utf-8"


class Calls:
    """All commands."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._gate = Gate()
        self._clusters = Clusters()
        self._calls: dict[AgentLink, Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def take(self, agent: AgentLink, handover: Handover) -> None:
        """A command was handed over."""
        self._calls[agent] = call = Call(agent, handover, self._loop, self._gate, over=self._over)
        call.attempt(lambda: call.prepare(self._clusters))

    def agent_has_ended(self, agent: AgentLink) -> None:
        """Its command, if it still runs, was told so; nobody waits for what becomes of it."""
        call = self._calls.get(agent)
        if call is not None and not call.is_running:
            self._over(agent)

    def _over(self, agent: AgentLink) -> None:
        self._calls.pop(agent, None)


class Call:
    """One command."""

    def __init__(
        self, agent: AgentLink, handover: Handover, loop: Loop, gate: Gate, *, over: Callable[[AgentLink], None]
    ) -> None:
        self._agent, self._handover, self._loop, self._over = agent, handover, loop, over
        self._turn = _Turn(gate, self)
        self._running: SessionIO | None = None
        self._is_over = False

    @property
    def is_running(self) -> bool:
        """Whether there is a session that has not ended."""
        return self._running is not None and not self._is_over

    def attempt(self, what: Callable[[], None]) -> None:
        """Do what may fail before there is a session."""
        try:
            what()
        except NotHere as error:
            self._turn.leave(self)
            self._agent.go_direct(str(error))
        except MpirtError as error:
            self._fail(str(error), error.code)
        except Exception as error:  # noqa: BLE001  a launcher's user gets a line to report, not a traceback
            self._fail(our_mistake(error), ExitCode.INTERNAL)

    def prepare(self, clusters: Clusters) -> None:
        """Find out what is wanted, and begin with it when it is its turn. Raises MpirtError."""
        handover = self._handover
        asked = parse(handover.called, handover.words)
        if isinstance(asked, Wants):
            raise NotHere("it does not need one")
        check(handover.environ)
        cluster = clusters.find(handover.environ, asked.context)
        resumed = resumption(handover, MEANT_FOR_THE_COMMAND)
        self._agent.take_up(handover, is_resumed=resumed is not None)
        words = launchers.prepared(asked.words)
        if launchers.starts_daemon(words):
            # A daemon without its launcher has nothing to do, and mpirun leaves agents behind when it ends early.
            self._agent.follow_its_parent()
        if resumed is not None:
            self._begin(asked, words, cluster.dialer, resumed)
        else:
            begin = lambda: self._begin(asked, words, cluster.dialer, None)  # noqa: E731
            self._turn.enter(self, lambda: self.attempt(begin))

    def _fail(self, line: str, code: int) -> None:
        """It has ended before it began."""
        self._turn.leave(self)
        self._agent.fail(line, code)

    def _begin(
        self, asked: Invocation, words: tuple[str, ...], dialer: Dialer, resumed: Resumption | None
    ) -> None:
        if self._agent.is_gone:
            self._turn.leave(self)
            return
        environ = self._handover.environ
        namespace = asked.namespace or dialer.endpoint.namespace
        pod = asked.pod if resumed is None else resumed.record.pod
        task = make_task(
            asked,
            words,
            environ,
            pod=pod,
            nonce=nonce() if resumed is None else resumed.record.nonce,
            has_stdin=self._handover.has_stdin,
            encoding=_ENCODING,
        )
        now = time.monotonic()
        log = Log(now) if wants_log(asked, environ) else None
        if log is not None:
            self._agent.say(log.place(pod, namespace, dialer.endpoint, now))
        self._running = SessionIO(
            Session(task, now=now, jitter=jitter, resumption=resumed),
            self._loop,
            ExecApi(dialer),
            self._agent,
            namespace=namespace,
            pod=pod,
            service=asked.service,
            follow=_follow(self._loop, dialer, namespace),
            gate=self._turn,
            log=log,
            moved=self._moved,
        )
        self._running.begin()

    def _moved(self) -> None:
        running = self._running
        if running is None or self._is_over:
            return
        code = running.code
        if code is not None:
            self._is_over = True
            self._loop.drop(running)
            self._turn.leave(self)
            self._agent.finish(code)
            if self._agent.is_gone:
                self._over(self._agent)


class _Turn:
    """A call's way through the gate: whoever of it asks."""

    def __init__(self, gate: Gate, call: Call) -> None:
        self._gate, self._call = gate, call

    def enter(self, _who: object, begin: Callable[[], None]) -> None:
        self._gate.enter(self._call, begin)

    def leave(self, _who: object) -> None:
        self._gate.leave(self._call)


def _follow(loop: Loop, dialer: Dialer, namespace: str) -> Follow:
    def follow(pod: str, hear: Hear) -> Follower:
        return OwnWatch(loop, PodWatchPort(dialer, namespace, pod, jitter=jitter), hear)

    return follow
