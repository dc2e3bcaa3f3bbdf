"""
The cache of the cluster's objects, by job, filled by informers and by our own writes.

Owns: which of two versions of an object is newer, and finding all objects that concern a job; how long a departed
pod is remembered, and how a launcher Job was when its deletion was requested. Uses the lock that it is given; no
I/O.

A StatefulSet deletes a failed pod and creates another of the same name within milliseconds: the next reconcile
finds a healthy pod, and no cause of the trouble. What ends during a deletion may have been ended by it: a launcher
may answer the signal with code 0.

The answer to a write of ours is stored like a watch event, so that the next plan sees the change before the watch
delivers it. Resource versions are numbers and compared as such.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt import podobjects
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import earliest
from mpirt.controller.model.reading import Body, table, text, uid_of, version_of
from mpirt.controller.model.spec import JobKey, Settings
from mpirt.controller.observed.facts import end_of
from mpirt.controller.observed.nodes import Nodes, Signal
from mpirt.controller.observed.observe import job_key
from mpirt.controller.observed.pods import event_job, involved, with_cause
from mpirt.controller.observed.slim import slim

# The answer to a write takes seconds to arrive; in that time a cluster deletes some thousands of pods at most.
_REMEMBERED_REMOVALS = 10_000

# Long enough for two attempts to write its end into the job's status, up to 15 s apart. Then the status keeps it.
REMEMBERED = timedelta(seconds=30)

_Place = tuple[str, str, str]
"""Kind, namespace, name."""


class Departed:
    """The last state of departed pods, in the order in which they went."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._gone: deque[tuple[JobKey, Body, datetime]] = deque()

    def add(self, key: JobKey, body: Body) -> None:
        """Remember a job's pod that is gone now."""
        now = self._clock()
        self._forget_old(now)
        self._gone.append((key, body, now))

    def of(self, key: JobKey, now: datetime) -> list[tuple[Body, datetime]]:
        """Return a job's departed pods, each with the time at which it was gone."""
        self._forget_old(now)
        return [(body, at) for owner, body, at in self._gone if owner == key]

    def forget(self, key: JobKey) -> None:
        """Forget the pods of a job that is gone."""
        kept = [each for each in self._gone if each[0] != key]
        if len(kept) != len(self._gone):
            self._gone = deque(kept)

    def _forget_old(self, now: datetime) -> None:
        while self._gone and self._gone[0][2] + REMEMBERED <= now:
            self._gone.popleft()


class GoneJobs:
    """The last launcher Job of each job that has none, or one that is being deleted."""

    def __init__(self) -> None:
        self._gone: dict[JobKey, Body] = {}

    def of(self, key: JobKey) -> list[Body]:
        """Return the Job, if it is known to be deleted: empty if it is unknown how it was before."""
        return [self._gone[key]] if key in self._gone else []

    def put(self, key: JobKey, before: Body | None, now: Body) -> None:
        """A Job was created or changed; `before`: as it was known, if it was."""
        if not _is_deleted(now):
            self._gone.pop(key, None)
        elif before is None or uid_of(before) != uid_of(now):
            self._gone[key] = {} if end_of(now) else now
        elif not _is_deleted(before):
            self._gone[key] = before

    def removed(self, key: JobKey, before: Body, last: Body) -> None:
        """A Job is gone; `before`: as it was known, `last`: as the API server had it in the end."""
        if not _is_deleted(before):
            self._gone[key] = before if _is_deleted(last) else last

    def miss(self, key: JobKey) -> None:
        """There is no Job, and no watch has reported its deletion."""
        self._gone.setdefault(key, {})

    def forget(self, key: JobKey) -> None:
        """Forget the launcher Job of a job that is gone."""
        self._gone.pop(key, None)


def _is_deleted(body: Body) -> bool:
    return "deletionTimestamp" in table(body, "metadata")


class Store:
    """All cached objects. Callers must not modify what they get."""

    def __init__(
        self,
        job_kinds: Iterable[str],
        *,
        clock: Callable[[], datetime],
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self._job_kinds = frozenset(job_kinds)
        self._lock = lock if lock is not None else contextlib.nullcontext()
        self._jobs: dict[JobKey, dict[str, dict[str, Body]]] = {}
        self._of: dict[_Place, JobKey] = {}
        # Uids of objects that we have deleted: an event that was under way must not bring one back.
        self._deleted: dict[str, str] = {}
        # Uids of objects that watches reported as gone, with the version: nor must a late answer to our write.
        self._removed: OrderedDict[str, int] = OrderedDict()
        # Objects that no watch delivers, each until a given time.
        self._lent: dict[JobKey, dict[_Place, tuple[Body, datetime]]] = {}
        self._gone_jobs = GoneJobs()
        self._departed = Departed(clock)
        self._nodes = Nodes()

    # -- from informers -------------------------------------------------------------------------------------------

    def replace(self, kind: str, bodies: Iterable[Body], version: str) -> set[JobKey]:
        """Take a list of all objects of a kind, slimmed, as of `version`. Return the jobs that have changed."""
        with self._lock:
            if kind == kinds.NODE:
                return self._on_nodes(lambda: self._nodes.replace(bodies))
            fresh = {_place(kind, body): body for body in bodies}
            changed: set[JobKey] = set()
            for place in [place for place in self._of if place[0] == kind and place not in fresh]:
                # An object newer than the list was written by us while the list was made.
                if _number(version_of(self._at(place))) <= _number(version):
                    changed.add(self._lose(place))
            for uid in [uid for uid, deleted in self._deleted.items() if deleted == kind]:
                del self._deleted[uid]
            for body in fresh.values():
                changed |= self._put(kind, body)
            return changed

    def put(self, kind: str, body: Body) -> set[JobKey]:
        """Store an object that was created or changed. Return the jobs that it concerns; none if it was known."""
        with self._lock:
            if kind == kinds.NODE:
                return self._on_nodes(lambda: self._nodes.put(body))
            return self._put(kind, slim(kind, body))

    def remove(self, kind: str, body: Body) -> set[JobKey]:
        """Drop an object that is gone or has lost our labels. Return the jobs that it concerns; none if known."""
        with self._lock:
            if kind == kinds.NODE:
                return self._on_nodes(lambda: self._nodes.remove(body))
            place, uid = _place(kind, body), uid_of(body)
            self._deleted.pop(uid, None)
            self._removed[uid] = _number(version_of(body))
            if len(self._removed) > _REMEMBERED_REMOVALS:
                self._removed.popitem(last=False)
            if place not in self._of or uid_of(self._at(place)) != uid:
                return set()
            if kind == kinds.JOB:
                self._gone_jobs.removed(self._of[place], self._at(place), slim(kind, body))
            return {self._lose(place)}

    def lose(self, kind: str) -> set[JobKey]:
        """Note that a kind can't be read. Return the jobs that this concerns: all, if it is news about nodes."""
        with self._lock:
            if kind != kinds.NODE or not self._nodes.are_read:
                return set()
            self._nodes.lose()
            return set(self._jobs)

    # -- from our own requests ------------------------------------------------------------------------------------

    def forget(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Drop an object that we have deleted and that is gone."""
        with self._lock:
            place = (kind, namespace, name)
            if place in self._of and uid_of(self._at(place)) == uid:
                self._lose(place)
                self._deleted[uid] = kind

    def lend(self, key: JobKey, kind: str, body: Body, until: datetime) -> bool:
        """
        Keep an object in a job's way that no watch delivers, because it lacks our labels or the job's own.

        Return whether it is news: this version of the object was not kept yet.
        """
        with self._lock:
            lent, place = self._lent.setdefault(key, {}), _place(kind, body)
            before = lent.get(place)
            lent[place] = (slim(kind, body), until)
            return before is None or version_of(before[0]) != version_of(body)

    def miss_launcher_job(self, key: JobKey) -> None:
        """Note that there is no launcher Job, as the API server says, and that no watch has reported why."""
        with self._lock:
            self._gone_jobs.miss(key)

    def forget_job(self, key: JobKey) -> None:
        """Drop what no watch removes of a job that is gone."""
        with self._lock:
            self._lent.pop(key, None)
            self._gone_jobs.forget(key)
            self._departed.forget(key)

    def take_back(self, key: JobKey, kind: str, name: str) -> None:
        """Drop a lent object that was deleted, or will be: it is out of date."""
        with self._lock:
            self._lent.get(key, {}).pop((kind, key.namespace, name), None)

    # -- for plans ------------------------------------------------------------------------------------------------

    def job(self, key: JobKey) -> Body | None:
        """Return the job object; None if it is not known."""
        with self._lock:
            return self._jobs.get(key, {}).get(key.kind, {}).get(key.name)

    def jobs(self) -> list[JobKey]:
        """Return the keys of all job objects."""
        with self._lock:
            return [key for key, objects in self._jobs.items() if key.name in objects.get(key.kind, {})]

    def around(self, key: JobKey, now: datetime) -> Mapping[str, list[Body]]:
        """Return all objects that concern a job, by kind."""
        with self._lock:
            found = {kind: list(objects.values()) for kind, objects in self._jobs.get(key, {}).items()}
            for kind, body in self._lent_to(key, now):
                found.setdefault(kind, []).append(body)
            if gone := self._gone_jobs.of(key):
                found[kinds.GONE_JOB] = gone
            return found

    def departed(self, key: JobKey, now: datetime) -> list[tuple[Body, datetime]]:
        """Return the job's departed pods, each with the time at which it was gone."""
        with self._lock:
            return self._departed.of(key, now)

    def going_nodes(self) -> Mapping[str, Signal] | None:
        """Return the nodes that are about to go, with their signals; None if nodes can't be read."""
        with self._lock:
            return self._nodes.signals()

    def settings(self, general: Settings) -> Settings:
        """Return the settings, with what the nodes say."""
        with self._lock:
            why_copied, architectures = self._nodes.why_no_image_volumes(), self._nodes.architectures
            return replace(general, why_copied=why_copied, architectures=architectures)

    def lent_until(self, key: JobKey, now: datetime) -> datetime | None:
        """Return when the first object lent to a job expires, so that it is read again; None if there is none."""
        with self._lock:
            return earliest(*(until for _, until in self._lent.get(key, {}).values() if now < until))

    def names(self, kind: str) -> list[tuple[str, str]]:
        """Return namespace and name of all objects of a kind."""
        with self._lock:
            return [(namespace, name) for known, namespace, name in self._of if known == kind]

    def _on_nodes(self, take: Callable[[], set[str]]) -> set[JobKey]:
        """Take news of nodes. Return the jobs that they concern: all, or those with pods on certain nodes."""
        before = self._nodes.are_read, self._nodes.architectures
        nodes = take()
        if before != (self._nodes.are_read, self._nodes.architectures):
            return set(self._jobs)
        if not nodes:
            return set()
        return {
            key
            for key, objects in self._jobs.items()
            if any(text(table(pod, "spec"), "nodeName") in nodes for pod in objects.get(kinds.POD, {}).values())
        }

    def _lent_to(self, key: JobKey, now: datetime) -> Iterator[tuple[str, Body]]:
        lent = self._lent.pop(key, {})
        # An object that a watch delivers as another job's is in the way as well: its label was changed.
        held = {place: each for place, each in lent.items() if now < each[1] and self._of.get(place) != key}
        if held:
            self._lent[key] = held
        for place, (body, _) in held.items():
            yield place[0], body

    def _put(self, kind: str, body: Body) -> set[JobKey]:
        place, key = _place(kind, body), self._key(kind, body)
        known = self._of.get(place)
        if uid_of(body) in self._deleted or _number(version_of(body)) <= self._removed.get(uid_of(body), -1):
            return set()
        if known is not None and self._is_known(place, body):
            return set()
        changed = set()
        if kind == kinds.JOB and key is not None:
            self._gone_jobs.put(key, self._at(place) if known == key else None, body)
        if known is not None:
            is_another = uid_of(self._at(place)) != uid_of(body)
            if kind == kinds.POD and not is_another:
                body = with_cause(self._at(place), body)
            changed.add(self._lose(place) if is_another else self._drop(place))
        if key is None:
            return changed
        self._of[place] = key
        self._jobs.setdefault(key, {}).setdefault(kind, {})[place[2]] = body
        return {*changed, key}

    def _is_known(self, place: _Place, body: Body) -> bool:
        """Whether the cached object is newer, or the same one in the same API version: fields may differ."""
        known = self._at(place)
        ahead = _number(version_of(known)) - _number(version_of(body))
        is_another_version = place[0] in self._job_kinds and known.get("apiVersion") != body.get("apiVersion")
        return ahead >= 0 and not (ahead == 0 and is_another_version)

    def _key(self, kind: str, body: Body) -> JobKey | None:
        if kind in (kinds.EVENT, kinds.EVICTION):
            return self._of.get(involved(body)) or event_job(body)
        _, namespace, name = _place(kind, body)
        if kind in self._job_kinds:
            return JobKey(kind, namespace, name)
        if kind in kinds.SCALERS:
            name = text(table(body, "spec", "selector"), "name")
            return JobKey(kinds.TRAINING_JOB, namespace, name) if name else None
        owner = podobjects.controller(table(body, "metadata"))
        if text(owner, "kind") in self._job_kinds:
            return JobKey(text(owner, "kind"), namespace, text(owner, "name"))
        return job_key(body)

    def _at(self, place: _Place) -> Body:
        return self._jobs[self._of[place]][place[0]][place[2]]

    def _lose(self, place: _Place) -> JobKey:
        """Drop an object that is gone; a pod becomes a departed one."""
        if place[0] == kinds.POD:
            self._departed.add(self._of[place], self._at(place))
        return self._drop(place)

    def _drop(self, place: _Place) -> JobKey:
        kind, _, name = place
        key = self._of.pop(place)
        objects = self._jobs[key]
        del objects[kind][name]
        if not objects[kind]:
            del objects[kind]
        if not objects:
            del self._jobs[key]
        return key


def _place(kind: str, body: Body) -> _Place:
    metadata = table(body, "metadata")
    return kind, text(metadata, "namespace"), text(metadata, "name")


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
