"""
The workers of a roster, as their pods show them.

Owns: which workers are alive, Ready, or gone, and which pods of others have their names. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpirt.controller.model.roster import Roster
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.observe import Live, Observed
from mpirt.controller.observed.pods import Pod


def pods_by_name(observed: Observed) -> dict[str, Pod]:
    """Return the workers' pods by their names."""
    return {pod.name: pod for pod in observed.workers}


def names_taken(observed: Observed) -> set[str]:
    """Return the names of workers that pods have, whoever owns these."""
    return {pod.name for pod in (*observed.workers, *observed.bare)} | {pod.name for pod in observed.strangers}


def is_gone(pod: Pod | None) -> bool:
    """Whether a worker whose pod was seen before has ended, or its pod does not exist any more."""
    return pod is None or pod.is_over


def is_dead(pod: Pod | None) -> bool:
    """Whether it is gone, or is being deleted."""
    return pod is None or pod.is_over or pod.deleted is not None


def is_usable(pod: Pod | None) -> bool:
    """Whether commands may be started in a worker."""
    return pod is not None and pod.is_usable


def is_outdated(pod: Pod | None, spec: JobSpec) -> bool:
    """Whether it was created from an earlier template."""
    return pod is not None and pod.template != spec.worker_digest


def is_leftover(stranger: Live, observed: Observed) -> bool:
    """Whether the pod will go by itself: it is being deleted, or belongs to an earlier job of the name."""
    owner = observed.owner
    return stranger.deleting or stranger.owner_name == f"{owner.kind} {owner.key.name}"


def left_to_job(observed: Observed) -> list[Pod]:
    """Return the workers that a finished job has kept, and whose StatefulSet is gone: they belong to the job."""
    return [pod for pod in observed.previous_workers if not pod.owner and observed.owner.uid in pod.owners]


def all_gone(names: Iterable[str], roster: Roster, observed: Observed) -> bool:
    """Whether none of these workers is left; those never created count as gone."""
    pods = pods_by_name(observed)
    return all(name in roster.pending or is_gone(pods.get(name)) for name in names)


def all_usable(names: Iterable[str], observed: Observed) -> bool:
    """Whether commands may be started in all of these workers."""
    pods = pods_by_name(observed)
    return all(is_usable(pods.get(name)) for name in names)
