"""
Nodes that are about to go, as their objects show it.

Owns: the table of signals by which clouds, autoscalers and people announce it, and reading a node. Nodes without a
signal are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mpirt.controller.model.reading import Body, rows, table, text
from mpirt.controller.model.roster import Source

# Where nobody has said otherwise: as long as AWS announces the end of a spot node.
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
