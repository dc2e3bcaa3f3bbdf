"""
The state of a GPUTask: why it runs or doesn't, derived from what is observed of its pod.

Owns: the states and their messages, and the status that follows from one. An end is final. The loss of a pod is
reported once, and stays in the status until there is news of another pod.

Whose a pod is: the task's if, and only if, the uid in its controller reference is the task's. Whether a task has
ended or has lost its pod: it ends when its containers end by themselves, with whatever code, or when the
template's own deadline is over; then it does not run again. It has lost its pod if that was deleted, preempted,
evicted or rejected by its node before, or if its node was restarted: then it runs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from mpirt.controller.gputasks.spec import CONTAINER, GPU_TASK
from mpirt.controller.gputasks.status import LOSSES, Phase, Reason, State, TaskStatus
from mpirt.controller.messages.causes import ON_ITS_WAY, pod_end, trouble, whose
from mpirt.controller.messages.status import Said, conditions
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create
from mpirt.controller.model.attempts import How, PodEnd
from mpirt.controller.model.conditions import Type
from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.model.spec import Owner
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


@dataclass(frozen=True, slots=True)
class Wish:
    """What the task asks for."""

    shape: str = ""
    """The digest of the pod that it asks for; empty if it asks for something invalid."""
    reason: Reason = Reason.PENDING
    """Why there can be no such pod, if there is a problem."""
    problem: str = ""
    create: Create | None = None
    """The creation of the pod, if it can be created."""


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
    found = [body for body in cached.get(kinds.POD, ()) if text(table(body, "metadata"), "name") == owner.key.name]
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


def state_of(before: TaskStatus, seen: Seen, wish: Wish) -> State:
    """Return the state of a task that has not ended before."""
    pod = seen.last
    if _is_known_loss(before, pod):
        return _unchanged(before, pod)
    # Only a successor proves that a pod is gone: one that loses its labels vanishes from the cache, too.
    if before.phase == Phase.RUNNING and seen.pod is not None and seen.pod.uid != before.uid:
        words = f"pod {before.pod} is gone, and nothing shows how it ended; the task runs again"
        return _pending(Reason.POD_DELETED, words)
    found = fate(pod) if pod is not None and not _is_replaced(pod, wish) else None
    if found is not None:
        return found
    if seen.pod is None:
        return _without_pod(before, seen, wish)
    return _running(seen.pod, wish) if has_begun(seen.pod) else _waiting(seen.pod, wish)


def is_outdated(pod: Pod, wish: Wish) -> bool:
    """Whether the task was changed after the pod was created. A pod that has lost the digest counts as current."""
    return bool(wish.shape and pod.template) and pod.template != wish.shape


def has_begun(pod: Pod) -> bool:
    """Whether the task has been started in the pod."""
    return pod.phase not in ("", "Pending")


def _pending(reason: str, message: str, pod: Pod | None = None) -> State:
    return State(Phase.PENDING, reason, message, pod)


def _is_known_loss(before: TaskStatus, pod: Pod | None) -> bool:
    """Whether the status says that this pod is lost, and it terminates or will be deleted."""
    if pod is None or before.uid != pod.uid or before.reason not in LOSSES:
        return False
    return pod.was_deleted or before.reason == Reason.MOVED


def _is_replaced(pod: Pod, wish: Wish) -> bool:
    """Whether the pod was deleted only because the task was changed before it began."""
    return pod.was_deleted and not has_begun(pod) and is_outdated(pod, wish)


def _unchanged(before: TaskStatus, pod: Pod | None = None) -> State:
    message, outdated = (
        before.conditions[kind].message if kind in before.conditions else ""
        for kind in (Type.RUNNING, Type.OUTDATED)
    )
    return State(Phase(before.phase), before.reason, message, pod, outdated)


def _without_pod(before: TaskStatus, seen: Seen, wish: Wish) -> State:
    if wish.problem:
        return _pending(wish.reason, wish.problem)
    if seen.other is not None and not seen.is_leftover:
        owner = whose(seen.other.owner_name)
        words = f"pod {seen.other.name} exists and {owner}; the task waits until the name is free"
        return _pending(Reason.EXISTS, words)
    if seen.other is not None:
        return _pending(Reason.PENDING, f"waiting for the previous pod {seen.other.name} to terminate")
    if before.reason in LOSSES or before.phase == Phase.RUNNING:
        return _unchanged(before)
    return _pending(Reason.PENDING, "waiting for its pod to be created")


def _waiting(pod: Pod, wish: Wish) -> State:
    if wish.problem:
        return _pending(wish.reason, wish.problem, pod)
    if is_outdated(pod, wish):
        return _pending(Reason.PENDING, "the task was changed; its pod is created again", pod)
    if pod.unscheduled:
        return _pending(Reason.UNSCHEDULABLE, f"pod {trouble(pod)}", pod)
    is_stuck = any(one.waiting not in ON_ITS_WAY for one in pod.containers)
    return _pending(Reason.NOT_STARTING if is_stuck else Reason.PENDING, f"pod {trouble(pod, CONTAINER)}", pod)


def _running(pod: Pod, wish: Wish) -> State:
    outdated = wish.problem if not wish.shape else ""
    if is_outdated(pod, wish):
        outdated = f"the task was changed while it runs; its pod is left alone. Delete pod {pod.name} to apply it"
    return State(Phase.RUNNING, Reason.RUNNING, f"pod {pod.name} runs on node {pod.node}", pod, outdated=outdated)


def status_after(before: TaskStatus, state: State, *, generation: int, now: datetime) -> TaskStatus:
    """Return the status that says so."""
    said: dict[Type, Said] = {Type.RUNNING: (state.phase is Phase.RUNNING, state.reason, state.message)}
    if state.outdated:
        said[Type.OUTDATED] = True, Reason.OUTDATED, state.outdated
    status = replace(before, phase=state.phase, generation=generation)
    if status.is_over:
        said[Type(state.phase)] = True, state.reason, state.message
        status = replace(status, completed=state.at or now)
    made = conditions(before.conditions, said, now=now)
    if state.pod is not None:
        status = _with_its_pod(before, status, state.pod)
    if status.uid != before.uid and state.is_lost:
        # Another pod is lost in the same way.
        made[Type.RUNNING] = replace(made[Type.RUNNING], updated=now)
    return replace(status, conditions=made)


def _with_its_pod(before: TaskStatus, status: TaskStatus, pod: Pod) -> TaskStatus:
    is_another = pod.uid != before.uid
    started = None if is_another else before.started
    if started is None and has_begun(pod):
        started = pod.started
    return replace(
        status,
        pod=pod.name,
        uid=pod.uid,
        node=pod.node,
        started=started,
        restarts=before.restarts + (is_another and before.reason in LOSSES),
        left="" if has_begun(pod) and pod.node != before.left else before.left,
    )
