"""
How long a pod stays bound to a lost node.

Owns: the tolerations that our pods get by default. Kubernetes' default is 300 s, in which an MPI job makes no
progress. Ours are visible in the pod; a toleration of the user's for the same taint replaces ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpirt.controller.model.reading import rows, text

# Longer than most nodes take to restart their kubelet or their network, but short for a job that waits.
TOLERATED_SECONDS = 60

# The taints of a node that reports that it can't run pods, or that is unreachable.
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EFFECT = "NoExecute"


def with_tolerations(pod: Mapping[str, Any]) -> list[Any]:
    """Return the tolerations of a pod spec, and ours for the taints of lost nodes that none of them covers."""
    ours = [
        {"key": key, "operator": "Exists", "effect": _EFFECT, "tolerationSeconds": TOLERATED_SECONDS}
        for key in _TAINTS
        if not _is_about(pod, key)
    ]
    return [*(pod.get("tolerations") or []), *ours]


def _is_about(pod: Mapping[str, Any], key: str) -> bool:
    """Whether a toleration covers the taint, by Kubernetes' own rule: key and effect match, or are empty."""
    return any(
        text(row, "key") in (key, "") and text(row, "effect") in (_EFFECT, "") for row in rows(pod, "tolerations")
    )
