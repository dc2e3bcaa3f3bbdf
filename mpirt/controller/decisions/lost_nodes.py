"""
Pods on lost nodes.

Owns: the decision to force the deletion of such a pod (grace 0), so that its StatefulSet or Job can replace it on
another node. Without that, they wait for ever for a node that can't confirm the deletion.

When a pod has to go is not decided here: its tolerations and its grace period say so, and the taint manager
deletes it. Only deletions by the taint manager are forced, and only after the grace period. A command that runs
there under a keeper ends with the keeper's lease, which may be later; docs/operations.md names that limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, earliest
from mpirt.controller.observed.facts import Observed
from mpirt.controller.observed.pods import Pod

# The reason of the condition DisruptionTarget (Kubernetes 1.26 and later) on a pod that does not tolerate a
# NoExecute taint of its node, or no longer does.
_BY_TAINT_MANAGER = "DeletionByTaintManager"

# A node counts as lost only after this time, however short its pods' tolerations are: when a node comes back, it
# takes up to 10 s until that is noticed, and 10 s more until its pods are reported as Ready.
PATIENCE = timedelta(seconds=30)
# Nothing is forced for this time after an outage of the API server. Kubernetes then gives up healthy nodes, too:
# clients back off, up to a minute between retries. So the node controller may not know yet that nodes are back,
# nor the nodes that their pods were deleted.
AFTER_AN_OUTAGE = timedelta(seconds=90)
# The wait after the grace period of a pod that was not Ready, and so does not show whether its node is lost or
# only slow. A healthy node ends at once a pod that has not started.
NOT_BEGUN = timedelta(seconds=30)
# The same for a pod that runs, which a healthy node may be slow to end: a volume hangs, a disk is busy. Also added
# while all nodes are silent.
BEGUN = timedelta(minutes=5)


def forced_deletions(observed: Observed) -> tuple[list[Action], datetime | None]:
    """Return the deletions to force now, and when others may be due."""
    known = (*observed.workers, *observed.previous_workers, *observed.launchers, *observed.previous_launchers)
    pods = [pod for pod in known if not pod.is_over and not pod.forced]
    due = [(pod, at) for pod in pods if (at := _forced_from(pod, pods, observed.heard)) is not None]
    overdue = {pod.uid for pod, at in due if at <= observed.now}
    if _is_the_clusters_fault(pods, [pod for pod in pods if pod.cut_off is not None or pod.uid in overdue]):
        # Kubernetes deletes the pods of unreachable nodes, but not while all nodes are unreachable.
        due = [(pod, at + BEGUN) for pod, at in due if pod.cut_off is not None]
    forced: list[Action] = [
        Delete(kinds.POD, pod.name, pod.uid, _why(pod), grace=0) for pod, at in due if at <= observed.now
    ]
    return forced, earliest(*(at for _, at in due if at > observed.now))


def overlooking(observed: Observed) -> Observed:
    """Return `observed` without the loss of nodes that may still come back: it is not reported yet."""

    def without_loss(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        return tuple(replace(pod, cut_off=None) if _may_be_back(pod, observed) else pod for pod in pods)

    return replace(
        observed,
        workers=without_loss(observed.workers),
        launchers=without_loss(observed.launchers),
        previous_launchers=without_loss(observed.previous_launchers),
    )


def _may_be_back(pod: Pod, observed: Observed) -> bool:
    if pod.cut_off is None or _is_given_up(pod):
        return False
    return observed.now < _after_an_outage(pod.cut_off + PATIENCE, observed.heard)


def _is_given_up(pod: Pod) -> bool:
    """Whether the taint manager has deleted the pod because of its node; a deletion is never undone."""
    return pod.deleted is not None and pod.disruption == _BY_TAINT_MANAGER


def _forced_from(pod: Pod, pods: Sequence[Pod], heard: datetime | None) -> datetime | None:
    """Return from when on the pod's deletion may be forced; None if it may not, as things are."""
    # The deletionTimestamp is the end of the grace period.
    if pod.deleted is None or not _is_given_up(pod):
        return None
    if pod.cut_off is not None:
        patient = max(pod.deleted, pod.cut_off + PATIENCE)
    elif any(other.node == pod.node and other.ready for other in pods):
        # The node still reports its pods, so it is only slow.
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
    """Whether all of several nodes are silent: then the control plane is cut off, and the job may be healthy."""
    nodes = {pod.node for pod in pods if pod.node}
    return len(nodes) > 1 and nodes == {pod.node for pod in silent}
