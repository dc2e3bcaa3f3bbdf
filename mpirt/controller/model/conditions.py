"""
A job's status.

Owns: the values, the condition types and their reasons. messages/status.py decides which conditions are true; a
dialect writes them in the form of its job object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from mpirt.controller.model.attempts import History
from mpirt.controller.model.roster import Roster


class Type(StrEnum):
    """The conditions, in the order of a job's life."""

    CREATED = "Created"
    SUSPENDED = "Suspended"
    WORKERS_CREATED = "WorkersCreated"
    WORKERS_READY = "WorkersReady"
    LAUNCHER_CREATED = "LauncherCreated"
    RUNNING = "Running"
    OUTDATED = "Outdated"
    """A GPUTask was changed while it runs."""
    SCALING = "Scaling"
    SCALE_SUCCEEDED = "ScaleSucceeded"
    SCALE_FAILED = "ScaleFailed"
    RESTARTING = "Restarting"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Reason(StrEnum):
    """The reasons of conditions and events. Those that mpi-operator has, too, have its names."""

    CREATED = "MPIJobCreated"
    SUSPENDED = "MPIJobSuspended"
    RESUMED = "MPIJobResumed"
    RUNNING = "MPIJobRunning"
    SUCCEEDED = "MPIJobSucceeded"
    FAILED = "MPIJobFailed"
    RESTARTING = "MPIJobRestarting"
    WORKER_LOST = "WorkerLost"
    """The launcher has ended with code 0, but a worker was lost while it ran."""
    LAUNCHER_GONE = "LauncherGone"
    """The launcher Job was deleted while no controller ran: how it ended is unknown."""
    INVALID = "MPIJobFailedValidation"
    INVALID_NAME = "MPIJobInvalidName"
    DEADLINE = "DeadlineExceeded"
    """The same as in the status of a batch/v1 Job."""
    NO_PATIENCE = "MaxWaitTimeExceeded"
    """The workers did not come; Arena has this word for it."""
    RUN_AGAIN = "MPIJobRunAgain"
    EXISTS = "ErrResourceExists"
    REFUSED = "MPIJobRefused"
    WORKERS_NOT_READY = "MPIJobWorkersNotReady"
    LAUNCHER_NOT_RUNNING = "MPIJobLauncherNotRunning"
    WORKER_FAILED = "MPIJobWorkerFailed"
    LAUNCHER_FAILED = "MPIJobLauncherFailed"
    NOT_HONOURED = "MPIJobFieldNotHonoured"
    EDIT_UNDONE = "MPIJobEditUndone"
    RUN_BY_ANOTHER = "MPIJobRunByAnother"
    SCALING = "ScalingStart"
    SCALE_IN_SUCCEEDED = "ScalingInSucceeded"
    SCALE_IN_FAILED = "ScalingInFailed"
    SCALE_OUT_SUCCEEDED = "ScalingOutSucceeded"
    SCALE_OUT_FAILED = "ScalingOutFailed"
    UNKNOWN_WORKER = "UnknownWorker"
    """A ScaleIn names no worker that the job has, or ever had."""
    WORKERS_CREATED = "MPIJobWorkerCreated"
    WORKERS_READY = "MPIJobWorkersReady"
    LAUNCHER_CREATED = "MPIJobLauncherCreated"


_PREFIX = "MPIJob"


def scale_reason(*, grows: bool, succeeded: bool) -> Reason:
    """Return the reason for the end of a change of a job's workers."""
    if grows:
        return Reason.SCALE_OUT_SUCCEEDED if succeeded else Reason.SCALE_OUT_FAILED
    return Reason.SCALE_IN_SUCCEEDED if succeeded else Reason.SCALE_IN_FAILED


def reason_in(kind: str, reason: str) -> str:
    """Return the reason as jobs of that kind have it: with the kind in place of MPIJob."""
    return f"{kind}{reason.removeprefix(_PREFIX)}" if reason.startswith(_PREFIX) else reason


def reason_from(kind: str, written: str) -> str:
    """Return a reason that was written for jobs of that kind."""
    return f"{_PREFIX}{written.removeprefix(kind)}" if written.startswith(kind) else written


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a job: whether it is true, since when, and why."""

    type: Type
    status: bool
    reason: str
    message: str
    changed: datetime
    """When it last became true or false."""
    updated: datetime
    """When anything about it last changed."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many pods of a role are in which state."""

    active: int = 0
    """Ready workers, or running launchers."""
    succeeded: int = 0
    failed: int = 0


# Without slots, which would leave no place for what is computed once.
@dataclass(frozen=True)
class JobStatus:
    """The whole status of a job."""

    conditions: Mapping[Type, Condition] = field(default_factory=dict)
    launcher: Counts = Counts()
    workers: Counts = Counts()
    started: datetime | None = None
    completed: datetime | None = None
    written: datetime | None = None
    """When this status was written."""
    history: History | None = None
    """What happened in the job; None if the status does not hold it."""
    roster: Roster | None = None
    """The workers of a job with bare pods; None if the status does not hold it."""
    running: tuple[str, ...] = ()
    """The names of the workers that run; only for jobs whose status lists them."""

    @cached_property
    def is_finished(self) -> bool:
        """Whether the status says that the job is over."""
        return self.is_true(Type.SUCCEEDED) or self.is_true(Type.FAILED)

    def is_true(self, kind: Type) -> bool:
        """Whether the condition is true."""
        found = self.conditions.get(kind)
        return found is not None and found.status
