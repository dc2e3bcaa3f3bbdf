"""
Facts about pods that only events report.

Owns: reading two kinds of events. FailedCreate: a quota, a limit range or an admission rule kept a StatefulSet or
Job from creating a pod, which no status shows. Evicted: a kubelet evicted a pod; if its containers end on TERM,
newer kubelets overwrite the pod's own reason and message with how these ended.
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

# The field selectors of the watches: they match only a few of all the events in a cluster.
FAILED_CREATE = "reason=FailedCreate"
EVICTED = "reason=Evicted"

# The beginnings of their messages: the API server's answer follows, which begins with the pod.
_BEGINNINGS = ("failed error: ", "Error creating: ")
# The API server answers this while it comes back. The request is retried at once, so it is no obstacle.
_PASSES = "could not be completed at this time"
_NAME = re.compile(r'^pods "[^"]*" (is )?')


@dataclass(frozen=True, slots=True)
class FailedCreate:
    """A pod that could not be created."""

    owner: str
    """The uid of the object that tried to create it."""
    message: str
    at: datetime | None
    """When that was last tried."""


def involved(body: Body) -> tuple[str, str, str]:
    """Return kind, namespace and name of the object that an event concerns."""
    about = table(body, "involvedObject")
    return text(about, "kind"), text(about, "namespace"), text(about, "name")


def event_job(body: Body) -> JobKey | None:
    """
    Return the job that an event concerns, by the name of the involved object, which need not exist.

    The name does not tell the job's kind: it counts as an MPIJob.
    """
    kind, namespace, name = involved(body)
    job = job_of(kind, name)
    return JobKey(kinds.MPI_JOB, namespace, job) if job else None


def read_failed_create(body: Body) -> FailedCreate:
    """Read a FailedCreate event as the API server has it."""
    at = moment(body, "lastTimestamp") or moment(body, "eventTime")
    return FailedCreate(text(table(body, "involvedObject"), "uid"), text(body, "message"), at)


def evictions(events: Iterable[Body]) -> Mapping[str, str]:
    """Return why nodes have evicted pods, by the pods' uids."""
    return {text(table(one, "involvedObject"), "uid"): text(one, "message") for one in events}


def why_not_created(
    failed_creates: Iterable[FailedCreate], owner: str, made: Iterable[Pod], name: str = ""
) -> str:
    """
    Return why the object with the uid `owner` can't create a pod, or the pod that `name` names; empty if unknown.

    `made` are the pods that it has created: a failure before the newest of them no longer counts.
    """
    told = [
        (one.at, one.message) for one in failed_creates if one.owner == owner and one.at and name in one.message
    ]
    at, message = max((each for each in told if _PASSES not in each[1]), default=(None, ""))
    if at is None or any(pod.created is not None and at < pod.created for pod in made):
        return ""
    return f"can't be created: {_answer(message)}"


def _answer(message: str) -> str:
    """Return the API server's answer, without the pod's name, which for a Job is another one each time."""
    words = next((rest for one in _BEGINNINGS if (rest := message.partition(one)[2])), message)
    return _NAME.sub("", words).rstrip(". \n")
