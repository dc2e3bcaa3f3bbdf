"""
The readiness of the workers: how many are Ready, and why the others are not.

Owns: the count that decides when a launcher is created, and the messages about workers that are not Ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpirt.controller.messages.sentences import listed, trouble
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION
from mpirt.controller.model.roster import Roster
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import is_behind, is_of_revision
from mpirt.controller.observed.members import pods_by_name
from mpirt.controller.observed.observe import Live, Observed, digest_of
from mpirt.controller.observed.pod_events import why_not_created
from mpirt.controller.observed.pods import Pod


@dataclass(frozen=True, slots=True)
class Readiness:
    """How many workers are Ready, and why the others are not."""

    ready: int
    wanted: int
    troubles: tuple[str, ...]

    @property
    def counted(self) -> str:
        """The count, in words."""
        return f"{self.ready} of {self.wanted} workers are Ready" if self.wanted else "the job has no workers"

    def __str__(self) -> str:
        return f"{self.counted}: {listed(list(self.troubles))}" if self.troubles else self.counted


def readiness(spec: JobSpec, observed: Observed) -> Readiness:
    """Return how many workers of the current template are Ready, and why the others are not."""
    roster = spec.workers.roster
    return _of_stateful_set(spec, observed) if roster is None else _of_bare_workers(spec, roster, observed)


def _of_stateful_set(spec: JobSpec, observed: Observed) -> Readiness:
    wanted = spec.workers.replicas
    live = observed.live(kinds.STATEFUL_SET)
    if live is None:
        return Readiness(0, wanted, ())
    if digest_of(live, TEMPLATE_ANNOTATION) != spec.worker_digest:
        return Readiness(0, wanted, ("their template is about to be changed",))
    names = spec.workers.names
    missing = _missing(names, observed, live)
    if is_behind(live) and not any(missing.values()):
        return Readiness(0, wanted, ())
    pods, troubles = pods_by_name(observed), []
    for name in names:
        if name in missing:
            troubles.append(f"{name} {missing[name] or 'does not exist yet'}")
        elif not _is_current(live, pods[name]):
            troubles.append(f"{name} is about to be replaced because its template was changed")
        elif found := trouble(pods[name], spec.workers.template.main):
            troubles.append(found)
    return Readiness(wanted - len(troubles), wanted, tuple(troubles))


def _of_bare_workers(spec: JobSpec, roster: Roster, observed: Observed) -> Readiness:
    """Return the same for workers that the controller creates itself; those that leave are not counted."""
    pods, troubles = pods_by_name(observed), []
    previous = {pod.name for pod in observed.previous_workers}
    refused = next((one.message for one in observed.rejections if one.kind == kinds.POD), "")
    for name in roster.staying:
        if name in pods:
            troubles += [found] if (found := trouble(pods[name], spec.workers.template.main)) else []
        elif name in previous:
            troubles.append(f"{name} is waiting for the previous pod of this name to terminate")
        elif name not in roster.pending:
            troubles.append(f"{name} was deleted")
        else:
            troubles.append(f"{name} can't be created: {refused}" if refused else f"{name} does not exist yet")
    wanted = len(roster.staying)
    return Readiness(wanted - len(troubles), wanted, tuple(troubles))


def _is_current(workers: Live, pod: Pod) -> bool:
    if is_behind(workers):
        return pod.template == digest_of(workers, TEMPLATE_ANNOTATION)
    return is_of_revision(workers, pod)


def _missing(names: Sequence[str], observed: Observed, workers: Live) -> dict[str, str]:
    """Return the names of the missing workers, each with the reason; empty if that is unknown."""
    there, previous = {pod.name for pod in observed.workers}, {pod.name for pod in observed.previous_workers}
    made = (*observed.workers, *observed.departed)
    return {
        name: "is waiting for the previous pod of this name to terminate"
        if name in previous
        else why_not_created(observed.failed_creates, workers.uid, made, f"Pod {name} ")
        for name in names
        if name not in there
    }
