"""
The roster of a job with bare worker pods: which workers it wants, and what is about to change about them.

Owns: the values, the arithmetic of names, and their form in the job's status. The roster changes only there: a
name is written down before its pod is created, and a worker is listed as leaving before anything happens to its
pod. So a controller that is killed at any moment continues where it stopped, and no number is used twice.

In the status the wanted workers are in `targetWorkers`, as et-operator has them; the rest is in `scaling`, which
only this controller writes. A field that can't be read counts as missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from mpirt.controller.model.objectnames import worker_name, worker_number
from mpirt.controller.model.reading import Body, given, moment, number, rows, table, text, texts


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


_NAMES, _REST = "targetWorkers", "scaling"
_SOURCES = frozenset(Source)


def write_roster(roster: Roster) -> dict[str, Any]:
    """Return the fields of a status that hold the roster."""
    rest = given(
        highestNumber=roster.highest,
        replicas=roster.replicas,
        pending=[*roster.pending],
        change=roster.change and _change(roster.change),
        drains=[_drain(one) for one in roster.drains],
        replaced=roster.replaced or None,
        replacedTime=roster.replaced_at,
    )
    return {_NAMES: list(roster.names), _REST: rest}


def read_roster(status: Body) -> Roster | None:
    """Return the roster in a status; None if it holds none, for example because the CRD drops the field."""
    if _REST not in status:
        return None
    rest = table(status, _REST)
    return Roster(
        names=texts(status, _NAMES),
        highest=number(rest, "highestNumber", -1),
        replicas=number(rest, "replicas"),
        pending=texts(rest, "pending"),
        change=_read_change(table(rest, "change")),
        drains=tuple(one for row in rows(rest, "drains") if (one := _read_drain(row)) is not None),
        replaced=number(rest, "replaced"),
        replaced_at=moment(rest, "replacedTime"),
    )


def _change(change: Change) -> dict[str, Any]:
    return given(
        source=str(change.source),
        since=change.since,
        name=change.name,
        uid=change.uid,
        leaving=[*change.leaving],
        joining=[*change.joining],
        timeout=change.seconds,
        force=change.force or None,
        committed=change.committed or None,
    )


def _read_change(row: Body) -> Change | None:
    source, since = text(row, "source"), moment(row, "since")
    if source not in _SOURCES or since is None:
        return None
    return Change(
        source=Source(source),
        since=since,
        name=text(row, "name"),
        uid=text(row, "uid"),
        seconds=number(row, "timeout") if "timeout" in row else None,
        force=row.get("force") is True,
        leaving=texts(row, "leaving"),
        joining=texts(row, "joining"),
        committed=row.get("committed") is True,
    )


def _drain(drain: Drain) -> dict[str, Any]:
    return given(
        worker=drain.name,
        source=str(drain.source),
        why=drain.why,
        until=drain.until,
        after=drain.after,
        committed=drain.committed or None,
    )


def _read_drain(row: Body) -> Drain | None:
    source = text(row, "source")
    if source not in _SOURCES:
        return None
    until, committed = moment(row, "until"), row.get("committed") is True
    return Drain(text(row, "worker"), Source(source), text(row, "why"), until, text(row, "after"), committed)
