"""
When a job has a PodDisruptionBudget.

Owns: the decision. The budget refuses every eviction of a worker, so it blocks a drain until the controller has
moved the workers. It exists only while the controller does that: not when the job is over, and not while the
controller can't see which nodes are cordoned, or can't act on the job.
"""

from __future__ import annotations

from dataclasses import replace

from mpirt.controller.dialects.training_job import LEAVE_CORDONED_ANNOTATION
from mpirt.controller.manifests.supporting import disruption_budget
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Delete, Manifest
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import JobEnd
from mpirt.controller.observed.observe import Observed

_UNSEEN = (
    f"metadata.annotations[{LEAVE_CORDONED_ANNOTATION}]: has no effect: the controller may not list nodes, "
    "so evictions are not refused"
)


def as_nodes_are_seen(spec: JobSpec, observed: Observed) -> JobSpec:
    """Return the spec whose workers stay on cordoned nodes, with a notice, if the controller can't see nodes."""
    if not spec.workers.leave_cordoned or observed.sees_nodes:
        return spec
    return replace(spec, workers=replace(spec.workers, leave_cordoned=False), notices=(*spec.notices, _UNSEEN))


def wanted_budget(spec: JobSpec, end: JobEnd | None, *, has_workers: bool) -> list[Manifest]:
    """Return the budget of a job that needs one."""
    return [disruption_budget(spec)] if spec.workers.leave_cordoned and has_workers and end is None else []


def budget_removal(observed: Observed) -> list[Delete]:
    """Return the deletion of the budget, if there is one."""
    live = observed.live(kinds.DISRUPTION_BUDGET)
    why = "the controller can't move the workers, so evictions are not refused"
    return [] if live is None else [Delete(live.kind, live.name, live.uid, why)]
