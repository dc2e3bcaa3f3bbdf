"""
The interface of a dialect, and what the statuses of all kinds of jobs have in common.

Owns: what the controller needs from a kind of job object; the form of conditions, counts and times, and reading
them back. A field or condition that can't be read counts as missing. A new kind is another module here that
implements the interface.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from mpirt import names
from mpirt.controller.model import kinds
from mpirt.controller.model.attempts import read_history, write_history
from mpirt.controller.model.conditions import Condition, Counts, JobStatus, Type, reason_from, reason_in
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.objectnames import LONGEST_JOB_NAME, pod_labels, selector
from mpirt.controller.model.reading import Body, moment, number, rows, table, text, write_time
from mpirt.controller.model.spec import JobKey, JobSpec, Owner, RunPolicy, Scaler
from mpirt.errors import SpecError
from mpirt.fields import shown

# The manager that names this controller.
US = f"{names.PREFIX}/controller"
APPLY = "apply the CRD, for example with: kubectl apply -k crds/"
"""The remedy for each kind whose CRD is one of ours."""

_JOB_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object in the API."""

    versions: tuple[Resource, ...]
    """All versions that can be read, the preferred one first."""

    @property
    def resource(self) -> Resource:
        """Its resource in the preferred version."""
        return self.versions[0]

    def owner(self, body: Body) -> Owner:
        """Return an object for owner references and events, in the version in which it was read."""
        resource, metadata = self.resource, table(body, "metadata")
        key = JobKey(resource.kind, text(metadata, "namespace"), text(metadata, "name"))
        return Owner(text(body, "apiVersion") or resource.api_version, resource.kind, key, text(metadata, "uid"))


@dataclass(frozen=True, slots=True)
class Dialect(Kind, ABC):
    """Reads and writes one kind of job object."""

    claim: str
    """The field by which a job names this controller as its manager, and its value."""
    managers: tuple[str | None, ...]
    """The managers whose jobs run here."""

    def is_ours(self, body: Body) -> bool:
        """Whether this controller may act on the job."""
        return self.manager(body) in self.managers

    def is_claimed(self, body: Body) -> bool:
        """Whether the job names this controller as its manager, so that others leave it alone."""
        return self.manager(body) == US

    @abstractmethod
    def manager(self, body: Body) -> object:
        """Return what a job names as its manager, which may be of any type."""

    @abstractmethod
    def parse(self, body: Body) -> JobSpec:
        """Return the job's spec. Raises SpecError with the path of the first invalid field."""

    @abstractmethod
    def run_policy(self, body: Body) -> RunPolicy:
        """Return the job's run policy as far as it is valid, even if other fields are invalid."""

    @abstractmethod
    def read_status(self, body: Body) -> JobStatus:
        """Return the status that the object holds."""

    def scalers(self, objects: Mapping[str, Iterable[Body]]) -> tuple[Scaler, ...]:  # noqa: ARG002  as subclasses
        """Return the objects that ask for a change of the job's workers, the oldest first."""
        return ()

    @abstractmethod
    def write_status(self, status: JobStatus, key: JobKey) -> dict[str, object]:
        """Return the status in the form of the job object."""


def check_job_name(name: str) -> None:
    """Raise SpecError if no job can have this name."""
    if not _JOB_NAME.fullmatch(name) or len(name) > LONGEST_JOB_NAME:
        raise SpecError(
            "metadata.name",
            "must consist of lower-case letters, digits and hyphens, begin with a letter and have at most "
            f"{LONGEST_JOB_NAME} characters, because it is part of pod names and labels; got {shown(name)}",
        )


_NEVER = datetime.fromtimestamp(0, UTC)
_KNOWN = frozenset(Type)


def read_common(body: Body, kind: str) -> JobStatus:
    """Return what a status of that kind of job holds of the common fields."""
    return JobStatus(
        conditions=read_conditions(body, kind),
        launcher=_counts(table(body, "replicaStatuses", "Launcher")),
        workers=_counts(table(body, "replicaStatuses", "Worker")),
        started=moment(body, "startTime"),
        completed=moment(body, "completionTime"),
        written=moment(body, "lastReconcileTime"),
        history=read_history(body),
    )


def read_conditions(body: Body, kind: str = kinds.MPI_JOB) -> dict[Type, Condition]:
    """Return the conditions in a status, with the reasons of that kind of job; unchanged by default."""
    found = [_condition(row, kind) for row in rows(body, "conditions") if text(row, "type") in _KNOWN]
    return {condition.type: condition for condition in found}


def write_common(status: JobStatus, key: JobKey, ordered: Iterable[Condition]) -> dict[str, object]:
    """Return the common fields, with the conditions in the given order."""
    times = {
        "startTime": status.started,
        "completionTime": status.completed,
        "lastReconcileTime": status.written,
    }
    return {
        "conditions": [condition_row(condition, key.kind) for condition in ordered],
        "replicaStatuses": {
            "Launcher": _replica(status.launcher, key, names.LAUNCHER),
            "Worker": _replica(status.workers, key, names.WORKER),
        },
        **{name: write_time(when) for name, when in times.items() if when is not None},
        **({} if status.history is None else write_history(status.history)),
    }


def condition_row(condition: Condition, kind: str = kinds.MPI_JOB) -> Mapping[str, str]:
    """Return a condition as the status of that kind of job has it; its reason is unchanged by default."""
    return {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": reason_in(kind, condition.reason),
        "message": condition.message,
        "lastTransitionTime": write_time(condition.changed),
        "lastUpdateTime": write_time(condition.updated),
    }


def _condition(row: Body, kind: str) -> Condition:
    changed = moment(row, "lastTransitionTime") or _NEVER
    return Condition(
        type=Type(text(row, "type")),
        status=text(row, "status") == "True",
        reason=reason_from(kind, text(row, "reason")),
        message=text(row, "message"),
        changed=changed,
        updated=moment(row, "lastUpdateTime") or changed,
    )


def _counts(row: Body) -> Counts:
    return Counts(number(row, "active"), number(row, "succeeded"), number(row, "failed"))


def _replica(counts: Counts, key: JobKey, role: str) -> Mapping[str, object]:
    """Return the counts of a role, with the selector that `kubectl scale` and autoscalers need."""
    return {
        "active": counts.active,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "selector": selector(pod_labels(key.kind, key.name, role)),
    }
