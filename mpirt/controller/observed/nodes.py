"""
Nodes that are about to go, as their objects show it.

Owns: the table of signals by which clouds, autoscalers and people announce it, reading a node, and the signals
kept up to date by the nodes' names. Nothing is kept of nodes without a signal. No lock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mpirt.controller.model.reading import Body, rows, table, text
from mpirt.controller.model.roster import Source

# The default: as long as AWS announces the end of a spot node.
NOTICE = 120


@dataclass(frozen=True, slots=True)
class Signal:
    """Why a node is about to go, and how soon."""

    source: Source
    why: str
    notice: int
    """Seconds from the signal until the node may be gone."""


# By the key of the taint: how many seconds before its end a node gets it.
TAINTS: Mapping[str, int] = {
    # AWS node termination handler.
    "aws-node-termination-handler/spot-itn": 120,
    "aws-node-termination-handler/scheduled-maintenance": 600,
    "aws-node-termination-handler/asg-lifecycle-termination": 120,
    "aws-node-termination-handler/rebalance-recommendation": 600,
    # Google Kubernetes Engine.
    "cloud.google.com/impending-node-termination": 25,
    # Karpenter, today and before its version 1.
    "karpenter.sh/disrupted": 120,
    "karpenter.sh/disruption": 120,
    # The cluster autoscaler, when it removes a node.
    "ToBeDeletedByClusterAutoscaler": 120,
    # For anything else that knows when a node goes.
    "mpirt.dev/node-going": NOTICE,
}


def read_signal(body: Body) -> Signal | None:
    """Return why a node is about to go; None if it is not. The signal with the shortest notice counts."""
    spec = table(body, "spec")
    keys = [text(row, "key") for row in rows(spec, "taints")]
    found = [Signal(Source.NODE_TAINT, f"has the taint {key}", TAINTS[key]) for key in keys if key in TAINTS]
    if found:
        return min(found, key=lambda one: one.notice)
    return Signal(Source.NODE_CORDONED, "is cordoned", NOTICE) if spec.get("unschedulable") is True else None


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
