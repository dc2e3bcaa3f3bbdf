"""
The commands that agents have handed over, from HANDOVER to FINISH.

Owns: what becomes of each: a session, the direct form, or an error in one line. Decides nothing about a session.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpirt.errors import ExitCode, MpirtError, our_mistake
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.execs import ExecApi
from mpirt.rsh.invocation import launchers
from mpirt.rsh.invocation.argv import Wants, parse
from mpirt.rsh.pod.lookup import find_pod
from mpirt.rsh.ports.chance import jitter, nonce
from mpirt.rsh.ports.log import Log
from mpirt.rsh.ports.podlookup import PodLookup
from mpirt.rsh.ports.sessionio import SessionIO
from mpirt.rsh.ports.signals import MEANT_FOR_THE_COMMAND
from mpirt.rsh.session import events
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.session import Session
from mpirt.rsh.switchboard.clusters import Clusters, NotHere, check
from mpirt.rsh.switchboard.gate import Gate
from mpirt.rsh.switchboard.processes import age
from mpirt.rsh.switchboard.records import resumption
from mpirt.rsh.switchboard.status import LOOKUP, QUEUED, CommandStatus
from mpirt.rsh.tasks.settings import holding, keepers
from mpirt.rsh.tasks.task import connect_seconds, make_task, wants_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpirt.rsh.invocation.argv import Invocation
    from mpirt.rsh.ports.followers import Watch
    from mpirt.rsh.ports.loop import Loop
    from mpirt.rsh.session.holding import Holding
    from mpirt.rsh.session.record import Resumption
    from mpirt.rsh.switchboard.agentlink import AgentLink
    from mpirt.rsh.switchboard.clusters import Cluster
    from mpirt.rsh.switchboard.frames import Handover

# A question and its answer cost 0.2 ms here, and as much on the way: a thousand are asked less often. What goes
# without an answer for so long twice over is dead.
_QUESTIONS_PER_SECOND = 140.0
_SLOWEST = 7.0
# Words and variables are bytes to everybody but us.
_ENCODING = "utf-8"


class Calls:
    """All commands."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._gate = Gate()
        self._keepers = keepers()
        self._clusters = Clusters(loop)
        self._calls: dict[AgentLink, Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def queued(self) -> int:
        """How many wait for their turn to dial."""
        return self._gate.waiting

    @property
    def buffered(self) -> int:
        """How many bytes of all commands wait here."""
        return sum(agent.buffered for agent in self._calls)

    def status(self) -> list[CommandStatus]:
        """How the commands are."""
        now, wall = time.monotonic(), time.time()
        return [call.status(now, wall) for call in self._calls.values()]

    def watches(self) -> list[Watch]:
        """How the watches on their pods are."""
        return self._clusters.watches()

    def _ask_every(self) -> float:
        return min(_SLOWEST, len(self._calls) / _QUESTIONS_PER_SECOND)

    def _holding(self, environ: Mapping[str, str]) -> Holding | None:
        return holding(environ, held=self._keepers, ask_every=self._ask_every)

    def take(self, agent: AgentLink, handover: Handover) -> None:
        """A command was handed over."""
        call = Call(agent, handover, self._loop, self._gate, holding=self._holding, over=self._over)
        self._calls[agent] = call
        call.attempt(lambda: call.prepare(self._clusters))

    def agent_has_ended(self, agent: AgentLink) -> None:
        """Its command, if it still runs, was told so; nobody waits for what becomes of it."""
        call = self._calls.get(agent)
        if call is not None and not call.is_running:
            self._over(agent)

    def _over(self, agent: AgentLink) -> None:
        self._calls.pop(agent, None)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a command takes."""

    asked: Invocation
    words: tuple[str, ...]
    cluster: Cluster
    pod: str

    @property
    def namespace(self) -> str:
        return self.asked.namespace or self.cluster.endpoint.namespace


class Call:
    """One command."""

    def __init__(
        self,
        agent: AgentLink,
        handover: Handover,
        loop: Loop,
        gate: Gate,
        *,
        holding: Callable[[Mapping[str, str]], Holding | None],
        over: Callable[[AgentLink], None],
    ) -> None:
        self._holding = holding
        self._agent, self._handover, self._loop, self._over = agent, handover, loop, over
        self._turn = _Turn(gate, self)
        self._lookup: PodLookup | None = None
        self._running: SessionIO | None = None
        self._is_over = False
        self._wish: _Wish | None = None
        # An agent that another switchboard had before has run for as long as its command.
        self._begun = time.monotonic() - (age(agent.pid) if handover.generation else 0.0)

    @property
    def is_running(self) -> bool:
        """Whether there is a session that has not ended."""
        return self._running is not None and not self._is_over

    def status(self, now: float, wall: float) -> CommandStatus:
        """How it is; `wall` is Unix time."""
        agent, running, wish = self._agent, self._running, self._wish
        phase = None if running is None else running.session.phase
        stdout, stderr = agent.received
        words = self._handover.words if wish is None else wish.asked.words
        return CommandStatus(
            pod=running.pod if running is not None else "" if wish is None else wish.pod,
            node="" if phase is None else phase.node,
            namespace="" if wish is None else wish.namespace,
            container="" if phase is None else phase.container,
            command=" ".join(words),
            agent=agent.pid,
            state=self._state,
            started=round(wall - (now - self._begun), 3),
            age=round(now - self._begun, 3),
            stdout=stdout,
            stderr=stderr,
            stdin=agent.given,
            silence=None if phase is None else phase.silence(now),
            held=phase is not None and phase.is_held,
            generation=self._handover.generation,
            waiting=agent.unwritten,
        )

    @property
    def _state(self) -> str:
        if self._turn.is_awaited:
            return QUEUED
        if self._running is not None:
            return self._running.session.state.value
        return State.DONE.value if self._lookup is None else LOOKUP

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
            self._begin(_Wish(asked, words, cluster, resumed.record.pod), resumed)
        elif asked.is_address:
            self._look_up(_Wish(asked, words, cluster, asked.pod))
        else:
            self._wait_for_its_turn(_Wish(asked, words, cluster, asked.pod))

    def _fail(self, line: str, code: int) -> None:
        """It has ended before it began."""
        self._lookup = None
        self._turn.leave(self)
        self._agent.fail(line, code)

    def _look_up(self, wish: _Wish) -> None:
        """An exec goes by names only: find the pod that has the address."""
        self._wish = wish
        api = ExecApi(wish.cluster.dialer)
        deadline = Deadline(connect_seconds(wish.asked, self._handover.environ))
        lookup = PodLookup(find_pod(api.list_steps, wish.namespace, wish.asked.pod, deadline))
        self._lookup = lookup

        def step() -> None:
            found = lookup.learn()
            if found is None:
                return
            self._loop.drop(self)
            api.close()
            if isinstance(found, events.PodFound):
                self._wait_for_its_turn(replace(wish, pod=found.pod))
            else:
                self._fail(str(found.error), found.error.code)

        self._loop.add(lookup, step, group=self)

    def _wait_for_its_turn(self, wish: _Wish) -> None:
        self._lookup, self._wish = None, wish
        self._turn.enter(self, lambda: self.attempt(lambda: self._begin(wish, None)))

    def _begin(self, wish: _Wish, resumed: Resumption | None) -> None:
        self._wish = wish
        if self._agent.is_gone:
            self._turn.leave(self)
            return
        environ, asked, dialer = self._handover.environ, wish.asked, wish.cluster.dialer
        task = make_task(
            asked,
            wish.words,
            environ,
            pod=wish.pod,
            nonce=nonce() if resumed is None else resumed.record.nonce,
            has_stdin=self._handover.has_stdin,
            encoding=_ENCODING,
            holding=self._holding(environ),
        )
        now = time.monotonic()
        log = Log(now) if wants_log(asked, environ) else None
        if log is not None:
            self._agent.say(log.place(wish.pod, wish.namespace, dialer.endpoint, now))
        self._running = SessionIO(
            Session(task, now=now, jitter=jitter, resumption=resumed),
            self._loop,
            ExecApi(dialer),
            self._agent,
            namespace=wish.namespace,
            pod=wish.pod,
            service=asked.service,
            follow=wish.cluster.hub(wish.namespace, environ).follow,
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

    @property
    def is_awaited(self) -> bool:
        return self._gate.waits(self._call)
