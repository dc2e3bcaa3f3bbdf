"""
Jobs that another controller, such as mpi-operator or training-operator, has begun, runs or has run.

Owns: telling its objects from ours, and what its job reports. If both controllers handled a job, each would undo
what the other does, so such a job is left alone; if no launcher has started, its status says what to do.

Another controller's objects belong to the job as well and have the same names. Ours are recognised by marks: only
we create a StatefulSet; our ConfigMap has an entry of its own, our launcher Job an annotation. Every controller
creates the ConfigMap first, so the one that created it has begun the job.
"""

from __future__ import annotations

from dataclasses import replace

from mpirt.controller.dialects.base import Dialect
from mpirt.controller.messages.events import status_actions
from mpirt.controller.messages.status import conditions
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Plan
from mpirt.controller.model.conditions import Counts, Reason, Type
from mpirt.controller.model.objectnames import NEEDED_KEY, TEMPLATE_ANNOTATION, object_name
from mpirt.controller.model.reading import number, table
from mpirt.controller.observed.facts import Observed, digest_of

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


def is_of_another(observed: Observed) -> bool:
    """Whether another controller has begun the job, runs it, or has run it to its end."""
    if _is_marked(observed):
        return False
    if observed.status.is_finished:
        # Only we write attempts into a status: if there are any, the run was ours, whatever objects are left.
        return observed.status.history is None
    return bool(_made_by_another(observed))


def plan_of_another(dialect: Dialect, observed: Observed, *, suspended: bool) -> Plan:
    """Return the plan for such a job: report it, unless the job is over, has started or is suspended."""
    if observed.status.is_finished or _has_started(observed) or suspended:
        return Plan()
    message = (
        f"{_made_by_another(observed)[0]} was made by another controller, such as mpi-operator or "
        "training-operator, and the job is left to that controller. To run the job here, delete it and create it "
        f"again; set {dialect.claim} if that controller still runs"
    )
    running = conditions(
        observed.status.conditions, {Type.RUNNING: (False, Reason.RUN_BY_ANOTHER, message)}, now=observed.now
    )
    # The rest stays: it may be the other controller's.
    status = replace(observed.status, conditions={**observed.status.conditions, **running})
    reported, again = status_actions(dialect.write_status, None, observed, status)
    return Plan(tuple(reported), again)


def _made_by_another(observed: Observed) -> list[str]:
    """Return the ConfigMap and the launcher Job without our marks, and the bare pods, each by kind and name."""
    config, job = observed.mine.get(kinds.CONFIG_MAP), observed.mine.get(kinds.JOB)
    made = [] if config is None or NEEDED_KEY in table(config.body, "data") else [config]
    made += [] if job is None or digest_of(job, TEMPLATE_ANNOTATION) else [job]
    pods = sorted(f"{kinds.POD} {pod.name}" for pod in observed.bare)
    return [*(f"{live.kind} {live.name}" for live in made), *pods]


def _is_marked(observed: Observed) -> bool:
    if kinds.STATEFUL_SET in observed.mine or observed.workers:
        return True
    config, job = observed.mine.get(kinds.CONFIG_MAP), observed.mine.get(kinds.JOB)
    if job is not None and digest_of(job, TEMPLATE_ANNOTATION):
        return True
    # If there are bare pods, and of ours only the ConfigMap, the other controller was faster with all that counts.
    return config is not None and NEEDED_KEY in table(config.body, "data") and not observed.bare


def _has_started(observed: Observed) -> bool:
    """Whether a launcher pod exists or existed, by the pods, the launcher Job's status or the job's status."""
    name = object_name(kinds.JOB, observed.owner.key.name)
    if observed.launchers or observed.previous_launchers or any(pod.name == name for pod in observed.bare):
        return True
    job, status = observed.mine.get(kinds.JOB), observed.status
    if job is not None and any(number(job.status, count) for count in _COUNTS):
        return True
    return status.launcher != Counts() or status.is_true(Type.RUNNING) or status.is_true(Type.RESTARTING)
