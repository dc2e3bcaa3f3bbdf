"""
The commands that agents have handed over.

Owns: which there are, and what is asked of all of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mpirt.rsh.ports.signals import MEANT_FOR_THE_COMMAND
from mpirt.rsh.switchboard.call import Call
from mpirt.rsh.switchboard.clusters import Clusters
from mpirt.rsh.switchboard.ledger import Ledger
from mpirt.rsh.switchboard.status import CommandStatus
from mpirt.rsh.switchboard.survey import Survey
from mpirt.rsh.tasks.settings import holding, keepers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpirt.boards.protocol import Question
    from mpirt.rsh.ports.loop import Loop
    from mpirt.rsh.session.task import Holding
    from mpirt.rsh.switchboard.agentlink import AgentLink
    from mpirt.rsh.switchboard.frames import Handover
    from mpirt.rsh.watches.followers import Watch

# A question and its answer cost 0.2 ms here, and as much on the way: a thousand are asked less often. What goes
# without an answer for so long twice over is dead.
_QUESTIONS_PER_SECOND = 140.0
_SLOWEST = 7.0


class Calls:
    """All commands."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
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

    def watches(self) -> list[Watch]:
        """How the watches on their pods are."""
        return self._clusters.watches()

    def ask(self, question: Question, hear: Callable[[bytes], None]) -> None:
        """Give the pods that somebody asks for, or why they aren't known, now or later."""
        self._clusters.ask(question, hear)

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
        """Something that nobody foresaw has happened in a group of the loop. Whether it was a command's."""
        for call in tuple(self._calls.values()):
            if call.owns(group):
                call.fail_unforeseen(error)
                return True
        return False

    def signalled_early(self, agent: AgentLink, number: int) -> None:
        """Somebody does not want to wait for what has not begun."""
        call = self._calls.get(agent)
        if call is not None and number in MEANT_FOR_THE_COMMAND:
            call.signalled(number)

    def agent_has_ended(self, agent: AgentLink) -> None:
        """Its command, if it still runs, was told so; nobody waits for what becomes of it."""
        call = self._calls.get(agent)
        if call is None:
            return
        call.note_if_left()
        if not call.is_running:
            call.let_go()
            self._over(agent)

    def _over(self, agent: AgentLink) -> None:
        self._calls.pop(agent, None)
