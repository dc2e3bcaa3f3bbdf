"""
The commands that agents have handed over.

Owns: which there are, and what is asked of all of them: how they are, and what they use in their pods. Keepers are
asked a few at a time, only while someone looks; the answer is given once every keeper has answered, or after half
a second.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from mpirt.rsh.session.task import Holding
from mpirt.rsh.switchboard.agentlink import AgentLink
from mpirt.rsh.switchboard.call import Call
from mpirt.rsh.switchboard.clusters import Clusters, Discovery, ask
from mpirt.rsh.switchboard.frames import SIGNALS, Handover
from mpirt.rsh.switchboard.ledger import Ledger
from mpirt.rsh.switchboard.status import CommandStatus, WatchStatus
from mpirt.rsh.switchboard.task import holding, keepers
from mpirt.rsh.watches.loop import FOR_EVER, Loop


class Command(Protocol):
    """A command that may have a keeper."""

    def ask_usage(self) -> bool:
        """Ask it; whether its answer is to be waited for."""


_PATIENCE = 0.5
# A question takes 0.1 ms here. After so many of them the rest of the loop gets its turn.
_AT_ONCE = 50


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


# A question and its answer cost 0.2 ms here, and as much on the way: a thousand are asked less often. What goes
# without an answer for so long twice over is dead.
_QUESTIONS_PER_SECOND = 140.0
_SLOWEST = 7.0


class Calls:
    """All commands."""

    def __init__(self, loop: Loop, discovery: Discovery | None) -> None:
        """Without `discovery`, of one agent. Then there is no account: a launcher's is of all its commands."""
        self._loop, self._discovery = loop, discovery
        self._keepers = keepers()
        self._clusters = Clusters(loop)
        self._survey = Survey(loop)
        self._ledger = Ledger()
        self._calls: dict[AgentLink, Call] = {}
        self._settled: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def buffered(self) -> int:
        """How many bytes of all commands wait here."""
        return sum(agent.buffered for agent in self._calls)

    def look(self, done: Callable[[], None]) -> None:
        """Find out what they use in their pods, as far as that can be known soon; then call `done`."""
        self._survey.begin(self._calls.values(), done)

    def status(self) -> list[CommandStatus]:
        """How the commands are."""
        now, wall = time.monotonic(), time.time()
        return [call.status(now, wall) for call in self._calls.values()]

    def watches(self) -> list[WatchStatus]:
        """How the watches on their pods are."""
        return self._clusters.watches()

    def discover(self, payload: bytes, pid: int, say: Callable[[bytes], None]) -> None:
        """Answer a DISCOVER_REQUEST of the process `pid`, now or later."""
        if self._discovery is not None:
            ask(self._discovery, self._clusters, payload, pid, say)

    def settle(self, done: Callable[[], None]) -> None:
        """The launcher has ended with 0: note in its account once that can be believed, then call `done`."""
        self._settled.append(done)

    def settle_if_heard(self) -> None:
        """Do so if no command is about to end."""
        if not self._settled or not all(call.is_settled for call in self._calls.values()):
            return
        self._ledger.settle()
        waiting, self._settled = self._settled, []
        for done in waiting:
            done()

    def _ask_every(self) -> float:
        return min(_SLOWEST, len(self._calls) / _QUESTIONS_PER_SECOND)

    def _holding(self, environ: Mapping[str, str]) -> Holding:
        return holding(environ, held=self._keepers, ask_every=self._ask_every)

    def take(self, agent: AgentLink, handover: Handover, *, is_one_too_many: bool) -> None:
        """A command was handed over; maybe there are no descriptors for it."""
        if self._discovery is not None:
            self._ledger.open(handover.environ, is_resumed=bool(handover.generation))
        if not handover.generation and all(call.is_ending for call in self._calls.values()):
            for call in self._calls.values():
                call.note_if_left()
            self._ledger.begin_run()
        call = Call(
            agent,
            handover,
            self._loop,
            holding=self._holding,
            over=self._over,
            answered=self._survey.answered,
            ledger=self._ledger,
        )
        self._calls[agent] = call
        call.guard(lambda: call.prepare(self._clusters, is_one_too_many=is_one_too_many))

    def failed(self, group: object, error: Exception) -> bool:
        """An unforeseen error has happened in a group of the loop. Whether it was a command's."""
        for call in tuple(self._calls.values()):
            if call.owns(group):
                call.fail_unforeseen(error)
                return True
        return False

    def signalled_early(self, agent: AgentLink, number: int) -> None:
        """A signal ends what has not begun."""
        call = self._calls.get(agent)
        if call is not None and number in SIGNALS:
            call.signalled(number)

    def agent_has_ended(self, agent: AgentLink) -> None:
        """Its command, if it still runs, has got a HUP; its outcome goes nowhere."""
        call = self._calls.get(agent)
        if call is None:
            return
        call.note_if_left()
        if not call.is_running:
            call.let_go()
            self._over(agent)

    def _over(self, agent: AgentLink) -> None:
        self._calls.pop(agent, None)
