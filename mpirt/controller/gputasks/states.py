"""
The state of a GPUTask: why it runs or doesn't, derived from what is observed.

Owns: the states and their messages, and the status that follows from one. An end is final. The loss of a pod is
reported once, and stays in the status until there is news of another pod.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from mpirt.controller.gputasks.pod import Seen, fate
from mpirt.controller.gputasks.spec import CONTAINER
from mpirt.controller.gputasks.status import LOSSES, Phase, Reason, State, TaskStatus
from mpirt.controller.messages.causes import ON_ITS_WAY, trouble, whose
from mpirt.controller.messages.status import Said, conditions
from mpirt.controller.model.conditions import Type
from mpirt.controller.observed.pods import Pod


@dataclass(frozen=True, slots=True)
class Wish:
    """What the task asks for."""

    shape: str = ""
    """The digest of the pod that it asks for; empty if it asks for something invalid."""
    reason: Reason = Reason.PENDING
    """Why there can be no such pod, if there is a problem."""
    problem: str = ""


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
