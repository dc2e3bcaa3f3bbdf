"""
What only events say of pods.

Owns: reading two kinds of them. FailedCreate: a quota, a limit range or an admission rule kept a StatefulSet or
Job from making a pod, which is in no status. Evicted: a kubelet evicted a pod; where its containers obey TERM,
newer kubelets write how those ended over the pod's own reason and message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import job_of
from mpirt.controller.model.reading import Body, moment, table, text
from mpirt.controller.model.spec import JobKey
from mpirt.controller.observed.pods import Pod

# Which events are watched: of all that there are in a cluster, a few.
FAILED_CREATE = "reason=FailedCreate"
EVICTED = "reason=Evicted"

# How they begin: what comes after it is the API server's answer, which begins with the pod.
_BEGINNINGS = ("failed error: ", "Error creating: ")
# What the API server says while it comes back. It is tried again at once, and stands in nobody's way.
_PASSES = "could not be completed at this time"
_NAME = re.compile(r'^pods "[^"]*" (is )?')


@dataclass(frozen=True, slots=True)
class FailedCreate:
    """That a pod could not be made."""

    owner: str
    """The uid of what wanted to make it."""
    message: str
    at: datetime | None
    """When it was tried the last time."""


def event_job(body: Body) -> JobKey | None:
    """The job that an event concerns, by the name of what it is about; there need not be one."""
    about = table(body, "involvedObject")
    name = job_of(text(about, "kind"), text(about, "name"))
    return JobKey(kinds.MPI_JOB, text(about, "namespace"), name) if name else None


def read_failed_create(body: Body) -> FailedCreate:
    """An event as the API server has it."""
    at = moment(body, "lastTimestamp") or moment(body, "eventTime")
    return FailedCreate(text(table(body, "involvedObject"), "uid"), text(body, "message"), at)


def evictions(events: Iterable[Body]) -> Mapping[str, str]:
    """Why nodes have evicted pods, by the pods' uids."""
    return {text(table(one, "involvedObject"), "uid"): text(one, "message") for one in events}


def why_not_created(
    failed_creates: Iterable[FailedCreate], owner: str, made: Iterable[Pod], name: str = ""
) -> str:
    """
    Why the object with that uid could not make a pod, the one that is named so; nothing if it isn't known.

    `made` are the pods that it has made: what stood in the way before the last of them does so no longer.
    """
    told = [
        (one.at, one.message) for one in failed_creates if one.owner == owner and one.at and name in one.message
    ]
    at, message = max((each for each in told if _PASSES not in each[1]), default=(None, ""))
    if at is None or any(pod.created is not None and at < pod.created for pod in made):
        return ""
    return f"can't be created: {_answer(message)}"


def _answer(message: str) -> str:
    """What the API server said; of a pod's name, which is another one each time for a Job, it tells nothing."""
    words = next((rest for one in _BEGINNINGS if (rest := message.partition(one)[2])), message)
    return _NAME.sub("", words).rstrip(". \n")
