"""
Pods on nodes that Kubernetes has given up.

Owns: the decision to delete such a pod without its node's word, so that another node gets it: neither a
StatefulSet nor a Job does that. What ran there by our agent has ended by itself, for its connection is gone.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpirt.controller import kinds
from mpirt.controller.actions import Action, Delete, earliest
from mpirt.controller.observe import Observed
from mpirt.controller.pods import Pod

# After Kubernetes has said so, which by itself waits for 40 s: a node that is only restarted is back by then.
PATIENCE = timedelta(seconds=10)


def healing(observed: Observed, *, now: datetime) -> tuple[list[Action], datetime | None]:
    """The pods to delete now, and when there may be others."""
    pods = [pod for pod in (*observed.workers, *observed.launchers, *observed.leftovers) if not pod.is_over]
    lost = [pod for pod in pods if pod.cut_off is not None]
    if _is_the_clusters_fault(pods, lost):
        return [], None
    due = {pod: pod.cut_off + PATIENCE for pod in lost if pod.cut_off is not None}
    gone: list[Action] = [
        Delete(kinds.POD, pod.name, pod.uid, f"its node {pod.node} is lost", grace=0)
        for pod, time in due.items()
        if time <= now
    ]
    return gone, earliest(*(time for time in due.values() if time > now))


def _is_the_clusters_fault(pods: list[Pod], lost: list[Pod]) -> bool:
    """Several nodes, and none is heard of: the control plane is deaf, and the job may be running well."""
    nodes = {pod.node for pod in pods if pod.node}
    return len(nodes) > 1 and nodes == {pod.node for pod in lost}
