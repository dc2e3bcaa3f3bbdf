"""
What the commands use in their pods, for `mpirt ps`.

Owns: asking the keepers, a few at a time, and when the viewers get their answer: once every keeper has answered,
or after half a second. Without a viewer no keeper is asked.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from mpirt.rsh.ports.loop import FOR_EVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from mpirt.rsh.ports.loop import Loop

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
