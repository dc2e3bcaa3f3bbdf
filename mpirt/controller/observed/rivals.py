"""
Whether a job has a rival: another controller, such as mpi-operator or training-operator, that works on it.

Owns: telling the objects of a rival from ours, and whether it has started a launcher. Decides nothing.

A rival's objects belong to the job as well and have the same names. Ours are recognised by marks: only we create a
StatefulSet; our ConfigMap has an entry of its own, our launcher Job an annotation. Every controller creates the
ConfigMap first, so whoever created it has begun the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import Enum, auto

from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Counts, Type
from mpirt.controller.model.objectnames import NEEDED_KEY, TEMPLATE_ANNOTATION, object_name
from mpirt.controller.model.reading import moment, number, table
from mpirt.controller.observed.facts import is_finished
from mpirt.controller.observed.observe import Live, Observed, digest_of

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


class Rival(Enum):
    """How far another controller has come with a job."""

    NONE = auto()
    BEGAN = auto()
    """It has created objects, but started no launcher."""
    RUNS = auto()
    """It runs the job, or has run it to its end."""


def rival(observed: Observed) -> Rival:
    """Return how far another controller has come with the job."""
    if _is_marked(observed):
        return Rival.NONE
    if is_finished(observed.status):
        # Only we write attempts into a status: if there are any, the run was ours, whatever objects are left.
        return Rival.RUNS if observed.status.history is None else Rival.NONE
    if not made_by_another(observed):
        return Rival.NONE
    return Rival.RUNS if _has_started(observed) else Rival.BEGAN


def is_run_by_another(observed: Observed) -> bool:
    """
    Whether the job must be left alone: another controller runs it, has run it, or may start it at any moment.

    No other one starts a job that names us as its manager.
    """
    found = rival(observed)
    return found is Rival.RUNS or (found is Rival.BEGAN and not observed.claimed)


def made_by_another(observed: Observed) -> list[str]:
    """Return the known objects that another controller has created, each by kind and name."""
    objects = [f"{live.kind} {live.name}" for live in _unmarked(observed)]
    return [*objects, *sorted(f"{kinds.POD} {pod.name}" for pod in observed.bare)]


def last_made(observed: Observed) -> datetime | None:
    """Return when the last of them was created; if none says so, when the job was."""
    times = [
        *(moment(table(live.body, "metadata"), "creationTimestamp") for live in _unmarked(observed)),
        *(pod.created for pod in observed.bare),
        observed.created,
    ]
    return max((at for at in times if at is not None), default=None)


def _unmarked(observed: Observed) -> Iterator[Live]:
    """Yield the job's ConfigMap and launcher Job, if they exist without our marks."""
    config, job = observed.mine.get(kinds.CONFIG_MAP), observed.mine.get(kinds.JOB)
    if config is not None and not _has_entry(config):
        yield config
    if job is not None and not digest_of(job, TEMPLATE_ANNOTATION):
        yield job


def _is_marked(observed: Observed) -> bool:
    config, job = observed.mine.get(kinds.CONFIG_MAP), observed.mine.get(kinds.JOB)
    if kinds.STATEFUL_SET in observed.mine or observed.workers:
        return True
    if job is not None and digest_of(job, TEMPLATE_ANNOTATION):
        return True
    # If there are bare pods, and of ours only the ConfigMap, the other controller was faster with all that counts.
    return config is not None and _has_entry(config) and not observed.bare


def _has_entry(config: Live) -> bool:
    return NEEDED_KEY in table(config.body, "data")


def _has_started(observed: Observed) -> bool:
    """Whether a launcher pod exists or existed, by the pods, the launcher Job's status or the job's status."""
    name = object_name(kinds.JOB, observed.owner.key.name)
    if observed.launchers or observed.previous_launchers or any(pod.name == name for pod in observed.bare):
        return True
    job, status = observed.mine.get(kinds.JOB), observed.status
    if job is not None and any(number(table(job.body, "status"), count) for count in _COUNTS):
        return True
    return status.launcher != Counts() or status.is_true(Type.RUNNING) or status.is_true(Type.RESTARTING)
