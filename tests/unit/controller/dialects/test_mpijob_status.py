"""An MPIJob's status has mpi-operator's shape, and is read back as it was written."""

from __future__ import annotations

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.model.attempts import History
from mpirt.controller.model.conditions import Condition, Counts, JobStatus, Type
from mpirt.controller.model.spec import JobKey
from tests.unit.controller.jobs import NOON, at, mpi_job, time

KEY = JobKey("MPIJob", "ml", "train")


def condition(kind: Type, *, status: bool, reason: str = "Because") -> Condition:
    return Condition(kind, status, reason, "So it is.", at(1), at(2))


def test_it_is_written_in_the_published_shape() -> None:
    status = JobStatus(
        conditions={Type.RUNNING: condition(Type.RUNNING, status=True)},
        launcher=Counts(1, 0, 2),
        workers=Counts(3, 0, 0),
        started=NOON,
        written=at(9),
        history=History(),
    )

    assert MPI_JOB.write_status(status, KEY) == {
        "conditions": [
            {
                "type": "Running",
                "status": "True",
                "reason": "Because",
                "message": "So it is.",
                "lastTransitionTime": time(1),
                "lastUpdateTime": time(2),
            }
        ],
        "replicaStatuses": {
            "Launcher": {
                "active": 1,
                "succeeded": 0,
                "failed": 2,
                "selector": "training.kubeflow.org/operator-name=mpi-operator,"
                "training.kubeflow.org/job-name=train,training.kubeflow.org/job-role=launcher",
            },
            "Worker": {
                "active": 3,
                "succeeded": 0,
                "failed": 0,
                "selector": "training.kubeflow.org/operator-name=mpi-operator,"
                "training.kubeflow.org/job-name=train,training.kubeflow.org/job-role=worker",
            },
        },
        "startTime": time(0),
        "lastReconcileTime": time(9),
        "attempts": [],
    }


def test_what_holds_now_is_the_last_condition() -> None:
    conditions = [
        condition(Type.CREATED, status=True),
        condition(Type.RUNNING, status=False),
        condition(Type.SUCCEEDED, status=True),
        condition(Type.FAILED, status=False),
    ]

    written = MPI_JOB.write_status(JobStatus(conditions={one.type: one for one in conditions}), KEY)

    rows = written["conditions"]
    assert isinstance(rows, list)
    assert [row["type"] for row in rows] == ["Running", "Failed", "Created", "Succeeded"]


def test_it_is_read_back_as_it_was_written() -> None:
    status = JobStatus(
        conditions={
            Type.FAILED: condition(Type.FAILED, status=True),
            Type.RUNNING: condition(Type.RUNNING, status=False),
        },
        launcher=Counts(0, 0, 7),
        workers=Counts(2, 0, 1),
        started=NOON,
        completed=at(60),
        written=at(61),
        history=History(),
    )

    assert MPI_JOB.read_status({**mpi_job(), "status": MPI_JOB.write_status(status, KEY)}) == status


def test_a_job_without_a_status_has_an_empty_one() -> None:
    assert MPI_JOB.read_status(mpi_job()) == JobStatus()


def test_conditions_by_another_hand_are_let_be() -> None:
    rows = [
        {"type": "Blessed", "status": "True"},
        {"type": "Created", "status": "True"},
        {"type": "Running", "status": "False", "lastTransitionTime": "yesterday"},
    ]

    status = MPI_JOB.read_status({**mpi_job(), "status": {"conditions": rows, "startTime": 7}})

    assert list(status.conditions) == [Type.CREATED, Type.RUNNING]
    assert status.conditions[Type.RUNNING].changed.year == 1970


def test_of_a_job_of_another_controller_no_history_is_written() -> None:
    assert "attempts" not in MPI_JOB.write_status(JobStatus(started=NOON), KEY)
