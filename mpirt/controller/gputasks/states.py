"""
The state of a GPUTask: why it runs or doesn't, derived from what is observed.

Owns: the states and their messages, and the status that follows from one. An end is final. What a pod was lost by
is told once, and stays until another pod has news.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from mpirt.controller.gputasks.pod import Ended, Lost, Seen, fate
from mpirt.controller.gputasks.spec import CONTAINER
from mpirt.controller.gputasks.status import LOSSES, Condition, Phase, Reason, TaskStatus
from mpirt.controller.messages.causes import trouble
from mpirt.controller.observed.pods import Pod

# Reasons for waiting that are no trouble.
_ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True, slots=True)
class Wish:
    """What the task asks for."""

    shape: str = ""
    """The digest of the pod that it asks for; empty if it asks for something invalid."""
    reason: Reason = Reason.PENDING
    """Why there can be no such pod, if there is a problem."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """Why a task runs or doesn't."""

    phase: Phase
    reason: str
    message: str
    pod: Pod | None = None
    """The pod that this is about."""
    outdated: str = ""
    """Why its pod is not the one that the task asks for now; empty if it is."""
    at: datetime | None = None
    """When the task ended."""

    @property
    def is_lost(self) -> bool:
        """Whether the task has lost its pod."""
        return self.reason in LOSSES


def state_of(before: TaskStatus, seen: Seen, wish: Wish) -> State:
    """Return the state of a task that has not ended before."""
    pod = seen.last
    if _is_told(before, seen):
        return _as_told(before, pod)
    if _has_vanished(before, seen):
        words = f"pod {before.pod} is gone, and nothing shows how it ended; the task runs again"
        return State(Phase.PENDING, Reason.POD_DELETED, words)
    found = fate(pod) if pod is not None and not _is_replaced(seen, wish) else None
    if isinstance(found, Ended):
        phase = Phase.SUCCEEDED if found.succeeded else Phase.FAILED
        return State(phase, found.reason, found.message, pod, at=found.at)
    if isinstance(found, Lost):
        return State(Phase.PENDING, found.reason, found.message, pod)
    if seen.pod is None:
        return _without_pod(before, seen, wish)
    return _with_pod(seen.pod, wish)


def is_outdated(pod: Pod, wish: Wish) -> bool:
    """Whether the task was changed after the pod was created. A pod that has lost the digest counts as current."""
    return bool(wish.shape and pod.template) and pod.template != wish.shape


def has_begun(pod: Pod) -> bool:
    """Whether the task has been started in the pod."""
    return pod.phase not in ("", "Pending")


def _is_told(before: TaskStatus, seen: Seen) -> bool:
    """Whether the status says that this pod is lost, and it is on its way out or is to be."""
    pod = seen.last
    if pod is None or before.uid != pod.uid or before.reason not in LOSSES:
        return False
    return pod.was_deleted or before.reason == Reason.MOVED


def _has_vanished(before: TaskStatus, seen: Seen) -> bool:
    """
    Whether the pod in which the task ran has a successor, and nobody has seen it end.

    Only the successor proves that it is gone: a pod that loses its labels vanishes from the cache, too.
    """
    return before.phase == Phase.RUNNING and seen.pod is not None and seen.pod.uid != before.uid


def _is_replaced(seen: Seen, wish: Wish) -> bool:
    """Whether the pod was deleted only because the task was changed before it began."""
    pod = seen.last
    return pod is not None and pod.was_deleted and not has_begun(pod) and is_outdated(pod, wish)


def _as_told(before: TaskStatus, pod: Pod | None = None) -> State:
    message = before.running.message if before.running is not None else ""
    outdated = before.outdated.message if before.outdated is not None else ""
    return State(Phase(before.phase), before.reason, message, pod, outdated)


def _without_pod(before: TaskStatus, seen: Seen, wish: Wish) -> State:
    if wish.problem:
        return State(Phase.PENDING, wish.reason, wish.problem)
    if seen.other is not None and not seen.is_leftover:
        owner = seen.other.owner_name or "nobody"
        words = f"pod {seen.other.name} exists and belongs to {owner}; the task waits until the name is free"
        return State(Phase.PENDING, Reason.EXISTS, words)
    if seen.other is not None:
        return State(Phase.PENDING, Reason.PENDING, f"waiting for the previous pod {seen.other.name} to terminate")
    if before.reason in LOSSES or before.phase == Phase.RUNNING:
        return _as_told(before)
    return State(Phase.PENDING, Reason.PENDING, "waiting for its pod to be created")


def _with_pod(pod: Pod, wish: Wish) -> State:
    if has_begun(pod):
        return _running(pod, wish)
    if wish.problem:
        return State(Phase.PENDING, wish.reason, wish.problem, pod)
    if is_outdated(pod, wish):
        return State(Phase.PENDING, Reason.PENDING, "the task was changed; its pod is created again", pod)
    if pod.unscheduled:
        return State(Phase.PENDING, Reason.UNSCHEDULABLE, f"pod {trouble(pod)}", pod)
    is_stuck = any(one.waiting not in _ON_ITS_WAY for one in pod.containers)
    reason = Reason.NOT_STARTING if is_stuck else Reason.PENDING
    return State(Phase.PENDING, reason, f"pod {trouble(pod, CONTAINER)}", pod)


def _running(pod: Pod, wish: Wish) -> State:
    outdated = wish.problem if not wish.shape else ""
    if is_outdated(pod, wish):
        outdated = f"the task was changed while it runs; its pod is left alone. Delete pod {pod.name} to apply it"
    return State(Phase.RUNNING, Reason.RUNNING, f"pod {pod.name} runs on node {pod.node}", pod, outdated=outdated)


def status_after(before: TaskStatus, state: State, *, generation: int, now: datetime) -> TaskStatus:
    """Return the status that says so."""
    running = _condition(before.running, state.reason, state.message, holds=state.phase is Phase.RUNNING, now=now)
    status = replace(
        before, phase=state.phase, generation=generation, running=running, outdated=_outdated(before, state, now)
    )
    if state.pod is not None:
        status = _with_its_pod(before, status, state.pod)
    if status.uid != before.uid and state.is_lost:
        # Another pod is lost in the same way.
        status = replace(status, running=replace(running, updated=now))
    if not status.is_over:
        return status
    end = _condition(None, state.reason, state.message, holds=True, now=now)
    return replace(status, completed=state.at or now, end=end)


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


def _outdated(before: TaskStatus, state: State, now: datetime) -> Condition | None:
    if not state.outdated:
        return None
    return _condition(before.outdated, Reason.OUTDATED, state.outdated, holds=True, now=now)


def _condition(old: Condition | None, reason: str, message: str, *, holds: bool, now: datetime) -> Condition:
    changed = old.changed if old is not None and old.status == holds else now
    is_same = old is not None and (old.status, old.reason, old.message) == (holds, reason, message)
    return Condition(holds, reason, message, changed, old.updated if old is not None and is_same else now)
