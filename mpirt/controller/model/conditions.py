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

from mpirt.controller.model.attempts import History


class Type(StrEnum):
    """The conditions, in the order of a job's life."""

    CREATED = "Created"
    SUSPENDED = "Suspended"
    RUNNING = "Running"
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
    INVALID = "MPIJobFailedValidation"
    INVALID_NAME = "MPIJobInvalidName"
    DEADLINE = "DeadlineExceeded"
    """The same as in the status of a batch/v1 Job."""
    VALID = "MPIJobValidated"
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


@dataclass(frozen=True, slots=True)
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

    def is_true(self, kind: Type) -> bool:
        """Whether the condition is true."""
        found = self.conditions.get(kind)
        return found is not None and found.status
