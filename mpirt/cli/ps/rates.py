"""
How busy the commands are between one look of `mpirt ps --watch` and the next.

Owns: CPU time per time, and which command of an earlier look is which. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from mpirt.cli.ps.boards import Row
from mpirt.cli.ps.table import NOTHING


class Rates:
    """What the last look has shown, and what has changed since."""

    def __init__(self) -> None:
        self._at = 0.0
        self._cpu: dict[Hashable, float] = {}
        self._rates: dict[Hashable, float] = {}

    def look(self, rows: Iterable[Row], now: float) -> None:
        """There is a new answer."""
        earlier, elapsed = self._cpu, now - self._at
        self._cpu = {_key(row): row.command.cpu for row in rows if row.command.cpu is not None}
        self._rates = {
            key: (cpu - earlier[key]) / elapsed
            for key, cpu in self._cpu.items()
            if elapsed > 0 and cpu >= earlier.get(key, float("inf"))
        }
        self._at = now

    def text(self, row: Row) -> str:
        """How much of a processor it has used between the last two: 100% is one."""
        rate = self._rates.get(_key(row))
        return NOTHING if rate is None else f"{rate:.0%}"


def _key(row: Row) -> Hashable:
    command = row.command
    return command.agent, command.namespace, command.pod, command.command
