"""
Reconciles one job: makes a plan, carries it out, and says when to look again.

Owns: the reaction to each outcome, and how much is done in one turn. A planner makes the plan; cluster/ carries
out its actions and is passed in, as are the clock and the permission to write. What a plan shows to be refused or
in the way is planned with at once, so that the job reports it now.

A plan may have thousands of actions. It is cut short after some time, so that other jobs have their turns, and as
soon as the job's spec is edited, so that a job that is suspended creates no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Protocol
from zlib import crc32

from mpirt.controller.decisions.decide import Planner
from mpirt.controller.loop.acceptances import Acceptances
from mpirt.controller.loop.backoffs import EditLimits, Rejections
from mpirt.controller.messages.events import REPORTED_EDITS, edit_undone
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import (
    Action,
    Answer,
    Conflict,
    Create,
    Delete,
    Done,
    Exists,
    Find,
    Missing,
    Outcome,
    Patch,
    Question,
    Refused,
    Rejection,
    Unavailable,
    WriteStatus,
    earliest,
)
from mpirt.controller.model.objectnames import object_name
from mpirt.controller.model.reading import Body, number, table, text, version_of
from mpirt.controller.model.spec import JobKey, Settings
from mpirt.controller.monitoring.logs import Log
from mpirt.controller.observed.observe import Circumstances
from mpirt.controller.observed.store import Store

# How long an object that is in the way, and that no watch reports, is kept before it is read again.
_LENT = timedelta(seconds=30)
# How many plans a turn makes at most. Each shows something that the one before did not know.
_PLANS_AT_ONCE = 100
# How long plans are made in one turn, and actions of a plan begun. After that only what has happened is reported.
_TURN = timedelta(seconds=2)
# A resync in case an event or a date was missed.
_RESYNC_WITHIN, _RESYNC_SPREAD = timedelta(minutes=10), timedelta(minutes=3)


class Cluster(Protocol):
    """Carries out actions."""

    def carry_out(self, action: Action, key: JobKey) -> Outcome:
        """Carry out the action in the job's namespace, and return the outcome."""

    def read(self, kind: str, namespace: str, name: str) -> Body | None:
        """Read an object from the API server; None if it can't be read or does not exist."""


class PodQuestions(Protocol):
    """Asks worker pods whether they are in use, in threads of its own."""

    def ask(self, key: JobKey, asked: Iterable[Question]) -> datetime | None:
        """Ask these pods and no others. Return when one that was asked just now may be asked again, if any."""

    def answers(self, key: JobKey) -> Mapping[str, Answer]:
        """Return what the job's pods have answered last, by their uids."""

    def forget(self, key: JobKey) -> None:
        """Drop the answers of a job that is gone."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a reconciler acts through, and where it reports."""

    cluster: Cluster
    questions: PodQuestions
    log: Log
    count: Callable[[Action, Outcome], None]
    """Counts an action that was attempted, with its outcome."""


@dataclass(frozen=True, slots=True)
class Leader:
    """The time, and whether this process leads."""

    clock: Callable[[], datetime]
    heard: Callable[[], datetime]
    """Since when the API server has answered without a break."""
    may_act: Callable[[], bool]
    """Whether it has the permission to write: the lease is held."""


class Result(Enum):
    """How the reconciliation of a job ended."""

    SETTLED = auto()
    """There was nothing to do."""
    CHANGED = auto()
    """Something was done or learnt: the job needs a new plan."""
    CUT_SHORT = auto()
    """The plan has more actions than fit into one turn: the job needs another turn, but others come first."""
    FAILED = auto()
    """Something could not be done: retry with back-off."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The result, and when to look again if nothing happens before."""

    result: Result
    again: datetime | None = None
    retry_after: float = 0.0
    """Seconds that the API server asks to wait (Retry-After)."""
    is_superseded: bool = False
    """Whether the plan stopped because something is refused or in the way: the next plan reports it."""
    ends: bool = True
    """Whether the rest of the plan is left out."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The objects that a plan was made from."""

    key: JobKey
    objects: Mapping[str, Sequence[Body]]
    """By kind, the job itself included."""

    def version(self, kind: str, name: str) -> str:
        """Return the resourceVersion of the object with that kind and name; empty if there was none."""
        metadata = (table(body, "metadata") for body in self.objects.get(kind, ()))
        return next((text(each, "resourceVersion") for each in metadata if text(each, "name") == name), "")


class Reconciler:
    """Brings the cluster to the desired state of the jobs. Not for several threads at once on the same job."""

    def __init__(
        self, planners: Iterable[Planner], settings: Settings, store: Store, access: Access, leader: Leader
    ) -> None:
        self._planners = {one.kind.resource.kind: one for one in planners}
        self._settings = settings
        self._store = store
        self._cluster, self._questions = access.cluster, access.questions
        self._log, self._count = access.log, access.count
        self._leader, self._clock = leader, leader.clock
        self._rejections = Rejections()
        self._acceptances = Acceptances()
        self._edits = EditLimits()
        # The uids of the jobs as last reconciled: a new job may have taken the name since.
        self._uids: dict[JobKey, str] = {}

    def look(self, key: JobKey) -> Turn:
        """Make a plan for the job, and carry out what is due now."""
        end = self._clock() + _TURN
        for _ in range(_PLANS_AT_ONCE):
            turn = self._turn(key)
            if not turn.is_superseded or end <= self._clock():
                break
        return turn

    def _turn(self, key: JobKey) -> Turn:
        """Make one plan and carry it out. If it is superseded, another one is made at once."""
        body, now = self._store.job(key), self._clock()
        self._forget_all_but(key, body)
        if body is None:
            return Turn(Result.SETTLED)
        seen = _Seen(key, {**self._store.around(key, now), key.kind: [body]})
        around = Circumstances(
            self._store.settings(self._settings),
            now,
            departed=self._store.departed(key, now),
            accepted=self._acceptances.of(key.namespace, now),
            answers=self._questions.answers(key),
            nodes=self._store.going_nodes(),
            heard=self._leader.heard(),
        )
        plan = self._planners[key.kind].decide(body, seen.objects, self._rejections.of(key, now), around)
        # A patch that undoes edits too often has to wait.
        delays = [
            self._edits.not_before(key, action, now) if isinstance(action, Patch) else None
            for action in plan.actions
        ]
        due = [action for action, delay in zip(plan.actions, delays, strict=True) if delay is None]
        done = self._execute(due, seen)
        asked_again = self._questions.ask(key, plan.questions)
        dates = (plan.again, *delays, self._rejections.next(key, now), self._store.lent_until(key, now))
        return replace(done, again=earliest(*dates, asked_again, now + resync(key)))

    def _forget_all_but(self, key: JobKey, body: Body | None) -> None:
        """Drop what is remembered about the job with this name, unless it still has the same uid."""
        uid = text(table(body or {}, "metadata"), "uid")
        if body is None or uid != self._uids.get(key, uid):
            self._rejections.forget(key)
            self._edits.forget(key)
            self._questions.forget(key)
            self._store.forget_job(key)
        if uid:
            self._uids[key] = uid
        else:
            self._uids.pop(key, None)

    def _execute(self, actions: Sequence[Action], seen: _Seen) -> Turn:
        """
        Carry out the actions in order.

        A failed action holds back only the actions that depend on it: the status is still true. The rest is left
        out when the lease is lost, the API server is unavailable, or a new plan would know more.
        """
        result = Result.CHANGED if actions else Result.SETTLED
        is_held_back, end = False, self._clock() + _TURN
        for action in actions:
            if is_held_back and not _stands_alone(action):
                continue
            if end <= self._clock() and not _reports(action):
                result = Result.CUT_SHORT if result is Result.CHANGED else result
                continue
            failed = self._try(action, seen)
            if failed is not None and failed.ends:
                return failed
            if failed is not None:
                result = failed.result
                # Later actions depend on this one: objects are created in the order of their dependencies.
                is_held_back |= isinstance(action, Create | Patch) and not _stands_alone(action)
        return Turn(result)

    def _try(self, action: Action, seen: _Seen) -> Turn | None:
        """Carry out one action. Return what follows if that fails; None if it is done."""
        if not self._leader.may_act():
            return Turn(Result.FAILED)
        if self._is_edited(seen):
            return Turn(Result.CHANGED)
        event = self._edit_event(action, seen)
        if isinstance(action, WriteStatus):
            # Tied to the resourceVersion that the plan was made for.
            action = replace(action, version=seen.version(action.kind, action.name))
        came = self._carry_out(action, seen.key)
        if isinstance(came, Done):
            self._remember_done(action, seen.key, came)
            if event is not None:
                self._carry_out(event, seen.key)
            return None
        has_learnt = self._has_learnt(action, seen, came)
        if isinstance(came, Unavailable) and (came.retry_after or not came.answered):
            return Turn(Result.FAILED, retry_after=came.retry_after)
        if has_learnt:
            # After a conflict the queue decides when: the other client may change the object again and again.
            return Turn(Result.CHANGED, is_superseded=not isinstance(came, Conflict))
        return Turn(Result.FAILED, ends=False)

    def _is_edited(self, seen: _Seen) -> bool:
        """Whether the job was edited, or its deletion requested, since the plan was made."""
        [job] = seen.objects[seen.key.kind]
        now = self._store.job(seen.key)
        return now is None or _edition(now) != _edition(job)

    def _carry_out(self, action: Action, key: JobKey) -> Outcome:
        came = self._cluster.carry_out(action, key)
        self._tell(action, key, came)
        return came

    def _edit_event(self, action: Action, seen: _Seen) -> Create | None:
        """Return the event to create after the patch, if one is due. The patch overwrites who made the edit."""
        now = self._clock()
        if not isinstance(action, Patch) or self._edits.times(seen.key, action, now) != REPORTED_EDITS:
            return None
        found = self._cluster.read(action.kind, seen.key.namespace, action.name)
        [job] = seen.objects[seen.key.kind]
        return edit_undone(self._planners[seen.key.kind].kind.owner(job), action, found or {}, now=now)

    def _remember_done(self, action: Action, key: JobKey, came: Done) -> None:
        kind = action.kind
        if isinstance(action, Create | Patch) and action.digest:
            self._rejections.accepted(key, kind, action.digest)
            if isinstance(action, Create) and action.dry_run:
                self._acceptances.remember(key.namespace, kind, action.digest, self._clock())
            else:
                self._edits.written(key, action, self._clock())
        if isinstance(action, Find) and came.body is not None:
            self._store.lend(key, kind, came.body, self._clock() + _LENT)
        elif came.body is not None:
            self._store.put(kind, came.body)
        if isinstance(action, Delete):
            self._store.take_back(key, kind, action.name)
        if came.body is None and isinstance(action, Delete):
            self._store.forget(kind, key.namespace, action.name, action.uid)

    def _has_learnt(self, action: Action, seen: _Seen, came: Outcome) -> bool:
        """Remember what a failed action shows. Return whether the next plan will know more than this one."""
        match came:
            case Exists() if isinstance(action, Create):
                return self._has_found(action, seen.key)
            case Missing() if isinstance(action, Find):
                self._store.miss_launcher_job(seen.key)
                return True
            case Conflict(message=message) if isinstance(action, Patch | WriteStatus):
                return self._has_read(action, seen, message)
            case Refused(message=message, final=final):
                return self._is_news(action, seen.key, message, final=final)
            case Conflict(message=message) | Unavailable(message=message, answered=True):
                return self._is_news(action, seen.key, message, final=None)
        return False

    def _has_found(self, action: Create, key: JobKey) -> bool:
        found = self._cluster.read(action.kind, key.namespace, action.name)
        if found is None:
            return False
        is_news = self._store.lend(key, action.kind, found, self._clock() + _LENT)
        if action.kind == kinds.CONFIG_MAP:
            self._show_launcher_job(key)
        return is_news

    def _show_launcher_job(self, key: JobKey) -> None:
        """Read another controller's launcher Job: without our labels no watch reports it, but a plan needs it."""
        found = self._cluster.read(kinds.JOB, key.namespace, object_name(kinds.JOB, key.name))
        if found is not None:
            self._store.lend(key, kinds.JOB, found, self._clock() + _LENT)

    def _has_read(self, action: Patch | WriteStatus, seen: _Seen, message: str) -> bool:
        """Read the object. If it has not changed since the plan was made, the answer was a rejection."""
        found = self._cluster.read(action.kind, seen.key.namespace, action.name)
        if found is None:
            return False
        self._store.put(action.kind, found)
        is_another = version_of(found) != seen.version(action.kind, action.name)
        return is_another or self._is_news(action, seen.key, message, final=False)

    def _is_news(self, action: Action, key: JobKey, message: str, *, final: bool | None) -> bool:
        """Remember a rejection, or without `final` a failure that may become one. Return whether it is new."""
        if not isinstance(action, Create | Patch) or not action.digest:
            return False
        self._acceptances.drop(key.namespace, action.kind)
        rejection = Rejection(action.kind, action.digest, message, final=bool(final))
        remember = self._rejections.failed if final is None else self._rejections.remember
        return remember(key, rejection, self._clock())

    def _tell(self, action: Action, key: JobKey, came: Outcome) -> None:
        self._count(action, came)
        verb = type(action).__name__.lower()
        about = {"job": str(key), "action": verb, "kind": action.kind, "name": action.name}
        if not isinstance(came, Done):
            about["outcome"] = type(came).__name__.lower()
        if not isinstance(came, Done | Exists):
            about["error"] = came.message
        write = self._log.warning if isinstance(came, Unavailable | Refused) else self._log.info
        write(action.why, **about)


def resync(key: JobKey) -> timedelta:
    """Return after how long the job is reconciled without an event: 7 to 10 min, to spread the jobs."""
    return _RESYNC_WITHIN - _RESYNC_SPREAD * (crc32(str(key).encode()) / 2**32)


def _edition(job: Body) -> object:
    """Return what differs after an edit of the job by its user; a request to delete it is a new generation."""
    metadata = table(job, "metadata")
    return text(metadata, "uid"), number(metadata, "generation"), table(metadata, "annotations")


def _reports(action: Action) -> bool:
    """Whether the action changes nothing, but reports what has happened."""
    return isinstance(action, WriteStatus) or (isinstance(action, Create) and action.once)


def _stands_alone(action: Action) -> bool:
    """Whether the action may be carried out although one before it has failed."""
    # A launcher Job is deleted to make way for another one; a pod, because it is over or lost.
    return _reports(action) or (isinstance(action, Delete) and action.kind == kinds.POD)
