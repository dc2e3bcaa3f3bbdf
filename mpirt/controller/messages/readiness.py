"""
The readiness of the workers: how many are Ready, and why the others are not.

Owns: the count that decides when a launcher is created, and the messages about workers that are not Ready, or that
can't be created.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mpirt.controller.manifests.workers import pod_shape
from mpirt.controller.messages.causes import listed, trouble, whose
from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION
from mpirt.controller.model.roster import Roster
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import (
    Live,
    Observed,
    digest_of,
    is_behind,
    is_leftover,
    is_of_revision,
    names_taken,
)
from mpirt.controller.observed.pods import Pod, why_not_created


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a job from being acted on, or a worker from being created."""

    reason: Reason
    message: str


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
    pods, troubles = observed.workers_by_name, []
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
    stuck = blocked(spec, roster, observed)
    others = [name for name in roster.staying if name not in stuck]
    troubles = list(_troubles(spec, roster, observed, others))
    wanted = len(roster.staying)
    return Readiness(len(others) - len(troubles), wanted, (*blocked_text(stuck), *troubles))


def _troubles(spec: JobSpec, roster: Roster, observed: Observed, names: Sequence[str]) -> Iterator[str]:
    pods, there = observed.workers_by_name, {one.name for one in observed.strangers}
    for name in names:
        if name in pods:
            if found := trouble(pods[name], spec.workers.template.main):
                yield found
        elif name not in roster.pending:
            yield f"{name} was deleted"
        elif name in there:
            yield f"{name} is waiting for the previous pod of this name to terminate"
        else:
            yield f"{name} does not exist yet"


def blocked(spec: JobSpec, roster: Roster, observed: Observed) -> dict[str, Obstacle]:
    """Return the workers that can't be created before something else changes, each with the reason."""
    strangers = {one.name: one for one in observed.strangers if not is_leftover(one, observed)}
    refused = {one.digest: one.message for one in observed.rejections}
    taken = names_taken(observed)
    found = {}
    for name in roster.awaited:
        if name in strangers:
            why = f"pod {name} exists and {whose(strangers[name].owner_name)}"
            found[name] = Obstacle(Reason.EXISTS, why)
        elif name not in taken and (message := refused.get(pod_shape(spec, name, roster))):
            found[name] = Obstacle(Reason.REFUSED, message)
    return found


def blocked_text(found: Mapping[str, Obstacle]) -> list[str]:
    """Return a sentence for each reason."""
    names: dict[str, list[str]] = {}
    for name, one in found.items():
        names.setdefault(one.message, []).append(name)
    return [f"{_first(of)} can't be created: {why}" for why, of in names.items()]


def _first(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


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
