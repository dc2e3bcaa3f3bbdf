"""
The PodDisruptionBudget of the workers, for jobs whose workers leave cordoned nodes by themselves.

Owns: nothing but this object. It refuses every eviction of a worker that is well, so `kubectl drain` and
autoscalers wait until the worker has left its node; the controller deletes it then. Deletions are not evictions.
"""

from __future__ import annotations

from typing import Any

from mpirt import names
from mpirt.controller.manifests.meta import head
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import pod_labels
from mpirt.controller.model.spec import JobSpec

# A share, or maxUnavailable, would be of the number of replicas; while a worker has a successor, there are more.
_MORE_THAN_ANY = 1_000_000


def disruption_budget(spec: JobSpec) -> dict[str, Any]:
    """Return the workers' PodDisruptionBudget."""
    return {
        **head(spec, kinds.DISRUPTION_BUDGET),
        "spec": {
            "minAvailable": _MORE_THAN_ANY,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": pod_labels(spec.key.kind, spec.key.name, names.WORKER)},
        },
    }
