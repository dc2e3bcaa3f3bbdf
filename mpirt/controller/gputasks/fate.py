"""
What has become of a task's pod: whether the task has ended in it, or has lost it.

Owns: the difference. A task ends when its containers end by themselves, with whatever code, or when the template's
own deadline is over; then it does not run again. It has lost its pod if that was deleted, preempted, evicted or
rejected by its node before, or if its node was restarted: then it runs again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mpirt.controller.gputasks.spec import CONTAINER, GPU_TASK
from mpirt.controller.gputasks.status import Reason
from mpirt.controller.messages.sentences import pod_end
from mpirt.controller.model.attempts import How, PodEnd
from mpirt.controller.observed.deaths import launcher_end
from mpirt.controller.observed.pods import Pod

# The reason of a pod that has run for its template's activeDeadlineSeconds.
_DEADLINE = "DeadlineExceeded"

# By the reason of the condition DisruptionTarget, which Kubernetes sets before it disrupts a pod.
_BY_DISRUPTION = {
    "PreemptionByScheduler": Reason.PREEMPTED,
    "EvictionByEvictionAPI": Reason.EVICTED,
    "TerminationByKubelet": Reason.EVICTED,
    "DeletionByTaintManager": Reason.NODE_LOST,
    "DeletionByPodGC": Reason.NODE_LOST,
}
# Those that end a pod's containers before, or without, a deletion.
_WITHOUT_DELETION = frozenset({"TerminationByKubelet", "DeletionByPodGC"})

_BY_END = {
    How.EVICTED: Reason.EVICTED,
    How.FAILED: Reason.POD_FAILED,
    How.NODE_LOST: Reason.NODE_LOST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The task has ended."""

    succeeded: bool
    reason: str
    message: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Lost:
    """The task has lost its pod and runs again."""

    reason: Reason
    message: str


def fate(pod: Pod) -> Ended | Lost | None:
    """Return what has become of the pod; None as long as the task may run in it."""
    end = launcher_end(pod, CONTAINER)
    if end is None or (end.how is How.NODE_LOST and not (pod.is_over or pod.was_deleted)):
        # A node that is unreachable may come back. Kubernetes decides when its pods are deleted.
        return None
    if _is_own(pod, end):
        return _ended(pod, end)
    reason = _BY_DISRUPTION.get(pod.disruption) or _BY_END.get(end.how, Reason.POD_DELETED)
    return Lost(reason, f"pod {pod_end(end, name_container=False)}{_cause(pod, end)}; the task runs again")


def _is_own(pod: Pod, end: PodEnd) -> bool:
    """Whether the pod has ended by itself."""
    if end.how is How.FAILED and end.reason:
        return end.reason == _DEADLINE
    if end.how not in (How.EXITED, How.FAILED):
        return False
    if pod.asked_to_end is None:
        return pod.disruption not in _WITHOUT_DELETION
    # Times are whole seconds: in doubt the task runs again.
    return end.at is not None and end.at < pod.asked_to_end


def _ended(pod: Pod, end: PodEnd) -> Ended:
    words = f"pod {pod_end(end, name_container=pod.phase != 'Succeeded')}"
    if pod.phase == "Succeeded":
        return Ended(succeeded=True, reason=Reason.SUCCEEDED, message=words, at=end.at)
    lines = f": {end.message}" if end.how is How.EXITED and end.message else ""
    return Ended(succeeded=False, reason=_reason(end), message=f"{words}{lines}", at=end.at)


def _reason(end: PodEnd) -> str:
    """Return the cause in a word, such as GPUTaskOOMKilled; GPUTaskExitCode if there is only a code."""
    if end.reason not in ("", "Error"):
        return f"{GPU_TASK}{end.reason}"
    return f"{GPU_TASK}ExitCode" if end.code is not None else Reason.FAILED


def _cause(pod: Pod, end: PodEnd) -> str:
    """Return what came before the end of the containers."""
    if end.how not in (How.EXITED, How.FAILED):
        return ""
    deleted = " while it was being deleted" if pod.asked_to_end is not None else ""
    return f"{deleted} ({pod.disruption})" if pod.disruption else deleted
