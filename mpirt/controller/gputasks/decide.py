"""
The planner of GPUTasks: from one task and the cached objects around it to a plan.

Owns: when a task's pod is created and when it is deleted. What is known of a pod is written before the pod is
deleted, and before another takes its place: nothing else shows it later. The status says only what is observed, so
a new task's first plan creates the pod, and the next one has something to tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mpirt.backoff import delay
from mpirt.controller.decisions.lost_nodes import forced_deletions
from mpirt.controller.dialects.base import Kind
from mpirt.controller.gputasks.spec import KIND, TaskSpec, creation, parse
from mpirt.controller.gputasks.states import Seen, Wish, has_begun, is_outdated, see, state_of, status_after
from mpirt.controller.gputasks.status import LOSSES, Phase, Reason, State, TaskStatus, read_status, status_actions
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, Plan, Rejection, earliest
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.reading import Body, number, table
from mpirt.controller.model.roster import Source
from mpirt.controller.model.spec import Owner
from mpirt.controller.observed.facts import Observed
from mpirt.controller.observed.observe import Cached, Circumstances
from mpirt.controller.observed.pods import Pod
from mpirt.errors import SpecError

# A pod that is lost again and again, for example rejected by its node, is replaced at once the first time, then so
# long after it was started, or was lost if it never was; doubled each time.
_FIRST_DELAY, _LONGEST_DELAY = 10.0, 300.0


@dataclass(frozen=True, slots=True)
class GpuTaskPlanner:
    """Plans for GPUTasks."""

    kind: Kind = KIND

    def decide(self, body: Body, cached: Cached, rejections: Iterable[Rejection], around: Circumstances) -> Plan:
        """Return the plan for a task. One that is over gets no other pod, whatever becomes of its own."""
        owner, before = self.kind.owner(body), read_status(table(body, "status"))
        metadata = table(body, "metadata")
        if "deletionTimestamp" in metadata or before.is_over:
            return Plan()
        seen = see(owner, cached, around.departed)
        wish, task = _wish(body, rejections, around)
        state = state_of(before, seen, wish)
        moved = _move(task, state, before, around)
        status = status_after(before, moved or state, generation=number(metadata, "generation"), now=around.now)
        if moved is not None and moved.pod is not None:
            status = replace(status, left=moved.pod.node)
        acts, again = _acts(owner, seen, moved or state, status, around, wish=wish)
        if not before.phase and state.reason == Reason.PENDING and state.pod is None and acts:
            return Plan(tuple(acts))
        writes, due = status_actions(owner, before, status, now=around.now)
        return Plan((*writes, *acts), earliest(due, again))


GPU_TASKS = GpuTaskPlanner()


def _wish(body: Body, rejections: Iterable[Rejection], around: Circumstances) -> tuple[Wish, TaskSpec | None]:
    """Return the pod that the task asks for, or what is wrong, and the task if it is valid."""
    try:
        task = parse(body)
    except SpecError as error:
        return Wish(reason=Reason.INVALID, problem=str(error)), None
    create, shape = creation(task, around.settings), task.shape(around.settings)
    refused = next((one for one in rejections if (one.kind, one.digest) == (kinds.POD, create.digest)), None)
    if refused is not None:
        words = f"the API server rejects the pod: {refused.message}"
        return Wish(shape, Reason.REFUSED, words), task
    return Wish(shape, create=create), task


def _move(task: TaskSpec | None, state: State, before: TaskStatus, around: Circumstances) -> State | None:
    """
    Return the state in which a running task leaves its node; None if it stays.

    Only a task that has agreed to that leaves, and only a node that will be gone soon. No better place is looked
    for: where a pod runs best is the scheduler's decision, which it makes when the next pod is there.
    """
    pod = state.pod
    if task is None or not task.checkpointable or pod is None or state.phase is not Phase.RUNNING:
        return None
    signal = (around.nodes or {}).get(pod.node)
    if signal is None or signal.source is not Source.NODE_TAINT or before.left == pod.node:
        return None
    words = f"node {pod.node} {signal.why}; pod {pod.name} is ended, and the task continues elsewhere"
    return State(Phase.PENDING, Reason.MOVED, words, pod)


def _acts(
    owner: Owner,
    seen: Seen,
    state: State,
    status: TaskStatus,
    around: Circumstances,
    *,
    wish: Wish,
) -> tuple[list[Action], datetime | None]:
    """Return what to do with the pod now, and when there may be something to do without an event."""
    pod = seen.pod
    if pod is not None and pod.deleted is not None:
        return _forced(owner, pod, around)
    if pod is not None:
        return _deletion(pod, seen, state, wish), None
    if wish.create is None or seen.other is not None or status.is_over:
        return [], None
    at = _not_before(status)
    if at is not None and at > around.now:
        return [], at
    return [wish.create], None


def _deletion(pod: Pod, seen: Seen, state: State, wish: Wish) -> list[Action]:
    if state.is_lost and state.pod is not None:
        return [Delete(kinds.POD, pod.name, pod.uid, state.message)]
    if not has_begun(pod) and is_outdated(pod, wish):
        # Not if it begins in this moment.
        why = "the task was changed before its pod began"
        return [Delete(kinds.POD, pod.name, pod.uid, why, version=seen.version)]
    return []


def _forced(owner: Owner, pod: Pod, around: Circumstances) -> tuple[list[Action], datetime | None]:
    """Return the deletion of a pod whose node is lost: until it is gone, no other can have its name."""
    observed = Observed(owner, None, JobStatus(), around.now, workers=(pod,), heard=around.heard)
    return forced_deletions(observed)


def _not_before(status: TaskStatus) -> datetime | None:
    """Return from when on the next pod may be created; None if there is nothing to wait for."""
    if status.reason not in LOSSES or status.running is None or status.restarts < 1:
        return None
    seconds = delay(status.restarts - 1, _FIRST_DELAY, _LONGEST_DELAY)
    return (status.started or status.running.updated) + timedelta(seconds=seconds)
