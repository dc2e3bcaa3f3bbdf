"""
Pods on nodes that Kubernetes has given up.

Owns: the decision to force the deletion of such a pod (grace 0), so that its StatefulSet or Job can replace it on
another node: they wait for ever for a node that can't confirm the deletion.

When a pod has to go is not decided here. That is for its tolerations and its grace period to say, and for the
taint manager to act on: nothing is forced that it has not deleted, and nothing before the grace period is over.
What runs there under a keeper ends by the keeper's lease, which may be later: docs/operations.md names that limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, earliest
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.pods import Pod

# The reason of the condition DisruptionTarget (Kubernetes 1.26 and later) on a pod that does not tolerate a
# NoExecute taint of its node, or no longer.
_BY_TAINT_MANAGER = "DeletionByTaintManager"

# Until the loss of a node is believed, however short its pods' tolerations are: one that comes back needs up to
# 10 s to be noticed, and 10 s more to report its pods as Ready.
PATIENCE = timedelta(seconds=30)
# After the API server was away. Kubernetes then gives up nodes that run well, too: clients that found it away
# retry less and less often, up to a minute apart. So the node controller may not know yet that nodes are back, nor
# they that their pods were given up.
AFTER_AN_OUTAGE = timedelta(seconds=90)
# After the grace period of a pod that was not Ready: nothing in it shows whether its node is lost or only slow. A
# healthy node ends at once what has not begun,
NOT_BEGUN = timedelta(seconds=30)
# but it may be slow to end what runs: a volume that hangs, a disk that is busy.
BEGUN = timedelta(minutes=5)


def forced_deletions(observed: Observed, *, now: datetime) -> tuple[list[Action], datetime | None]:
    """The pods whose deletion is to be forced now, and when there may be others."""
    known = (*observed.workers, *observed.previous_workers, *observed.launchers, *observed.previous_launchers)
    pods = [pod for pod in known if not pod.is_over and not pod.forced]
    due = [(pod, at) for pod in pods if (at := _forced_from(pod, pods, observed.heard)) is not None]
    overdue = {pod.uid for pod, at in due if at <= now}
    if _is_the_clusters_fault(pods, [pod for pod in pods if pod.cut_off is not None or pod.uid in overdue]):
        # Kubernetes deletes the pods of unreachable nodes, but not while all nodes are.
        due = [(pod, at + BEGUN) for pod, at in due if pod.cut_off is not None]
    forced: list[Action] = [
        Delete(kinds.POD, pod.name, pod.uid, _why(pod), grace=0) for pod, at in due if at <= now
    ]
    return forced, earliest(*(at for _, at in due if at > now))


def overlooking(observed: Observed, *, now: datetime) -> Observed:
    """The same, but pods on nodes that may be back any moment are as they were: their loss is not reported yet."""

    def as_it_was(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        return tuple(replace(pod, cut_off=None) if _may_be_back(pod, observed, now) else pod for pod in pods)

    return replace(
        observed,
        workers=as_it_was(observed.workers),
        launchers=as_it_was(observed.launchers),
        previous_launchers=as_it_was(observed.previous_launchers),
    )


def _may_be_back(pod: Pod, observed: Observed, now: datetime) -> bool:
    if pod.cut_off is None or _is_given_up(pod):
        return False
    return now < _after_an_outage(pod.cut_off + PATIENCE, observed.heard)


def _is_given_up(pod: Pod) -> bool:
    """Whether Kubernetes has deleted it because of a taint of its node, which it does not take back."""
    return pod.deleted is not None and pod.disruption == _BY_TAINT_MANAGER


def _forced_from(pod: Pod, pods: Sequence[Pod], heard: datetime | None) -> datetime | None:
    """From when on the pod's deletion may be forced; None if never, as things are."""
    # The deletionTimestamp is the end of the grace period.
    if pod.deleted is None or not _is_given_up(pod):
        return None
    if pod.cut_off is not None:
        patient = max(pod.deleted, pod.cut_off + PATIENCE)
    elif any(other.node == pod.node and other.ready for other in pods):
        # The node reports what is on it: it is only slow.
        return None
    else:
        patient = pod.deleted + (NOT_BEGUN if pod.phase == "Pending" else BEGUN)
    return _after_an_outage(patient, heard)


def _after_an_outage(patient: datetime, heard: datetime | None) -> datetime:
    return patient if heard is None else max(patient, heard + AFTER_AN_OUTAGE)


def _why(pod: Pod) -> str:
    trouble = "is unreachable" if pod.cut_off is not None else "has not confirmed its termination"
    return f"its grace period is over and node {pod.node} {trouble}"


def _is_the_clusters_fault(pods: Sequence[Pod], silent: Sequence[Pod]) -> bool:
    """Several nodes, and all of them are silent: the control plane is cut off, and the job may be running well."""
    nodes = {pod.node for pod in pods if pod.node}
    return len(nodes) > 1 and nodes == {pod.node for pod in silent}
