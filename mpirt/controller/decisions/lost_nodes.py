"""
Pods on nodes that Kubernetes has given up.

Owns: the decision to delete such a pod without its node's word, so that another node gets it: neither a
StatefulSet nor a Job does that. What runs there by our agent ends by its keeper's lease, which may be later:
docs/operations.md names that limit.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, earliest
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.pods import Pod

# After Kubernetes has said so, which by itself waits for 40 to 50 s: a node that was not heard of for a moment
# needs up to 10 s to be heard again, and 10 s more to say that its pods are Ready.
PATIENCE = timedelta(seconds=30)
# After the API server was away. Kubernetes then gives up nodes that run well, too: whoever found it away tries
# again ever more seldom, up to a minute apart. So the node controller may not know yet that nodes are heard of,
# nor they that their pods were given up.
AFTER_AN_OUTAGE = timedelta(seconds=90)
# After the time that a pod has to end. Of one that was not Ready nothing says that its node is lost, until its
# tolerations are over and Kubernetes deletes it. A node that is well ends what it has not begun at once.
NOT_BEGUN = timedelta(seconds=30)
# But it may be slow to end what runs: a volume that hangs, a disk that is busy.
BEGUN = timedelta(minutes=5)


def healing(observed: Observed, *, now: datetime) -> tuple[list[Action], datetime | None]:
    """The pods to delete now, and when there may be others."""
    known = (*observed.workers, *observed.earlier, *observed.launchers, *observed.leftovers)
    pods = [pod for pod in known if not pod.is_over and not pod.forced]
    doubtful = [(pod, at) for pod in pods if (at := _given_up(pod, observed)) is not None]
    if _is_the_clusters_fault(pods, [pod for pod, at in doubtful if pod.cut_off is not None or at <= now]):
        # Kubernetes deletes the pods of nodes that it hears nothing of, but not where it hears of no node at all.
        doubtful = [
            (pod, max(at, pod.deleted + BEGUN))
            for pod, at in doubtful
            if pod.cut_off is not None and pod.deleted is not None
        ]
    gone: list[Action] = [
        Delete(kinds.POD, pod.name, pod.uid, _why(pod), grace=0) for pod, at in doubtful if at <= now
    ]
    return gone, earliest(*(at for _, at in doubtful if at > now))


def overlooking(observed: Observed, *, now: datetime) -> Observed:
    """The same, but pods on nodes that may be back any moment are as they were: nothing is told of them yet."""

    def as_it_was(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        return tuple(replace(pod, cut_off=None) if _may_be_back(pod, observed, now) else pod for pod in pods)

    return replace(
        observed,
        workers=as_it_was(observed.workers),
        launchers=as_it_was(observed.launchers),
        leftovers=as_it_was(observed.leftovers),
    )


def _may_be_back(pod: Pod, observed: Observed, now: datetime) -> bool:
    given_up = _given_up(pod, observed)
    return given_up is not None and now < given_up


def _given_up(pod: Pod, observed: Observed) -> datetime | None:
    """When a pod that its node may not end any more is given up; None if there is no sign of that."""
    if pod.cut_off is not None:
        patient = pod.cut_off + PATIENCE
    elif pod.deleted is not None and pod.node:
        patient = pod.deleted + (NOT_BEGUN if pod.phase == "Pending" else BEGUN)
    else:
        return None
    return patient if observed.heard is None else max(patient, observed.heard + AFTER_AN_OUTAGE)


def _why(pod: Pod) -> str:
    return f"its node {pod.node} {'is lost' if pod.cut_off is not None else 'does not say that it has ended'}"


def _is_the_clusters_fault(pods: list[Pod], silent: list[Pod]) -> bool:
    """Several nodes, and none is heard of: the control plane is deaf, and the job may be running well."""
    nodes = {pod.node for pod in pods if pod.node}
    return len(nodes) > 1 and nodes == {pod.node for pod in silent}
