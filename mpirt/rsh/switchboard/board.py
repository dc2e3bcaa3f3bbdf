"""
The agents that have come to a switchboard, and the commands that they have handed over.

Owns: which there are, how many there may be, and what is asked of all of them: how they are, and what they use in
their pods. Keepers are asked a few at a time, only while someone looks; the answer is given once every keeper has
answered, or after half a second.
"""

from __future__ import annotations

import os
import resource
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mpirt.errors import ExitCode, internal_error
from mpirt.rsh.invocation.options import version
from mpirt.rsh.session.task import Holding
from mpirt.rsh.switchboard.agentlink import AgentLink
from mpirt.rsh.switchboard.call import Call
from mpirt.rsh.switchboard.clusters import Clusters, Discovery, ask
from mpirt.rsh.switchboard.frames import SIGNALS, Handover, Kind
from mpirt.rsh.switchboard.ledger import Ledger
from mpirt.rsh.switchboard.log import complain_of
from mpirt.rsh.switchboard.outbox import Budget
from mpirt.rsh.switchboard.status import QUEUED, BoardStatus, document
from mpirt.rsh.switchboard.task import holding, installed_keepers
from mpirt.rsh.watches.loop import FOR_EVER, Loop

if TYPE_CHECKING:
    from socket import socket

    # It imports this module.
    from mpirt.rsh.switchboard.main import Door

# A thousand sessions that each wake up once in a while are a thousand waits less so.
_GRAIN = 0.05
# What the process itself needs, and each command: its agent, its exec, and a watch where each pod has its own.
_OWN_DESCRIPTORS = 24
_DESCRIPTORS_EACH = 3
# Agents beyond that: each is sent away with the reason, and gets a switchboard of its own.
_TURNED_AWAY_AT_ONCE = 8
# A question and its answer cost 0.2 ms here, and as much on the way: a thousand are asked less often. What goes
# without an answer for so long twice over is dead.
_QUESTIONS_PER_SECOND = 140.0
_SLOWEST = 7.0
# How long the answers to a question to all keepers are waited for.
_PATIENCE = 0.5
# A question takes 0.1 ms here. After so many of them the rest of the loop gets its turn.
_AT_ONCE = 50


class Command(Protocol):
    """A command that may have a keeper."""

    def ask_usage(self) -> bool:
        """Ask it; whether its answer is to be waited for."""


class Survey:
    """One question to all keepers at a time. It is a clock of the loop while a viewer waits for its end."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: list[Callable[[], None]] = []
        self._to_ask: deque[Command] = deque()
        self._awaited: set[Command] = set()
        self._until = FOR_EVER

    def begin(self, commands: Iterable[Command], done: Callable[[], None]) -> None:
        """Call `done` when it is over. A viewer that comes while it is under way shares it."""
        if not self._waiting:
            self._to_ask = deque(commands)
            self._awaited.clear()
            self._until = time.monotonic() + _PATIENCE
        self._waiting.append(done)
        self._loop.add_clock(self, self._go_on, group=self)

    def answered(self, command: Command) -> None:
        """There is nothing more to wait for in this command."""
        if command in self._awaited:
            self._awaited.remove(command)
            self._loop.touch(self)

    def timeout(self) -> float:
        if self._to_ask or not self._awaited:
            return 0.0
        return max(0.0, self._until - time.monotonic())

    def _go_on(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._to_ask))):
            command = self._to_ask.popleft()
            if command.ask_usage():
                self._awaited.add(command)
        if self.timeout() <= 0 and not self._to_ask:
            self._end()

    def _end(self) -> None:
        self._loop.drop(self)
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done()


class Switchboard:
    """The agents, their commands, and the loop that has them all."""

    def __init__(self, discovery: Discovery | None = None) -> None:
        """A private one has no `discovery`, and no account: a launcher's is of all its commands."""
        self._discovery = discovery
        self.loop = Loop(self._failed, grain=_GRAIN)
        self._most = max(1, (_descriptor_limit() - _OWN_DESCRIPTORS - _TURNED_AWAY_AT_ONCE) // _DESCRIPTORS_EACH)
        self.budget = Budget()
        self._keepers = installed_keepers()
        self._clusters = Clusters(self.loop)
        self.survey = Survey(self.loop)
        self.ledger = Ledger()
        self._started = time.time()
        # Clients that have connected and said nothing yet; agents; and viewers, which keep no switchboard alive.
        self._newcomers: set[AgentLink] = set()
        self._agents: set[AgentLink] = set()
        self._viewers: set[AgentLink] = set()
        self._calls: dict[AgentLink, Call] = {}
        self._settled: list[Callable[[], None]] = []
        self._door: Door | None = None

    def serve(self, door: Door | None = None) -> None:
        """Until the door, if there is one, is closed, all agents have left, and their commands have ended."""
        self._door = door
        if door is not None:
            self.loop.add(door, door.act, group=door)
        before = None
        while self._newcomers or self.count or not (door is None or door.is_closed):
            self.loop.turn()
            self._settle_if_heard()
            # Turns come by the thousand while output flows; few of them change anything for the door.
            if door is not None and (present := (self.count, self.is_full)) != before:
                before = present
                door.look()
                self.loop.touch(door)

    @property
    def count(self) -> int:
        """How many agents and commands there are."""
        return len(self._agents) + len(self._calls)

    @property
    def is_full(self) -> bool:
        """Whether there are no descriptors for another client."""
        connected = len(self._newcomers) + len(self._agents) + len(self._viewers)
        return connected >= self._most + _TURNED_AWAY_AT_ONCE

    # Agents

    def let_in(self, connection: socket) -> None:
        """A client has connected."""
        newcomer = AgentLink(connection, self)
        # One that was killed meanwhile is gone before it is known.
        if not newcomer.is_gone:
            self._newcomers.add(newcomer)

    def handed_over(self, agent: AgentLink, handover: Handover) -> None:
        """A client is an agent, with a command."""
        self._newcomers.discard(agent)
        self._agents.add(agent)
        # Maybe there are no descriptors for it.
        is_one_too_many = len(self._calls) >= self._most
        if self._discovery is not None:
            self.ledger.open(handover.environ, is_resumed=bool(handover.generation))
        if not handover.generation and all(call.is_ending for call in self._calls.values()):
            for call in self._calls.values():
                call.note_if_left()
            self.ledger.begin_run()
        self._calls[agent] = call = Call(agent, handover, self)
        call.guard(lambda: call.prepare(self._clusters, is_one_too_many=is_one_too_many))

    def signalled_early(self, agent: AgentLink, number: int) -> None:
        """A signal has come, and there is no session that could take it: it ends what has not begun."""
        call = self._calls.get(agent)
        if call is not None and number in SIGNALS:
            call.signalled(number)

    def has_ended(self, agent: AgentLink) -> None:
        """Its command, if it still runs, has got a HUP; its outcome goes nowhere."""
        for group in (self._newcomers, self._agents, self._viewers):
            group.discard(agent)
        call = self._calls.get(agent)
        if call is not None:
            call.note_if_left()
            if not call.is_running:
                call.let_go()
                self.forget(agent)

    def forget(self, agent: AgentLink) -> None:
        """Its command and itself have ended."""
        self._calls.pop(agent, None)

    def holding(self, environ: Mapping[str, str]) -> Holding:
        """How a keeper is to hold a command."""
        return holding(environ, self._keepers, ask_every=self._ask_every)

    def _ask_every(self) -> float:
        return min(_SLOWEST, len(self._calls) / _QUESTIONS_PER_SECOND)

    def _failed(self, group: Hashable, error: Exception) -> None:
        """What goes wrong in one command's part must not end the others."""
        owners = [call for call in self._calls.values() if call.owns(group)]
        for call in owners:
            call.fail_unforeseen(error)
        if owners:
            return
        if isinstance(group, AgentLink):
            group.say(internal_error(error))
            group.end(ExitCode.INTERNAL)
            return
        if group is self._door:
            raise error
        complain_of(error)
        if self._door is None:
            # A private switchboard has no log.
            for agent in self._agents:
                agent.say(internal_error(error))
        self.loop.drop(group)

    # Questions

    def asked(self, viewer: AgentLink, kind: Kind, payload: bytes) -> None:
        """The frame is a question: answer it, at once or later."""
        self._newcomers.discard(viewer)
        self._viewers.add(viewer)
        if kind is Kind.SETTLED_REQUEST:
            self._settled.append(lambda: viewer.answer(Kind.SETTLED, b""))
        elif kind is Kind.STATUS_REQUEST:
            self.survey.begin(self._calls.values(), lambda: self._answer(viewer))
        elif self._discovery is not None:

            def say(answer: bytes) -> None:
                viewer.answer(Kind.DISCOVERED, answer)

            ask(self._discovery, self._clusters, payload, viewer.pid or 0, say)

    def _settle_if_heard(self) -> None:
        """Note that the launcher has ended with 0, once that can be believed: no command is about to end."""
        if self._settled and all(call.is_settled for call in self._calls.values()):
            self.ledger.settle()
            waiting, self._settled = self._settled, []
            for done in waiting:
                done()

    def _answer(self, viewer: AgentLink) -> None:
        try:
            viewer.answer(Kind.STATUS, self._status())
        except Exception as error:  # noqa: BLE001  others wait for the same moment
            self._failed(viewer, error)

    def _status(self) -> bytes:
        now, wall = time.monotonic(), time.time()
        commands = [call.status(now, wall) for call in self._calls.values()]
        board = BoardStatus(
            pid=os.getpid(),
            started=round(self._started, 3),
            version=version(),
            sessions=len(commands),
            queued=sum(command.state == QUEUED for command in commands),
            watches=tuple(self._clusters.watches()),
            buffered=sum(agent.buffered for agent in self._calls),
            descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            descriptor_limit=_descriptor_limit(),
        )
        return document(board, commands)


def _descriptor_limit() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit
