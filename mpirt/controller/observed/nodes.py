"""
What the objects of nodes show: which are about to go, which can't mount an image as a volume, what processors they
have.

Owns: the table of signals by which clouds, autoscalers and people announce that a node goes, the versions that
mount images, reading a node, and both kept up to date by the nodes' names. Nothing is kept of other nodes. No
lock, no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mpirt import keeper
from mpirt.controller.model.reading import Body, rows, shortened, table, text
from mpirt.controller.model.roster import Source
from mpirt.controller.model.spec import NODES_UNKNOWN

_Known = TypeVar("_Known")

_ARCHITECTURES = frozenset(keeper.ARCHITECTURES)

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


# The first versions that mount images as volumes, without another setting.
_KUBELET = (1, 35)
_LONGEST_VERSION = 64
_RUNTIMES = {"containerd": (2, 1), "cri-o": (1, 31)}
# Versions as in v1.37.2, containerd://2.4.2 and cri-o://1.35.1.
_KUBELET_VERSION = re.compile(r"v(\d+)\.(\d+)\.")
_RUNTIME_VERSION = re.compile(r"([a-z-]+)://v?(\d+)\.(\d+)\.")


def why_no_image_volumes(body: Body) -> str | None:
    """Return why a node can't mount an image as a volume: empty if it can, None if no launcher gets there."""
    info = table(body, "status", "nodeInfo")
    if table(body, "spec").get("unschedulable") is True or text(info, "operatingSystem") == "windows":
        return None
    kubelet, runtime = text(info, "kubeletVersion"), text(info, "containerRuntimeVersion")
    found = _KUBELET_VERSION.match(kubelet)
    if found is None or (int(found[1]), int(found[2])) < _KUBELET:
        return f"node {_name(body)} has kubelet {shortened(kubelet, _LONGEST_VERSION)}"
    found = _RUNTIME_VERSION.match(runtime)
    least = None if found is None else _RUNTIMES.get(found[1])
    if found is None or least is None or (int(found[2]), int(found[3])) < least:
        return f"node {_name(body)} has {shortened(runtime, _LONGEST_VERSION)}"
    return ""


class Nodes:
    """Which nodes are about to go, whether all can mount an image as a volume, and what processors they have."""

    def __init__(self) -> None:
        self._signals: dict[str, Signal] = {}
        self._without_image_volumes: dict[str, str] = {}
        # Stays when the last such node goes: a cluster without nodes gets others of the kind.
        self._has_image_volumes = False
        self.architectures: frozenset[str] = frozenset()
        """Those of all nodes that there are and were: one that was scaled to none is needed again."""
        self.are_read = False
        """Whether nodes can be read."""

    def replace(self, bodies: Iterable[Body]) -> set[str]:
        """Take a list of all nodes. Return the names of those whose signal has changed."""
        before, known = self._signals, self.architectures
        self.lose()
        self.are_read, self.architectures = True, known
        for body in bodies:
            self.put(body)
        return {name for name in (*before, *self._signals) if before.get(name) != self._signals.get(name)}

    def put(self, body: Body) -> set[str]:
        """Take a node. Return its name if its signal has changed."""
        name, signal = _name(body), read_signal(body)
        why = why_no_image_volumes(body)
        _set(self._without_image_volumes, name, why or None)
        self._has_image_volumes |= why == ""
        self.architectures |= {text(table(body, "status", "nodeInfo"), "architecture")} & _ARCHITECTURES
        if self._signals.get(name) == signal:
            return set()
        _set(self._signals, name, signal)
        return {name}

    def remove(self, body: Body) -> set[str]:
        """Forget a node that is gone. Return its name if there was a signal."""
        self._without_image_volumes.pop(_name(body), None)
        return {_name(body)} if self._signals.pop(_name(body), None) is not None else set()

    def lose(self) -> None:
        """Forget all nodes: they can't be read any more."""
        self._signals, self._without_image_volumes = {}, {}
        self._has_image_volumes = self.are_read = False
        self.architectures = frozenset()

    def signals(self) -> Mapping[str, Signal] | None:
        """Return the signals by the nodes' names; None if nodes can't be read."""
        return dict(self._signals) if self.are_read else None

    def why_no_image_volumes(self) -> str:
        """Return why not every node can mount an image as a volume; empty if all can."""
        if not self.are_read:
            return NODES_UNKNOWN
        without = next(iter(self._without_image_volumes.values()), "")
        return without or ("" if self._has_image_volumes else "there is no node yet")


def _set(known: dict[str, _Known], name: str, value: _Known | None) -> None:
    if value is None:
        known.pop(name, None)
    else:
        known[name] = value


def _name(body: Body) -> str:
    return text(table(body, "metadata"), "name")
