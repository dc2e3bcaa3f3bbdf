"""
The pod of a GPUTask: its manifest, what is observed of it, and what has become of it.

Owns: whose a pod is: the task's if, and only if, the uid in its controller reference is the task's. And whether a
task has ended or has lost its pod. It ends when its containers end by themselves, with whatever code, or when the
template's own deadline is over; then it does not run again. It has lost its pod if that was deleted, preempted,
evicted or rejected by its node before, or if its node was restarted: then it runs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mpirt.controller.gputasks.spec import APP_LABEL, CONTAINER, DEFAULT_IMAGE, GPU_TASK, TaskSpec
from mpirt.controller.gputasks.status import Phase, Reason, State
from mpirt.controller.manifests.supporting import owner_reference
from mpirt.controller.messages.causes import pod_end
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create
from mpirt.controller.model.attempts import How, PodEnd
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, job_selector
from mpirt.controller.model.reading import Body, digest, table, text
from mpirt.controller.model.spec import Owner, Settings
from mpirt.controller.observed.facts import Live
from mpirt.controller.observed.history import launcher_end
from mpirt.controller.observed.observe import Cached, DepartedPods, read_live
from mpirt.controller.observed.pods import Pod, evictions, read_pod

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


def creation(task: TaskSpec, settings: Settings) -> Create:
    """Return the creation of the task's pod."""
    manifest = task_pod(task, settings)
    return Create(manifest, "the task has no pod; creating", digest(manifest))


def task_pod(task: TaskSpec, settings: Settings) -> dict[str, Any]:
    """Return the task's pod."""
    selector = {settings.gpu_label: task.gpu} if task.gpu else {}
    chosen = {"nodeSelector": {**(task.pod.get("nodeSelector") or {}), **selector}} if selector else {}
    priority = {"priorityClassName": task.priority} if task.priority else {}
    return {
        "apiVersion": kinds.RESOURCES[kinds.POD].api_version,
        "kind": kinds.POD,
        "metadata": {
            "name": task.name,
            "namespace": task.owner.key.namespace,
            "labels": {**task.labels, **job_selector(GPU_TASK, task.name), "app": APP_LABEL},
            "annotations": {**task.annotations, TEMPLATE_ANNOTATION: task.shape(settings)},
            "ownerReferences": [owner_reference(task.owner)],
        },
        "spec": {
            # A task ends once. Kubernetes' own default would start it again for ever.
            "restartPolicy": "Never",
            **task.pod,
            "containers": _containers(task, settings),
            **chosen,
            **priority,
        },
    }


def _containers(task: TaskSpec, settings: Settings) -> list[dict[str, Any]]:
    rows = task.pod.get("containers") or [{"name": CONTAINER}]
    return [_main(row, task, settings) if row.get("name") == CONTAINER else dict(row) for row in rows]


def _main(row: Mapping[str, Any], task: TaskSpec, settings: Settings) -> dict[str, Any]:
    own = {"image": task.image, "command": list(task.command), "args": list(task.args)}
    amounts = {"cpu": task.cpu, "memory": task.memory, settings.gpu_resource: task.gpu_amount}
    given: Mapping[str, Any] = row.get("resources") or {}
    limits = {**(given.get("limits") or {}), **{name: amount for name, amount in amounts.items() if amount}}
    return {
        "image": DEFAULT_IMAGE,
        # The last lines of its log say why it has failed, and are in the task's status then.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **row,
        **{name: value for name, value in own.items() if value},
        **({"resources": {**given, "limits": limits}} if limits else {}),
    }


@dataclass(frozen=True, slots=True)
class Seen:
    """The pods of a task's name at one moment."""

    pod: Pod | None = None
    """The task's pod."""
    version: str = ""
    """Its resourceVersion."""
    departed: Pod | None = None
    """The task's last pod, if that went a moment ago and was being deleted or had ended; None while it has one."""
    other: Live | None = None
    """A pod of another owner that has the name."""

    @property
    def last(self) -> Pod | None:
        """The task's pod, or the one that it had a moment ago."""
        return self.pod or self.departed

    @property
    def is_leftover(self) -> bool:
        """Whether the pod in the way will go by itself: it is being deleted, or of an earlier task of the name."""
        return self.other is not None and (
            self.other.deleting or self.other.owner_name == f"{GPU_TASK} {self.other.name}"
        )


def see(owner: Owner, cached: Cached, departed: DepartedPods) -> Seen:
    """Return what is known about the task's pod."""
    evicted = evictions(cached.get(kinds.EVICTION, ()))
    found = [body for body in cached.get(kinds.POD, ()) if _has_name(body, owner)]
    mine = next((body for body in found if _is_of(body, owner)), None)
    if mine is not None:
        version = text(table(mine, "metadata"), "resourceVersion")
        return Seen(pod=read_pod(mine, evicted=evicted), version=version)
    other = next((read_live(kinds.POD, body) for body in found), None)
    return Seen(departed=_departed(owner, departed, evicted), other=other)


def _departed(owner: Owner, departed: DepartedPods, evicted: Mapping[str, str]) -> Pod | None:
    gone: list[tuple[Body, datetime]] = [(body, at) for body, at in departed if _is_of(body, owner)]
    if not gone:
        return None
    body, at = max(gone, key=lambda each: each[1])
    pod = read_pod(body, evicted=evicted, gone=at)
    return pod if pod.deleted is not None or pod.is_over else None


def _has_name(body: Body, owner: Owner) -> bool:
    return text(table(body, "metadata"), "name") == owner.key.name


def _is_of(body: Body, owner: Owner) -> bool:
    return read_live(kinds.POD, body).owner == owner.uid


def fate(pod: Pod) -> State | None:
    """Return the state of a task that has ended in the pod, or has lost it; None as long as it may run there."""
    end = launcher_end(pod, CONTAINER)
    if end is None or (end.how is How.NODE_LOST and not (pod.is_over or pod.was_deleted)):
        # A node that is unreachable may come back. Kubernetes decides when its pods are deleted.
        return None
    if _is_own(pod, end):
        return _ended(pod, end)
    reason = _BY_DISRUPTION.get(pod.disruption) or _BY_END.get(end.how, Reason.POD_DELETED)
    message = f"pod {pod_end(end, name_container=False)}{_cause(pod, end)}; the task runs again"
    return State(Phase.PENDING, reason, message, pod)


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


def _ended(pod: Pod, end: PodEnd) -> State:
    words = f"pod {pod_end(end, name_container=pod.phase != 'Succeeded')}"
    if pod.phase == "Succeeded":
        return State(Phase.SUCCEEDED, Reason.SUCCEEDED, words, pod, at=end.at)
    lines = f": {end.message}" if end.how is How.EXITED and end.message else ""
    return State(Phase.FAILED, _reason(end), f"{words}{lines}", pod, at=end.at)


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
