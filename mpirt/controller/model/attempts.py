"""
A job's history: each attempt of its launcher, and the pods that died in it.

Owns: the values, how many of them are kept, and their form in the status or, if the CRD drops unknown fields, in
an annotation; a field that can't be read counts as missing. observed/history.py builds them from the observed
objects, messages/causes.py turns them into sentences.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import Any

from mpirt.controller.model.reading import Body, given, moment, number, rows, table, text

KEPT_ATTEMPTS = 5
"""How many attempts are kept. A job may have hundreds; people ask for the last ones."""
KEPT_DEATHS = 10
"""How many deaths are kept per attempt. A lost rack takes a thousand workers; the first ones show the cause."""
# The pause after the second attempt in a row that has ended within this time; it doubles with each further one, as
# far as they are kept.
_SOON = timedelta(minutes=1)
_SHORTEST_PAUSE = timedelta(seconds=10)


class How(StrEnum):
    """How a pod ended."""

    EXITED = "Exited"
    """A container exited, with the exit code in `code`."""
    EVICTED = "Evicted"
    FAILED = "Failed"
    """The pod as a whole has failed."""
    DELETED = "Deleted"
    NODE_LOST = "NodeLost"
    """Its node is unreachable, or was restarted and has lost its container."""
    GONE = "Gone"
    """The pod no longer exists, and why is unknown."""
    CUT_OFF = "CutOff"
    """mpirt-rsh could not follow its command there to the end; the code is mpirt-rsh's."""


_REPORTERS: Mapping[How, str] = {
    How.EXITED: "kubelet",
    How.EVICTED: "kubelet",
    How.FAILED: "kubelet",
    How.DELETED: "API server",
    How.NODE_LOST: "node controller",
    How.GONE: "mpirt-controller",
    How.CUT_OFF: "mpirt-rsh",
}


class Stop(StrEnum):
    """Why it does not count how an attempt has ended."""

    LAUNCHER_CHANGED = "LauncherTemplateChanged"
    WORKERS_CHANGED = "WorkerTemplateChanged"
    JOB_DELETED = "LauncherJobDeleted"
    SUSPENDED = "Suspended"
    WORKER_LOST = "WorkerLost"
    """Its launcher has ended with code 0, but a worker was lost while it ran: the attempt has failed."""


@dataclass(frozen=True, slots=True)
class PodEnd:
    """The end of one pod."""

    pod: str
    how: How
    node: str = ""
    container: str = ""
    code: int | None = None
    reason: str = ""
    """Kubernetes' reason, such as OOMKilled or PreemptionByScheduler."""
    message: str = ""
    """The node's message; for a launcher, its last lines of output."""
    at: datetime | None = None

    @property
    def reporter(self) -> str:
        """Which component has reported it: always the kubelet, if it is a container's."""
        return _REPORTERS[How.EXITED] if self.container else _REPORTERS[self.how]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One launcher pod, from its start to its end."""

    launcher: str
    """The pod's name."""
    node: str = ""
    started: datetime | None = None
    ended: PodEnd | None = None
    stopped: Stop | None = None
    deaths: tuple[PodEnd, ...] = ()
    """The first workers that died while it ran."""
    more: int = 0
    """How many more died."""
    begun: datetime | None = None
    """From when on a worker that dies is a loss: all were Ready. None before."""
    workers: str = ""
    """How many workers there were then, and a digest of their containers; empty if it was not taken."""
    created: datetime | None = field(default=None, compare=False)
    """
    When its pod was created, by the API server's clock: this distinguishes a new pod from one of a forgotten
    attempt. Not compared: it is written with other news, never for its own sake, since other operators' CRDs drop
    it.
    """


@dataclass(frozen=True, slots=True)
class Failure:
    """
    A launcher Job whose attempt has failed, though its job has not: another may follow; or though it is Complete.
    """

    job: str
    """The Job's uid."""
    count: int
    """How many attempts of the run have failed up to this one."""
    at: datetime | None = None
    """When that was found."""
    final: bool = False
    """Whether no retry is left."""
    lost: bool = False
    """Whether its launcher has ended with code 0, but a worker was lost while it ran."""


@dataclass(frozen=True, slots=True)
class History:
    """The history of a job's current run."""

    attempts: tuple[Attempt, ...] = ()
    """The last attempts, the oldest first."""
    forgotten: int = 0
    """How many earlier attempts are no longer kept."""
    rerun: str = ""
    """The value of the annotation mpirt.dev/rerun that requested this run."""
    failure: Failure | None = None
    """The last launcher Job whose attempt has failed and does not end the job by itself."""

    def next_attempt(self, now: datetime) -> datetime | None:
        """
        Return when another may follow the one that has failed, if that is later than now.

        It is the later, the more attempts in a row have ended soon.
        """
        # Whoever may write the status may have written any number of attempts, and any time.
        last = reversed(self.attempts[-KEPT_ATTEMPTS:])
        at, again = None if self.failure is None else self.failure.at, len([*takewhile(_has_ended_soon, last)]) - 1
        if at is None or again < 1:
            return None
        pause = _SHORTEST_PAUSE * 2 ** (again - 1)
        return at + pause if timedelta() <= now - at < pause else None

    def attempt_of(self, launcher: str) -> Attempt | None:
        """The one of a launcher pod."""
        return next((one for one in self.attempts if one.launcher == launcher), None)

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def is_plain(self) -> bool:
        """Whether the objects themselves still show all of it."""
        has_news = any(one.stopped or one.deaths or (one.ended and one.ended.code != 0) for one in self.attempts)
        return not has_news and not self.rerun and self.failure is None and len(self.attempts) <= 1


def read_history(body: Body) -> History | None:
    """Return the history in a status; None if it holds none, for example because the CRD drops the field."""
    if not isinstance(body.get("attempts"), list):
        return None
    attempts = tuple(_read_attempt(row) for row in rows(body, "attempts"))
    failure = _read_failure(table(body, "failedLauncher"))
    return History(attempts, number(body, "attemptsForgotten"), text(body, "rerun"), failure)


def write_history(history: History) -> dict[str, Any]:
    """Return the fields of a status that hold the history."""
    attempts = [_attempt(one) for one in history.attempts]
    rest = given(
        attemptsForgotten=history.forgotten or None,
        rerun=history.rerun,
        failedLauncher=history.failure and given(**asdict(history.failure)),
    )
    return {"attempts": attempts, **rest}


def dump_history(history: History) -> str:
    """Return the same fields as one JSON text."""
    return json.dumps(write_history(history), sort_keys=True, separators=(",", ":"))


def load_history(written: str) -> History | None:
    """Return the history in such a text; None if it holds none."""
    try:
        found = json.loads(written)
    except ValueError:
        return None
    return read_history(found) if isinstance(found, Mapping) else None


def _attempt(one: Attempt) -> dict[str, Any]:
    return given(
        launcher=one.launcher,
        node=one.node,
        creationTime=one.created,
        startTime=one.started,
        beginTime=one.begun,
        stopped=one.stopped and str(one.stopped),
        workers=one.workers,
        end=one.ended and _end(one.ended),
        deaths=[_end(death) for death in one.deaths],
        moreDeaths=one.more or None,
    )


def _has_ended_soon(one: Attempt) -> bool:
    if one.ended is None or one.stopped not in (None, Stop.WORKER_LOST):
        return False
    return one.started is None or one.ended.at is None or one.ended.at - one.started < _SOON


def _read_failure(row: Body) -> Failure | None:
    if not row:
        return None
    job, count, at = text(row, "job"), number(row, "count"), moment(row, "at")
    return Failure(job, count, at, final=row.get("final") is True, lost=row.get("lost") is True)


def _end(one: PodEnd) -> dict[str, Any]:
    return given(
        pod=one.pod,
        how=str(one.how),
        reportedBy=one.reporter,
        node=one.node,
        container=one.container,
        reason=one.reason,
        message=one.message,
        code=one.code,
        time=one.at,
    )


def _read_attempt(row: Body) -> Attempt:
    end = row.get("end")
    stopped = text(row, "stopped")
    return Attempt(
        launcher=text(row, "launcher"),
        node=text(row, "node"),
        started=moment(row, "startTime"),
        ended=_read_end(end) if isinstance(end, Mapping) else None,
        stopped=Stop(stopped) if stopped in frozenset(Stop) else None,
        begun=moment(row, "beginTime"),
        workers=text(row, "workers"),
        deaths=tuple(_read_end(death) for death in rows(row, "deaths")),
        more=number(row, "moreDeaths"),
        created=moment(row, "creationTime"),
    )


def _read_end(row: Body) -> PodEnd:
    how = text(row, "how")
    return PodEnd(
        pod=text(row, "pod"),
        how=How(how) if how in frozenset(How) else How.GONE,
        node=text(row, "node"),
        container=text(row, "container"),
        code=number(row, "code") if "code" in row else None,
        reason=text(row, "reason"),
        message=text(row, "message"),
        at=moment(row, "time"),
    )
