"""
Pods on nodes that Kubernetes has given up.

Owns: the decision to delete such a pod without its node's word, so that another node gets it: neither a
StatefulSet nor a Job does that. What ran there by our agent has ended by itself, for its connection is gone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller import kinds
from mpirt.controller.actions import Action, Delete, earliest
from mpirt.controller.observe import Observed
from mpirt.controller.pods import Pod

# After Kubernetes has said so, which by itself waits for 40 s: a node that was not heard of for a moment needs up
# to 10 s to be heard again, and 10 s more to say that its pods are Ready.
PATIENCE = timedelta(seconds=30)
# After the API server was away. Kubernetes then gives up nodes that run well, too: whoever found it away tries
# again ever more seldom, up to a minute apart. So the node controller may not know yet that nodes are heard of,
# nor they that their pods were given up.
AFTER_AN_OUTAGE = timedelta(seconds=90)


def healing(observed: Observed, *, now: datetime) -> tuple[list[Action], datetime | None]:
    """The pods to delete now, and when there may be others."""
    pods = [pod for pod in (*observed.workers, *observed.launchers, *observed.leftovers) if not pod.is_over]
    lost = [pod for pod in pods if pod.cut_off is not None]
    if _is_the_clusters_fault(pods, lost):
        return [], None
    due = {pod: _given_up(pod.cut_off, observed.heard) for pod in lost if pod.cut_off is not None}
    gone: list[Action] = [
        Delete(kinds.POD, pod.name, pod.uid, f"its node {pod.node} is lost", grace=0)
        for pod, time in due.items()
        if time <= now
    ]
    return gone, earliest(*(time for time in due.values() if time > now))


def overlooking(observed: Observed, *, now: datetime) -> Observed:
    """The same, but pods on nodes that may be back any moment are as they were: nothing is told of them yet."""
    return replace(
        observed,
        workers=_overlooked(observed.workers, observed.heard, now),
        launchers=_overlooked(observed.launchers, observed.heard, now),
        leftovers=_overlooked(observed.leftovers, observed.heard, now),
    )


def _overlooked(pods: tuple[Pod, ...], heard: datetime | None, now: datetime) -> tuple[Pod, ...]:
    return tuple(
        replace(pod, cut_off=None) if pod.cut_off is not None and now < _given_up(pod.cut_off, heard) else pod
        for pod in pods
    )


def _given_up(cut_off: datetime, heard: datetime | None) -> datetime:
    """When a pod that is cut off since then is lost."""
    return cut_off + PATIENCE if heard is None else max(cut_off + PATIENCE, heard + AFTER_AN_OUTAGE)


def _is_the_clusters_fault(pods: list[Pod], lost: list[Pod]) -> bool:
    """Several nodes, and none is heard of: the control plane is deaf, and the job may be running well."""
    nodes = {pod.node for pod in pods if pod.node}
    return len(nodes) > 1 and nodes == {pod.node for pod in lost}
