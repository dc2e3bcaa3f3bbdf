"""
The roster of a job with bare worker pods: which workers it wants, and what is about to change about them.

Owns: the values, and the arithmetic of names. The roster is stored in the job's status and changes only there:
a name is written down before its pod is created, and a worker is listed as leaving before anything happens to its
pod. So a controller that is killed at any moment continues where it stopped, and no number is used twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from mpirt.controller.model.objectnames import worker_name, worker_number


class Source(StrEnum):
    """Who asked for a change of the workers."""

    SCALE_IN = "ScaleIn"
    SCALE_OUT = "ScaleOut"
    REPLICAS = "Replicas"
    """The number of replicas in the job's spec was changed: an edit, `kubectl scale`, an autoscaler."""
    TEMPLATE = "Template"
    """The workers' template was changed."""
    NODE_TAINT = "NodeTaint"
    """The node is about to go, by one of its taints."""
    NODE_CORDONED = "NodeCordoned"
    """The node is unschedulable, and the job says that its workers leave such nodes."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the set of workers; a job has one at a time."""

    source: Source
    since: datetime
    name: str = ""
    """Of the ScaleIn or ScaleOut, if one asked for it."""
    uid: str = ""
    seconds: int | None = None
    """Its time limit; None: the default of its source."""
    force: bool = False
    """Whether workers go at the time limit even if they are still in use."""
    leaving: tuple[str, ...] = ()
    joining: tuple[str, ...] = ()
    committed: bool = False
    """Whether the workers that leave go now, and nothing undoes that: none is in use, or the time is over."""

    @property
    def workers(self) -> tuple[str, ...]:
        """Those that leave, or those that join: a change has only one of both."""
        return self.leaving or self.joining

    @property
    def is_by_scaler(self) -> bool:
        return self.source in (Source.SCALE_IN, Source.SCALE_OUT)


@dataclass(frozen=True, slots=True)
class Drain:
    """A worker that leaves because of its node or its template; another one has its place among the wanted."""

    name: str
    source: Source
    why: str
    until: datetime | None
    """When the worker goes even if it is in use; None while it waits for another one, however long that takes."""
    after: str = ""
    """The worker that must be Ready first; this one stays a host until then."""
    committed: bool = False
    """Whether it goes now: it is not in use, or the time is over."""


@dataclass(frozen=True, slots=True)
class Roster:
    """The workers that a job wants."""

    names: tuple[str, ...] = ()
    """The wanted workers in the order of their numbers, those included that a change is about to remove."""
    highest: int = -1
    """The highest number ever used: a new worker gets a higher one."""
    replicas: int = 0
    """The number of replicas in the job's spec that this roster answers."""
    pending: tuple[str, ...] = ()
    """Those, and those about to join, whose pods have not been seen yet. Only these are ever created."""
    change: Change | None = None
    drains: tuple[Drain, ...] = ()
    replaced: int = 0
    """How many workers were replaced in short succession: each time the next one has to wait longer."""
    replaced_at: datetime | None = None

    @property
    def everybody(self) -> tuple[str, ...]:
        """All workers whose pods may exist: wanted, about to join, about to leave."""
        return (*self.names, *(self.change.joining if self.change else ()), *(one.name for one in self.drains))

    @property
    def removed(self) -> tuple[str, ...]:
        """The wanted workers that a change is about to remove."""
        return self.change.leaving if self.change else ()

    @property
    def awaited(self) -> tuple[str, ...]:
        """The pending workers that no change is about to remove."""
        removed = frozenset(self.removed)
        return tuple(name for name in self.pending if name not in removed)

    @property
    def leaving(self) -> tuple[str, ...]:
        """All workers that are about to leave."""
        return (*self.removed, *(one.name for one in self.drains))

    @property
    def staying(self) -> tuple[str, ...]:
        """The wanted workers that stay."""
        return tuple(name for name in self.names if name not in self.removed)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The workers that a launcher may use: those that wait for their successors are hosts, too."""
        return (*self.staying, *(one.name for one in self.drains if one.after))

    def fresh(self, job: str, count: int) -> tuple[str, ...]:
        """Return names with numbers that were never used."""
        return tuple(worker_name(job, self.highest + 1 + one) for one in range(count))

    def has_had(self, job: str, name: str) -> bool:
        """Whether a worker of the job has, or ever had, this name."""
        return worker_number(name) <= self.highest and name == worker_name(job, worker_number(name))

    def hired(self, names: tuple[str, ...]) -> Roster:
        """Return the roster with these fresh names written down: their pods may be created from now on."""
        numbers = [self.highest, *(worker_number(name) for name in names)]
        return replace(self, highest=max(numbers), pending=(*self.pending, *names))

    def seen(self, there: frozenset[str]) -> Roster:
        """Return the roster after pods with these names were seen."""
        pending = tuple(name for name in self.pending if name not in there)
        return self if pending == self.pending else replace(self, pending=pending)

    def without(self, names: tuple[str, ...]) -> Roster:
        """Return the roster without these workers."""
        return replace(
            self,
            names=tuple(name for name in self.names if name not in names),
            pending=tuple(name for name in self.pending if name not in names),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a change ended."""

    change: Change
    succeeded: bool
    message: str
