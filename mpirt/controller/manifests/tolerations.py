"""
How long a pod stays bound to a node that is lost.

Owns: the tolerations that our pods get by default. Kubernetes would give them 300 s, in which an MPI job stands
still. They are in the pod for all to see; a toleration of the user's for the same taint takes the place of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpirt.controller.model.reading import rows, text

# Longer than most nodes take to restart their kubelet or their network; short for a job that waits.
TOLERATED_SECONDS = 60

# What Kubernetes taints a node with that it does not hear from, or that says it can't run pods.
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EFFECT = "NoExecute"


def with_tolerations(pod: Mapping[str, Any]) -> list[Any]:
    """The tolerations of a pod spec, and ours for the taints of lost nodes that none of them is about."""
    ours = [
        {"key": key, "operator": "Exists", "effect": _EFFECT, "tolerationSeconds": TOLERATED_SECONDS}
        for key in _TAINTS
        if not _is_about(pod, key)
    ]
    return [*(pod.get("tolerations") or []), *ours]


def _is_about(pod: Mapping[str, Any], key: str) -> bool:
    """As Kubernetes itself judges before it adds its 300 s: key and effect count, an empty one stands for all."""
    return any(
        text(row, "key") in (key, "") and text(row, "effect") in (_EFFECT, "") for row in rows(pod, "tolerations")
    )
