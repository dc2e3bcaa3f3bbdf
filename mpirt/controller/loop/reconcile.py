"""
The loop: a key out of the queue, a plan for it, the plan carried out, and when to look again.

Owns: what becomes of an outcome. What is to be done is decide.py's, how it is done is cluster/'s; both are
handed in, and so are the clock and the leave to act.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Protocol

from mpirt.controller.decisions.decide import decide
from mpirt.controller.dialects.base import Dialect
from mpirt.controller.loop.rejections import Refusals
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete, Patch, Plan, Refusal, WriteStatus, earliest
from mpirt.controller.model.objectnames import object_name
from mpirt.controller.model.outcomes import Done, Exists, Failed, Outcome, Refused
from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import JobKey, Settings
from mpirt.controller.monitoring.logs import Log
from mpirt.controller.observed.store import Store

# How long an object is believed to stand in the way before it is looked at again.
_LENT = timedelta(seconds=30)


class Cluster(Protocol):
    """What carries actions out."""

    def carry_out(self, action: Action, key: JobKey) -> Outcome:
        """Do it for the job, in its namespace."""

    def read(self, kind: str, namespace: str, name: str) -> Body | None:
        """One object as it is now; None if that can't be said."""


class Witness(Protocol):
    """What wants to know of what was done."""

    def acted(self, action: Action, came: Outcome) -> None:
        """An action was carried out, or not."""


class Result(Enum):
    """How a look at a job ended."""

    SETTLED = auto()
    """Nothing was to be done."""
    CHANGED = auto()
    """Something was done, or learnt: what follows from it?"""
    FAILED = auto()
    """Something could not be done."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The result, and when to look again if nothing happens before."""

    result: Result
    again: datetime | None = None


class Reconciler:
    """Makes the cluster what the jobs say. One thread at a time for each job."""

    def __init__(
        self,
        dialect: Dialect,
        settings: Settings,
        *,
        store: Store,
        cluster: Cluster,
        log: Log,
        witness: Witness,
        clock: Callable[[], datetime],
        heard: Callable[[], datetime],
        may_act: Callable[[], bool],
    ) -> None:
        self._dialect = dialect
        self._settings = settings
        self._store = store
        self._cluster = cluster
        self._log = log
        self._witness = witness
        self._clock = clock
        self._heard = heard
        self._may_act = may_act
        self._refusals = Refusals()

    def look(self, key: JobKey) -> Turn:
        """Look at a job, and do what is to be done now."""
        body, now = self._store.job(key), self._clock()
        if body is None:
            self._refusals.forget(key)
            return Turn(Result.SETTLED)
        plan = decide(
            self._dialect,
            body,
            self._store.around(key, now),
            self._refusals.of(key, now),
            vanished=self._store.vanished(key, now),
            settings=self._settings,
            now=now,
            heard=self._heard(),
        )
        result = self._execute(plan, key)
        return Turn(result, earliest(plan.again, self._refusals.next(key, now), self._store.lent_until(key, now)))

    def _execute(self, plan: Plan, key: JobKey) -> Result:
        result = Result.CHANGED if plan.actions else Result.SETTLED
        for action in plan.actions:
            if not self._may_act():
                return Result.FAILED
            came = self._cluster.carry_out(action, key)
            self._tell(action, key, came)
            if isinstance(came, Done):
                self._remember_done(action, key, came)
            elif _goes_without(action, came):
                result = Result.FAILED
            else:
                return self._stopped(action, key, came)
        return result

    def _stopped(self, action: Action, key: JobKey, came: Outcome) -> Result:
        match came:
            case Exists():
                return self._show_what_exists(action, key)
            case Refused():
                return self._remember_refusal(action, key, came)
            case Failed(answered=True) if isinstance(action, Create | Patch) and action.digest:
                refusal = Refusal(action.kind, action.digest, came.message, final=False)
                self._refusals.failed(key, refusal, self._clock())
        return Result.FAILED

    def _remember_done(self, action: Action, key: JobKey, came: Done) -> None:
        kind = self._kind(action)
        if isinstance(action, Create | Patch) and action.digest:
            self._refusals.accepted(key, kind, action.digest)
        if came.body is not None:
            self._store.put(kind, came.body)
        if isinstance(action, Delete):
            self._store.take_back(key, kind, action.name)
        if came.body is None and isinstance(action, Delete):
            self._store.forget(kind, key.namespace, action.name, action.uid)

    def _show_what_exists(self, action: Action, key: JobKey) -> Result:
        if not isinstance(action, Create):
            return Result.FAILED
        found = self._cluster.read(action.kind, key.namespace, action.name)
        if found is None:
            return Result.FAILED
        self._store.lend(key, action.kind, found, self._clock() + _LENT)
        if action.kind == kinds.CONFIG_MAP:
            self._show_launcher_job(key)
        return Result.CHANGED

    def _show_launcher_job(self, key: JobKey) -> None:
        """What another controller has made has no labels of ours; its launcher Job counts from the beginning."""
        found = self._cluster.read(kinds.JOB, key.namespace, object_name(kinds.JOB, key.name))
        if found is not None:
            self._store.lend(key, kinds.JOB, found, self._clock() + _LENT)

    def _remember_refusal(self, action: Action, key: JobKey, came: Refused) -> Result:
        if not isinstance(action, Create | Patch) or not action.digest:
            return Result.FAILED
        refusal = Refusal(action.kind, action.digest, came.message, final=came.final)
        self._refusals.remember(key, refusal, self._clock())
        return Result.CHANGED

    def _kind(self, action: Action) -> str:
        return self._dialect.resource.kind if isinstance(action, WriteStatus) else action.kind

    def _tell(self, action: Action, key: JobKey, came: Outcome) -> None:
        self._witness.acted(action, came)
        verb, name = type(action).__name__.lower(), key.name if isinstance(action, WriteStatus) else action.name
        about = {"job": str(key), "action": verb, "kind": self._kind(action), "name": name}
        match came:
            case Done():
                self._log.info(action.why, **about)
            case Failed(message=message) | Refused(message=message):
                self._log.warning(action.why, **about, outcome=type(came).__name__.lower(), error=message)
            case _:
                self._log.info(action.why, **about, outcome=type(came).__name__.lower())


def _goes_without(action: Action, came: Outcome) -> bool:
    """Whether the rest of a plan can be done without it: its status, for one, is true all the same."""
    match action:
        case Delete():
            return isinstance(came, Refused) or (isinstance(came, Failed) and came.answered)
        case Create(once=True):
            return isinstance(came, Refused)
        case _:
            return False
