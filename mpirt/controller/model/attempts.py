"""
What happened in a job: each attempt of its launcher, and which pods died in it.

Owns: the values, and how many of them are kept. observed/history.py makes them of what is seen, messages/causes.py
makes sentences of them, model/records.py writes them down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

KEPT_ATTEMPTS = 5
"""A job may be tried hundreds of times; what happened in the last of them is what people ask for."""
KEPT_DEATHS = 10
"""In each attempt. A lost rack takes a thousand workers; the first tell why."""


class How(StrEnum):
    """How a pod came to its end."""

    EXITED = "Exited"
    """A container ended, with this code."""
    EVICTED = "Evicted"
    FAILED = "Failed"
    """The pod as a whole."""
    DELETED = "Deleted"
    NODE_LOST = "NodeLost"
    GONE = "Gone"
    """It is not there any more, and nothing has said why."""
    TOLD = "Told"
    """An earlier version of the controller said so, in these words."""


REPORTERS: Mapping[How, str] = {
    How.EXITED: "kubelet",
    How.EVICTED: "kubelet",
    How.FAILED: "kubelet",
    How.DELETED: "API server",
    How.NODE_LOST: "node controller",
    How.GONE: "mpirt-controller",
    How.TOLD: "mpirt-controller",
}
"""Whose word it is."""


class Stop(StrEnum):
    """Why an attempt was ended on purpose."""

    LAUNCHER_CHANGED = "LauncherTemplateChanged"
    WORKERS_CHANGED = "WorkerTemplateChanged"
    JOB_DELETED = "LauncherJobDeleted"
    SUSPENDED = "Suspended"


@dataclass(frozen=True, slots=True)
class PodEnd:
    """The end of one pod."""

    pod: str
    how: How
    node: str = ""
    container: str = ""
    code: int | None = None
    reason: str = ""
    """Kubernetes' word for it, such as OOMKilled or PreemptionByScheduler."""
    message: str = ""
    """What the node said of it; of a launcher, its last lines."""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One launcher pod, from its start."""

    launcher: str
    """Empty where only its end is known, by what an earlier version said."""
    node: str = ""
    started: datetime | None = None
    ended: PodEnd | None = None
    stopped: Stop | None = None
    deaths: tuple[PodEnd, ...] = ()
    """Workers that died while it ran, the first ones."""
    more: int = 0
    """How many more died."""


@dataclass(frozen=True, slots=True)
class History:
    """What happened in the current run of a job."""

    attempts: tuple[Attempt, ...] = ()
    """The last of them, the oldest first."""
    forgotten: int = 0
    """How many there were before these."""
    rerun: str = ""
    """The value of the annotation mpirt.dev/rerun that this run answers."""

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def is_plain(self) -> bool:
        """Whether all of it could be told again from what is there."""
        has_news = any(one.stopped or one.deaths or (one.ended and one.ended.code != 0) for one in self.attempts)
        return not has_news and not self.rerun and len(self.attempts) <= 1
