"""
The status of a kubeflow.org MPIJob.

Owns: its form, which is mpi-operator's plus the job's history. If a CRD drops the history, a status is read back
without it. The last condition in the list describes the current state; dashboards and columns show that one.
"""

from __future__ import annotations

from mpirt.controller.dialects.status_fields import read_common, write_common
from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Condition, JobStatus, Type
from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import JobKey


def read_status(body: Body) -> JobStatus:
    """Return the status that an object holds."""
    return read_common(body, kinds.MPI_JOB)


def write_status(status: JobStatus, key: JobKey) -> dict[str, object]:
    """Return the status in the form of an MPIJob."""
    return write_common(status, key, sorted(status.conditions.values(), key=_order))


def _order(condition: Condition) -> tuple[bool, int]:
    return condition.status, list(Type).index(condition.type)
