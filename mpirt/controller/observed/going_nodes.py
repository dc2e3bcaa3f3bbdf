"""
The nodes that are about to go, kept up to date.

Owns: the signals by the nodes' names, and whether nodes can be read at all. Of all other nodes nothing is kept. No
lock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.observed.nodes import Signal, read_signal


class GoingNodes:
    """Which nodes are about to go, and why."""

    def __init__(self) -> None:
        self._signals: dict[str, Signal] = {}
        self.are_read = False
        """Whether nodes can be read."""

    def replace(self, bodies: Iterable[Body]) -> set[str]:
        """Take a list of all nodes. Return the names of those that have changed."""
        before, self._signals = self._signals, {}
        self.are_read = True
        for body in bodies:
            self.put(body)
        return {name for name in (*before, *self._signals) if before.get(name) != self._signals.get(name)}

    def put(self, body: Body) -> set[str]:
        """Take a node. Return its name if its signal has changed."""
        name, signal = _name(body), read_signal(body)
        if self._signals.get(name) == signal:
            return set()
        if signal is None:
            del self._signals[name]
        else:
            self._signals[name] = signal
        return {name}

    def remove(self, body: Body) -> set[str]:
        """Forget a node that is gone. Return its name if there was a signal."""
        return {_name(body)} if self._signals.pop(_name(body), None) is not None else set()

    def lose(self) -> None:
        """Forget all nodes: they can't be read any more."""
        self._signals, self.are_read = {}, False

    def signals(self) -> Mapping[str, Signal] | None:
        """Return the signals by the nodes' names; None if nodes can't be read."""
        return dict(self._signals) if self.are_read else None


def _name(body: Body) -> str:
    return text(table(body, "metadata"), "name")
